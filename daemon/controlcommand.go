package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/report"
)

// Submit is part of report.Control.
func (c *controlLoop) Submit(ctx context.Context, r control.Request) (control.Result, error) {
	if err := c.awaitLeader(ctx); err != nil {
		return control.Result{}, err
	}
	done := make(chan control.Result, 1)
	id, err := control.Number(0), errors.New("the control log of this daemon is not open")
	c.Do(func(n *control.Node) {
		if id, err = n.Submit(r); err == nil {
			c.waiting[id] = append(c.waiting[id], done)
		}
	})
	if err != nil {
		return control.Result{}, err
	}
	select {
	case result := <-done:
		return result, nil
	case <-ctx.Done():
	}
	c.Do(func(n *control.Node) {
		left := slices.DeleteFunc(c.waiting[id], func(o chan<- control.Result) bool { return o == done })
		if c.waiting[id] = left; len(left) == 0 {
			delete(c.waiting, id)
			n.Forget(id)
		}
	})
	select {
	case result := <-done:
		return result, nil
	default:
		return control.Result{ID: id}, report.ErrNoResult
	}
}

// leaderWithin bounds the wait for a leader while no majority of the voters is
// live. With one an election goes on, and the wait ends with its context.
const leaderWithin = 4 * time.Second

// awaitLeader waits until the node knows a leader. A command that nobody takes
// would be done when its author does not expect it any more.
func (c *controlLoop) awaitLeader(ctx context.Context) error {
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	began := time.Now()
	for {
		var s control.Status
		if !c.peek(func(n *control.Node) { s = n.Status() }) {
			return errors.New("the control log of this daemon is not open")
		}
		switch {
		case s.Hash == "":
			return control.ErrNoCluster
		case s.Leader != control.ID{}:
			return nil
		}
		select {
		case <-ctx.Done():
			return report.ErrNoLeader
		case <-t.C:
		}
		if time.Since(began) >= leaderWithin {
			// A leader may have come since.
			if s := c.State(); s.Status.Leader == (control.ID{}) && !s.Electing() {
				return report.ErrNoLeader
			}
		}
	}
}

// finish sends results to their waiting callers. The caller holds c.mu.
func (c *controlLoop) finish(results []control.Result) {
	for _, r := range results {
		for _, done := range c.waiting[r.ID] {
			done <- r
		}
		delete(c.waiting, r.ID)
	}
}

// inUse states that the limits of a record decide the calls of this daemon.
func (c *controlLoop) inUse(r *control.Record) {
	c.Do(func(n *control.Node) { n.Limits().InUse(r) })
}
