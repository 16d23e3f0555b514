package sim

import (
	"math"
	"math/bits"
	"time"

	"github.com/georld/rld/node"
)

// asked is a call that came to a daemon and is not answered yet: it waits for
// homes to grant what it needs.
type asked struct {
	call   *node.Call
	from   attempt // who asked
	daemon *Daemon
	member int32  // the process that was asked, in World.members
	set    int    // the rule set that it goes by
	ticket uint64 // 0 until it waits
	since  time.Duration
	until  time.Duration // then the homes that have not answered have failed; 0 for not said
	// awaited are the shards that have not answered, as a bit set.
	awaited uint64
	rounds  int
}

// maxRounds bounds how often a call seeks: at its home, at the one that took
// over, at the region's floor, each of them once more when a label ended
// meanwhile. After that all have failed.
const maxRounds = 8

// newCall returns an empty call.
func (w *World) newCall() *node.Call {
	if n := len(w.calls); n > 0 {
		c := w.calls[n-1]
		w.calls = w.calls[:n-1]
		c.Decision = node.Decision{}
		return c
	}
	return &node.Call{}
}

// ask asks a daemon, as its edges would.
func (w *World) ask(d *Daemon, c *node.Call, from attempt) error {
	if err := w.sets[d.set].front.Resolve(c); err != nil {
		return err
	}
	w.decide(&asked{call: c, from: from, daemon: d, member: d.member, set: d.set, since: w.now})
	return nil
}

// decide answers a call, or lets it wait for what its homes grant.
func (w *World) decide(a *asked) {
	d, c := a.daemon, a.call
	at := d.Instant(w.now)
	hits := c.Hits()
	touched := a.touched()
	for {
		for m := touched; m != 0; m &= m - 1 {
			d.Nodes[bits.TrailingZeros64(m)].Probe(at, hits, c.Statuses)
		}
		w.sets[a.set].front.Decide(c)
		waits := a.waits()
		if waits == 0 || !c.Decision.Allowed {
			break
		}
		if a.rounds < maxRounds {
			for m := touched; m != 0; m &= m - 1 {
				w.heeded(d, bits.TrailingZeros64(m), nil)
			}
			w.seek(a, at, waits)
			return
		}
		if !a.giveUp() {
			break // for an auditor to see
		}
	}
	for m := touched; m != 0; m &= m - 1 {
		d.Nodes[bits.TrailingZeros64(m)].Charge(at, hits, c.Statuses)
	}
	if a.ticket != 0 {
		for m := touched; m != 0; m &= m - 1 {
			d.Nodes[bits.TrailingZeros64(m)].CancelLease(at, hits, a.ticket)
		}
		delete(w.waiting, a.ticket)
	}
	w.account(a, at)
	if touched != 0 {
		w.drain(d, touched)
	}
	if a.from.source == traceSource {
		w.load.Answered++
	} else {
		w.load.answered(w, c, a.from)
	}
	w.calls = append(w.calls, c)
}

// touched are the shards that have a say, as a bit set.
func (a *asked) touched() uint64 {
	hits, out := a.call.Hits(), uint64(0)
	for i := range hits {
		if hits[i].Limit != nil {
			out |= 1 << node.ShardOf(hits[i].Key, len(a.daemon.Nodes))
		}
	}
	return out
}

// waits are the shards that wait for a home.
func (a *asked) waits() uint64 {
	hits, out := a.call.Hits(), uint64(0)
	for i := range hits {
		if hits[i].Limit != nil && a.call.Statuses[i].Wait {
			out |= 1 << node.ShardOf(hits[i].Key, len(a.daemon.Nodes))
		}
	}
	return out
}

// seek lets a call wait.
func (w *World) seek(a *asked, at node.Instant, waits uint64) {
	c, hits := a.call, a.call.Hits()
	if a.ticket == 0 {
		w.tickets++
		a.ticket = w.tickets & math.MaxInt32
		w.waiting[a.ticket] = a
		for i := range hits {
			hits[i].Ticket = a.ticket
		}
	}
	a.rounds++
	a.awaited = waits
	if a.until == 0 { // else what was waited for before counts
		a.until = w.now
		for i := range c.Statuses {
			if st := &c.Statuses[i]; hits[i].Limit != nil && st.Wait {
				a.until = max(a.until, w.now+st.Within)
			}
		}
	}
	for m := waits; m != 0; m &= m - 1 {
		a.daemon.Nodes[bits.TrailingZeros64(m)].RequestLease(at, hits, c.Statuses, a.ticket)
	}
	for i := range c.Statuses { // only now: who is asked must not look taken
		if st := &c.Statuses[i]; hits[i].Limit != nil && st.Wait {
			a.daemon.claim(w.now, st.Owner)
		}
	}
	w.events.push(max(a.until, w.now), evDeadline, int32(a.ticket))
	w.drain(a.daemon, waits)
}

// answered notes that a shard of a daemon knows what a call waited for.
func (w *World) answered(ticket uint64, shard int) {
	a := w.waiting[ticket]
	if a == nil || a.awaited == 0 {
		return
	}
	if a.awaited &^= 1 << shard; a.awaited == 0 {
		w.events.push(w.now, evAnswered, int32(ticket))
	}
}

// goOn lets a call go on that was answered, or whose homes have failed it.
func (w *World) goOn(ticket uint64, kind eventKind) {
	a := w.waiting[ticket]
	switch {
	case a == nil:
		return
	case !a.daemon.Up || a.daemon.member != a.member:
		delete(w.waiting, ticket)
		w.load.Unanswered++ // its process is gone, and with it the connection
		return
	case kind == evDeadline && (w.now < a.until || a.awaited == 0):
		return // it was answered, and waits for something else or goes on
	case a.daemon.Paused:
		a.daemon.late = append(a.daemon.late, lateCall{ticket, kind})
		return
	}
	a.settle(w, kind)
	w.decide(a)
}

// settle notes which homes have answered and which have failed.
func (a *asked) settle(w *World, kind eventKind) {
	hits := a.call.Hits()
	for i := range hits {
		st := &a.call.Statuses[i]
		if hits[i].Limit == nil || !st.Wait {
			continue
		}
		failed := kind == evDeadline && a.awaited&(1<<node.ShardOf(hits[i].Key, len(a.daemon.Nodes))) != 0
		a.daemon.release(w.now, st.Owner, !failed)
		if failed { // whoever is asked next has a time of its own
			hits[i].Failed++
			a.until = 0
		}
	}
	a.awaited = 0
}

// giveUp takes all homes that a call still waits for as failed. It returns false
// when they were before: then nothing waits any more.
func (a *asked) giveUp() bool {
	hits, any := a.call.Hits(), false
	for i := range hits {
		if hits[i].Limit != nil && a.call.Statuses[i].Wait && hits[i].Failed < math.MaxUint8 {
			hits[i].Failed, any = math.MaxUint8, true
		}
	}
	return any
}

// lateCall is one that would have gone on during a pause.
type lateCall struct {
	ticket uint64
	kind   eventKind
}

// abandon forgets the calls that a process had not answered.
func (w *World) abandon(d *Daemon) {
	for ticket, a := range w.waiting {
		if a.daemon == d {
			delete(w.waiting, ticket)
			w.load.Unanswered++
		}
	}
}
