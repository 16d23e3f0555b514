package replica

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

const (
	// maxRounds bounds how often a call requests leases: from the owner, from
	// the owner of the regional reserve, and from each again when a window
	// ended meanwhile.
	maxRounds = 8
	// maxWaiters is the default of Config.MaxWaiters.
	maxWaiters = 1 << 16
	// wakeGrain is how exactly a call learns that its time is up: at most this
	// long before, and not after. It is also the shortest time between two
	// passes over all calls, so that calls need no timers of their own.
	wakeGrain = 5 * time.Millisecond
)

// Waiters is the table of the calls that wait for leases, by ticket. A call
// waits until all shards that it requested leases at have answered, or until
// its time is up.
type Waiters struct {
	shards int
	most   int // calls that wait at one time
	reach  *Reach

	calls  map[uint64]*StrictCall
	ticket uint64 // the latest one
	// due is when the first call may be late, and passed when the calls were
	// looked through.
	due, passed time.Duration
	refused     uint64
}

func newWaiters(shards, most int, reach *Reach) *Waiters {
	return &Waiters{shards: shards, most: most, reach: reach, calls: map[uint64]*StrictCall{}, due: never, passed: -wakeGrain}
}

// Len returns how many calls wait.
func (w *Waiters) Len() int { return len(w.calls) }

// Refused returns how many calls found no room.
func (w *Waiters) Refused() uint64 { return w.refused }

// Next decides how a call goes on that was just probed at the nodes of all its
// shards, and returns the shards of a Request as a bit set. The caller holds
// the locks of the shards until it has done what Next returned.
func (w *Waiters) Next(at time.Duration, c *StrictCall) (Action, uint64) {
	if c.asked {
		c.asked = false
		w.settle(at, c)
		if c.late && c.failAll() {
			return Probe, 0
		}
	}
	switch {
	case !Waits(c.call):
		return Charge, 0
	case c.NoWait || c.ticket == 0 && !w.add(c) || c.rounds >= maxRounds:
		c.giveUp()
		return Probe, 0
	}
	c.rounds++
	return Request, w.expect(at, c)
}

// add gives a call a ticket. It reports whether there is room.
func (w *Waiters) add(c *StrictCall) bool {
	if len(w.calls) >= w.most {
		w.refused++
		return false
	}
	w.ticket++
	c.ticket = w.ticket
	hits := c.call.Hits()
	for i := range hits {
		hits[i].Ticket = c.ticket
	}
	c.attempts = slices.Grow(c.attempts[:0], len(hits))[:len(hits)]
	clear(c.attempts)
	w.calls[c.ticket] = c
	return true
}

// expect makes a call wait for the shards of its descriptors that wait, and
// returns these shards as a bit set.
func (w *Waiters) expect(at time.Duration, c *StrictCall) uint64 {
	within, shards, hits := time.Duration(0), uint64(0), c.call.Hits()
	for i := range c.call.Statuses {
		if st := &c.call.Statuses[i]; st.Wait {
			within = max(within, st.Within)
			shards |= 1 << node.ShardOf(hits[i].Key, w.shards)
		}
	}
	if c.until == 0 {
		c.from, c.until = at, at+within
	}
	c.awaited, c.late = shards, false
	c.due = c.until - min(wakeGrain, max(0, c.until-at)/4)
	w.due = min(w.due, c.due)
	return shards
}

// Requested notes that the leases are requested which Next wanted. The breakers
// learn of it only now: a request must find the path that its call was let
// through on.
func (w *Waiters) Requested(at time.Duration, c *StrictCall) {
	c.asked = true
	for i := range c.call.Statuses {
		st, a := &c.call.Statuses[i], &c.attempts[i]
		if !st.Wait || a.owner == st.Owner && !a.settled {
			continue
		}
		beside := !c.waitsFor(st.Owner) && !w.reach.claim(at, st.Owner)
		*a = attempt{owner: st.Owner, reserve: unreached(st), settled: beside}
	}
}

// Answered notes that a shard has an answer for a ticket. It returns the call
// when that was the last answer: the call goes on with Next. Otherwise it
// returns nil.
func (w *Waiters) Answered(ticket uint64, shard int) *StrictCall {
	c := w.calls[ticket]
	if c == nil || c.awaited == 0 {
		return nil
	}
	if c.awaited &^= 1 << shard; c.awaited != 0 {
		return nil
	}
	c.due = 0
	return c
}

// settle reports the outcome of the attempts of a call to the breakers.
func (w *Waiters) settle(at time.Duration, c *StrictCall) {
	for i := range c.attempts {
		a, st := &c.attempts[i], &c.call.Statuses[i]
		if a.owner == 0 || a.settled || st.Wait && st.Owner == a.owner && !c.late {
			continue // nothing to report, or the owner is asked once more
		}
		failed := st.Wait || st.Gate == node.FailureGate || !a.reserve && unreached(st)
		if st.Degraded == node.KeysFull {
			failed = st.Wait // an owner without room has answered, too
		}
		w.done(at, c, a.owner, !failed)
	}
}

// done settles all attempts of a call at one owner.
func (w *Waiters) done(at time.Duration, c *StrictCall, owner crdt.Incarnation, ok bool) {
	for i := range c.attempts {
		if a := &c.attempts[i]; a.owner == owner {
			a.settled = true
		}
	}
	w.reach.done(at, owner, ok)
}

// Abandon notes that the caller of a call is gone before it was decided. An
// owner that had a good part of its time has failed: callers that are less
// patient than this process must not keep it from finding out. The driver
// cancels the ticket at the nodes and calls End.
func (w *Waiters) Abandon(at time.Duration, c *StrictCall) {
	if at-c.from < (c.until-c.from)/3 {
		return
	}
	for i := range c.attempts {
		if a := &c.attempts[i]; a.owner != 0 && !a.settled {
			w.done(at, c, a.owner, false)
		}
	}
}

// End removes a call that was decided or given up, and empties it.
func (w *Waiters) End(c *StrictCall) {
	delete(w.calls, c.ticket)
	*c = StrictCall{Tag: c.Tag, attempts: c.attempts}
}

// tick returns the calls whose time is up, by ticket.
func (w *Waiters) tick(at time.Duration) []*StrictCall {
	if at < w.wake() {
		return nil
	}
	var late []*StrictCall
	w.due, w.passed = never, at
	for _, c := range w.calls {
		switch {
		case c.due == 0:
		case c.due <= at:
			c.due, c.late, c.awaited = 0, true, 0 // an answer must not wake it again
			late = append(late, c)
		default:
			w.due = min(w.due, c.due)
		}
	}
	slices.SortFunc(late, func(a, b *StrictCall) int { return cmp.Compare(a.ticket, b.ticket) })
	return late
}

// wake returns when tick is due. Many calls are looked through less often.
func (w *Waiters) wake() time.Duration {
	return max(w.due, w.passed+max(wakeGrain, time.Duration(len(w.calls))*time.Microsecond))
}
