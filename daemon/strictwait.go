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

// wait decides a call that has to ask owners. See server.Engine.
func (s *strict) wait(ctx context.Context, t attempt) error {
	begin := s.now()
	s.start(&t)
	decided := false
	defer func() {
		if !decided { // also for a panic: its requests must be canceled
			s.abandon(&t)
		}
		s.end(&t)
	}()
	for !s.engine.try(s.engine.Now(), &t) {
		select {
		case <-t.waiter.woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	decided = true
	if s.observe != nil && t.waiter.Ticket() != 0 {
		s.observe(s.now() - begin)
	}
	return nil
}

// giveUp decides a call as if no owner answered.
func (s *strict) giveUp(at node.Instant, t *attempt) {
	s.start(t)
	t.waiter.NoWait = true
	defer s.end(t)
	s.engine.try(at, t)
}

// start gives a call a waiter.
func (s *strict) start(t *attempt) {
	t.waiter = s.calls.Get().(*waiter)
	t.waiter.Start(t.call)
}

// end takes the waiter of a call back.
func (s *strict) end(t *attempt) {
	w := t.waiter
	s.With(func(p *replica.Process) {
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

// next returns how a call goes on whose shards, which are locked, have probed
// it. When the call waits for leases, next requests them.
func (s *strict) next(at node.Instant, t *attempt, after *afterUnlock) replica.Action {
	var do replica.Action
	var shards uint64
	w := t.waiter
	s.With(func(p *replica.Process) {
		if do, shards = p.Waiters.Next(at.Mono, &w.StrictCall); do == replica.Request {
			w.drain()
		}
	})
	if do == replica.Request {
		each(shards, func(i int) {
			n := s.engine.shards[i].node
			n.RequestLease(at, t.hits, t.call.Statuses, w.Ticket())
			after.collect(at, s, i, n)
		})
		s.With(func(p *replica.Process) { p.Waiters.Requested(at.Mono, &w.StrictCall) })
	}
	return do
}

// abandon ends a call whose caller is gone before it was decided.
func (s *strict) abandon(t *attempt) {
	at := s.engine.Now()
	s.With(func(p *replica.Process) { p.Waiters.Abandon(at.Mono, &t.waiter.StrictCall) })
	var after afterUnlock
	s.engine.lock(t.touched)
	each(t.touched, func(i int) {
		n := s.engine.shards[i].node
		t.waiter.cancel(at, n, t.hits)
		after.collect(at, s, i, n)
	})
	s.engine.finish(t.touched, &after)
}

// cancel frees the rights that a shard, which is locked, set aside for the call
// and did not charge.
func (w *waiter) cancel(at node.Instant, n *node.Node, hits []node.Hit) {
	if w.Ticket() != 0 {
		n.CancelLease(at, hits, w.Ticket())
	}
}
