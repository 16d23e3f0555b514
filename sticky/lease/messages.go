package lease

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
)

// Ready is the work of a table for its caller.
type Ready struct {
	// Messages are to be sent at once; From, Stamp and Number are the caller's
	// to fill in. A message to the own daemon is for its acceptor and for Step.
	Messages []sticky.Message
	// Answered are the tickets whose calls are to be probed again.
	Answered []uint64
}

// Pending reports whether Ready would return anything.
func (t *Table) Pending() bool { return len(t.out) > 0 || len(t.answered) > 0 }

// Active reports whether Tick has work within the next TickEvery.
func (t *Table) Active() bool { return len(t.active) > 0 }

// Len returns the number of entries, of leases and of owners.
func (t *Table) Len() int { return len(t.all) }

// TickEvery is the time between two calls of Tick while the table is active.
const TickEvery = 20 * time.Millisecond

// Ready returns the work since the last call. It must be called after each
// other method but Probe and Report.
func (t *Table) Ready() Ready {
	r := Ready{t.out, t.answered}
	t.out, t.answered = nil, nil
	return r
}

// to returns the message under way to a daemon, with room for one more item.
func (t *Table) to(daemon crdt.Incarnation) *sticky.Message {
	for i := range t.out {
		if m := &t.out[i]; m.To == daemon && max(len(m.Requests), len(m.Grants), len(m.Accepts), len(m.Accepted)) < sticky.MaxItems {
			return m
		}
	}
	t.out = append(t.out, sticky.Message{From: t.env.Self, To: daemon})
	return &t.out[len(t.out)-1]
}

// Step handles the requests, grants and accepted watermarks of a message that
// belong to this table's shard. It returns how many items it rejected.
func (t *Table) Step(at Now, m *sticky.Message) (rejected int) {
	t.at = at
	for i := range m.Requests {
		if q := &m.Requests[i]; t.env.Holds(q.Key) && !t.onRequest(m.From, q) {
			rejected++
		}
	}
	for i := range m.Grants {
		if g := &m.Grants[i]; t.env.Holds(g.Key) && !t.onGrant(m.From, g) {
			rejected++
		}
	}
	for i := range m.Accepted {
		if a := &m.Accepted[i]; t.env.Holds(a.Key) && !t.accepted(m.From, a) {
			rejected++
		}
	}
	t.stats.Rejected += uint64(rejected)
	return rejected
}
