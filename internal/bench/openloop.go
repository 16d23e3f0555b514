package main

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// openCallers bounds the calls in flight of an open loop. When all wait, the
// next call starts late and its latency counts from when it was planned.
const openCallers = 256

// plan hands out the planned instants of an open loop, one each interval, and
// waits for each. It is safe for concurrent use: callers wait in turn.
type plan struct {
	mu       sync.Mutex
	next     time.Time
	end      time.Time
	interval time.Duration
	sleep    func(until time.Time)
}

// wait returns at the next planned instant, or false after the last. It
// returns at once for those that have passed.
func (p *plan) wait() (planned time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.next.Before(p.end) {
		return time.Time{}, false
	}
	planned = p.next
	p.next = p.next.Add(p.interval)
	p.sleep(planned)
	return planned, true
}

// open starts calls at planned instants and measures each from its instant.
func (c *client) open(ctx context.Context, conns []*grpc.ClientConn, j job) (result, error) {
	all := c.callers(conns, openCallers, &j)
	start := time.Now().Add(time.Millisecond)
	all[0].took.from = start.Add(j.Warm)
	p := &plan{
		next: start, end: start.Add(j.Warm + j.Length), interval: time.Second / time.Duration(j.Rate),
		sleep: sleepUntil,
	}
	return together(all, func(c *caller) error {
		for {
			planned, ok := p.wait()
			if !ok {
				return nil
			}
			if err := c.call(ctx, planned); err != nil {
				return err
			}
		}
	})
}
