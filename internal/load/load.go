// Package load calls a rate limiter and measures the calls. In an open loop
// calls are due at instants that no answer delays, and each latency counts from
// the instant that its call was due. In a closed loop a number of calls is in
// flight. `rld bench` and internal/bench make their load with it.
package load

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Call makes one call and returns whether it was admitted. It is for one
// goroutine at a time.
type Call func(ctx context.Context) (allowed bool, err error)

// Result is the outcome of a call.
type Result struct {
	Due     time.Time // when it was to be sent
	Sent    time.Time
	Allowed bool
	Err     error
}

// Done takes results, from several goroutines at a time. An error ends the
// load.
type Done func(Result) error

// Open makes calls at the instants of a schedule until its end. As many are in
// flight as there are Calls at most: when all wait, the next one is sent late,
// and its latency still counts from the instant that it was due.
func Open(ctx context.Context, calls []Call, s *Schedule, done Done) error {
	return together(ctx, calls, func(ctx context.Context, call Call) error {
		for due, ok := s.Wait(ctx); ok; due, ok = s.Wait(ctx) {
			r := Result{Due: due, Sent: time.Now()}
			r.Allowed, r.Err = call(ctx)
			if err := done(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Closed keeps a call of each of the Calls in flight until an instant.
func Closed(ctx context.Context, calls []Call, end time.Time, done Done) error {
	return together(ctx, calls, func(ctx context.Context, call Call) error {
		for ctx.Err() == nil {
			start := time.Now()
			if start.After(end) {
				return nil
			}
			r := Result{Due: start, Sent: start}
			r.Allowed, r.Err = call(ctx)
			if err := done(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// together runs a goroutine for each of the Calls, and returns the first error.
func together(ctx context.Context, calls []Call, run func(context.Context, Call) error) error {
	running, ctx := errgroup.WithContext(ctx)
	for _, call := range calls {
		running.Go(func() error { return run(ctx, call) })
	}
	return running.Wait()
}
