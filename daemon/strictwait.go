package daemon

import (
	"context"

	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
)

// waiter is a call that waits for leases. A token in woken wakes it.
type waiter struct {
	replica.StrictCall
	woken chan struct{}
}

// wake wakes a call that waits. The machine is locked.
func wake(c *replica.StrictCall) {
	notify(c.Tag.(*waiter).woken)
}

// answered wakes the calls for which a shard had the last answer.
func (s *strict) answered(tickets []uint64, shard int) {
	s.with(func(p *replica.Process) {
		for _, t := range tickets {
			if c := p.Waiters.Answered(t, shard); c != nil {
				wake(c)
			}
		}
	})
}

// wait decides a call that has to ask owners. See server.Engine.
func (s *strict) wait(ctx context.Context, t attempt) error {
	begin, w := s.now(), s.calls.Get().(*waiter)
	w.Start(t.call)
	decided := false
	defer func() {
		if !decided { // also for a panic: its requests must be canceled
			s.abandon(&t, w)
		}
		s.end(w)
	}()
	for !s.round(s.engine.Now(), &t, w) {
		select {
		case <-w.woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	decided = true
	if s.observe != nil && w.Ticket() != 0 {
		s.observe(s.now() - begin)
	}
	return nil
}

// giveUp decides a call as if no owner answered.
func (s *strict) giveUp(at node.Instant, t *attempt) {
	w := s.calls.Get().(*waiter)
	w.Start(t.call)
	w.NoWait = true
	defer s.end(w)
	s.round(at, t, w)
}

// end forgets a call.
func (s *strict) end(w *waiter) {
	s.with(func(p *replica.Process) {
		p.Waiters.End(&w.StrictCall)
		w.drain()
	})
	s.calls.Put(w)
}

// drain removes a token that came too late. The machine is locked.
func (w *waiter) drain() {
	select {
	case <-w.woken:
	default:
	}
}

// round decides a call, or requests leases for it and returns false.
func (s *strict) round(at node.Instant, t *attempt, w *waiter) bool {
	var after afterUnlock
	decided := s.roundLocked(at, t, w, &after)
	s.engine.perform(&after)
	if decided && s.engine.sampled != nil {
		s.engine.noteSampled(t)
	}
	return decided
}

func (s *strict) roundLocked(at node.Instant, t *attempt, w *waiter, after *afterUnlock) bool {
	e := s.engine
	e.lock(t.touched)
	defer e.unlock(t.touched)
	for {
		e.probe(at, t)
		var do replica.Action
		var shards uint64
		s.with(func(p *replica.Process) {
			if do, shards = p.Waiters.Next(at.Mono, &w.StrictCall); do == replica.Request {
				w.drain()
			}
		})
		switch do {
		case replica.Charge:
			e.charge(at, t, after)
			s.cancel(at, t, w, after)
			return true
		case replica.Request:
			each(shards, func(i int) {
				n := e.shards[i].node
				n.RequestLease(at, t.hits, t.call.Statuses, w.Ticket())
				after.collect(at, s, i, n)
			})
			s.with(func(p *replica.Process) { p.Waiters.Requested(at.Mono, &w.StrictCall) })
			return false
		}
	}
}

// abandon ends a call whose caller is gone before it was decided.
func (s *strict) abandon(t *attempt, w *waiter) {
	at := s.engine.Now()
	s.with(func(p *replica.Process) { p.Waiters.Abandon(at.Mono, &w.StrictCall) })
	var after afterUnlock
	s.engine.lock(t.touched)
	s.cancel(at, t, w, &after)
	s.engine.unlock(t.touched)
	s.engine.perform(&after)
}

// cancel frees the rights that the shards of a call, which are locked, set
// aside for it and did not charge.
func (s *strict) cancel(at node.Instant, t *attempt, w *waiter, after *afterUnlock) {
	if w.Ticket() == 0 {
		return
	}
	each(t.touched, func(i int) {
		n := s.engine.shards[i].node
		n.CancelLease(at, t.hits, w.Ticket())
		after.collect(at, s, i, n)
	})
}
