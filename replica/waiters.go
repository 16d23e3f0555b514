package replica

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/node"
)

const (
	// maxWaiters bounds the calls that wait at one time. A call beyond that is
	// decided as if no owner answered.
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
	reach  *Reach

	calls  map[uint64]*StrictCall
	ticket uint64 // the latest one
	// due is when the first call may be late, and passed when the calls were
	// looked through.
	due, passed time.Duration
	refused     uint64
}

func newWaiters(shards int, reach *Reach) *Waiters {
	return &Waiters{shards: shards, reach: reach, calls: map[uint64]*StrictCall{}, due: never, passed: -wakeGrain}
}

// Len returns how many calls wait.
func (w *Waiters) Len() int { return len(w.calls) }

// Refused returns how many calls found no room.
func (w *Waiters) Refused() uint64 { return w.refused }

// add gives a call a ticket. It reports whether there is room.
func (w *Waiters) add(c *StrictCall) bool {
	if len(w.calls) >= maxWaiters {
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
			c.due, c.late = 0, true
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
