package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// Schedule has the instants at which the calls of an open loop are due. It is
// safe for concurrent use.
type Schedule struct {
	turn   chan struct{} // holds a token unless a goroutine has it
	next   time.Time
	end    time.Time
	giveUp time.Time // no call is sent later
	// following returns the instant of the call after the next one.
	following func() time.Time
	sleep     func(ctx context.Context, until time.Time)
}

// Constant returns a schedule of calls at a rate a second, at equal intervals,
// from start to end. Calls that are due then and were not sent are sent until
// grace has passed.
func Constant(start, end time.Time, rate float64, grace time.Duration) *Schedule {
	n := 0
	return newSchedule(start, end, grace, func() time.Time {
		n++
		return start.Add(time.Duration(float64(n) * float64(time.Second) / rate))
	})
}

// Poisson returns a schedule of calls at a mean rate a second that arrive
// independently of each other, from start to end. The seed makes it the same
// again.
func Poisson(start, end time.Time, rate float64, grace time.Duration, seed uint64) *Schedule {
	rng := rand.New(rand.NewPCG(seed, seed))
	at := 0.0
	following := func() time.Time {
		at += rng.ExpFloat64() * float64(time.Second) / rate
		return start.Add(time.Duration(at))
	}
	s := newSchedule(start, end, grace, following)
	s.next = following()
	return s
}

func newSchedule(start, end time.Time, grace time.Duration, following func() time.Time) *Schedule {
	s := &Schedule{
		turn: make(chan struct{}, 1), next: start, end: end, giveUp: end.Add(grace),
		following: following, sleep: sleepUntil,
	}
	s.turn <- struct{}{}
	return s
}

// Wait returns at the next instant at which a call is due, or false when there
// are no more or ctx has ended. It returns at once for those that have passed.
func (s *Schedule) Wait(ctx context.Context) (due time.Time, ok bool) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return time.Time{}, false
	}
	defer func() { s.turn <- struct{}{} }()
	if ctx.Err() != nil || !s.next.Before(s.end) || time.Now().After(s.giveUp) {
		return time.Time{}, false
	}
	if s.sleep(ctx, s.next); ctx.Err() != nil && time.Now().Before(s.next) {
		return time.Time{}, false
	}
	due = s.next
	s.next = s.following()
	return due, true
}

// Unsent takes the calls out of the schedule that were due before an instant
// and were not sent.
func (s *Schedule) Unsent(until time.Time, each func(due time.Time)) {
	<-s.turn
	defer func() { s.turn <- struct{}{} }()
	for s.next.Before(s.end) && s.next.Before(until) {
		each(s.next)
		s.next = s.following()
	}
}

// longSleep is the sleep that a context can end. The last part of it is exact,
// and not ended.
const longSleep = 10 * time.Millisecond

// sleepUntil returns at t, some microseconds late, or when ctx ends.
func sleepUntil(ctx context.Context, t time.Time) {
	if left := time.Until(t); left > longSleep {
		timer := time.NewTimer(left - longSleep/2)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
	exactSleep(t)
}
