package sim

import (
	"math/bits"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
)

// pendingCall is a call at a daemon that has no answer yet.
type pendingCall struct {
	replica.StrictCall
	call   *node.Call
	from   attempt // of its client
	daemon *Daemon
	member int32 // the process, in World.members
	set    int   // the rule set that decides it
	since  time.Duration
	tokens uint64 // issued before its own
}

// token returns the number of the refund token of a descriptor, unique in a
// run, 0 for none.
func (a *pendingCall) token(i int) uint64 {
	if i >= len(a.call.Receipts) || a.call.Receipts[i].Hits == 0 {
		return 0
	}
	return a.tokens + uint64(i) + 1
}

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

// ask sends a call to a daemon, as an edge does.
func (w *World) ask(d *Daemon, c *node.Call, from attempt) error {
	if err := w.sets[d.Set].front.Resolve(c); err != nil {
		return err
	}
	a := w.idle
	w.idle = nil
	if a == nil {
		a = &pendingCall{}
	}
	if w.owners {
		a.StrictCall = replica.StrictCall{}
	}
	a.call, a.from, a.daemon, a.member, a.set, a.since = c, from, d, d.member, d.Set, w.now
	a.Tag = a
	a.Start(c)
	w.decide(a)
	return nil
}

// decide decides a call, or requests the leases that it waits for.
func (w *World) decide(a *pendingCall) {
	d, c := a.daemon, a.call
	w.acting = d
	at := d.Instant(w.now)
	hits, touched, first := c.Hits(), a.touched(), a.Ticket() == 0
	admitted := first && touched != 0 && node.Admit(d.Nodes[bits.TrailingZeros64(touched)], at, c)
	for !admitted {
		each(touched, func(s int) { d.Nodes[s].Probe(at, hits, c.Statuses) })
		w.sets[a.set].front.Decide(c)
		do, shards := replica.Charge, uint64(0)
		if w.owners {
			do, shards = d.process.Waiters.Next(at.Mono, &a.StrictCall)
		}
		if do == replica.Charge {
			each(touched, func(s int) {
				d.Nodes[s].Charge(at, hits, c.Statuses)
				if len(c.Receipts) > 0 {
					d.Nodes[s].Receipts(at, hits, c.Statuses, c.Receipts)
				}
			})
			break
		}
		if do == replica.Request {
			each(shards, func(s int) { d.Nodes[s].RequestLease(at, hits, c.Statuses, a.Ticket()) })
			d.process.Waiters.Requested(at.Mono, &a.StrictCall)
			if first {
				w.load.waits(w, a)
			}
			if w.traced(d) {
				w.lines.add(d, "wait", "ticket=%d %s", a.Ticket(), entries(c, 0))
			}
			w.drain(d, shards)
			return
		}
	}
	a.tokens = w.load.tokens
	w.load.tokens += uint64(len(c.Receipts))
	waited := a.Ticket() != 0
	if waited {
		each(touched, func(s int) { d.Nodes[s].CancelLease(at, hits, a.Ticket()) })
	}
	w.account(a, at)
	if waited {
		d.process.Waiters.End(&a.StrictCall)
	}
	if touched != 0 {
		w.drain(d, touched)
	}
	w.load.answered(w, a)
	w.calls = append(w.calls, c)
	if !waited { // an event may still name one that did
		w.idle = a
	}
}

// touched returns the shards of a call, as a bit set.
func (a *pendingCall) touched() uint64 {
	hits, out := a.call.Hits(), uint64(0)
	for i := range hits {
		if hits[i].Limit != nil {
			out |= 1 << node.ShardOf(hits[i].Key, len(a.daemon.Nodes))
		}
	}
	return out
}

// each visits the shards of a bit set in ascending order.
func each(set uint64, visit func(shard int)) {
	for ; set != 0; set &= set - 1 {
		visit(bits.TrailingZeros64(set))
	}
}

// goOn continues a call whose answers have come, or whose time is up.
func (w *World) goOn(a *pendingCall) {
	switch d := a.daemon; {
	case !d.Up || d.member != a.member: // its process is gone, and the connection
	case a.Ticket() == 0: // or its client
	case d.Paused:
		d.defers(evCall, w.woken.put(a))
	default:
		w.decide(a)
	}
}

// giveUp ends a call that still waits, as its client does.
func (w *World) giveUp(a *pendingCall) {
	switch d := a.daemon; {
	case !d.Up || d.member != a.member || a.Ticket() == 0:
	case d.Paused:
		d.defers(evGiveUp, w.woken.put(a))
	default:
		w.load.Unanswered++
		if w.traced(d) {
			w.lines.add(d, "unanswered", "ticket=%d", a.Ticket())
		}
		w.abandon(a)
	}
}

// abandon ends a call whose client has left.
func (w *World) abandon(a *pendingCall) {
	d, touched := a.daemon, a.touched()
	at := d.Instant(w.now)
	w.acting = d
	d.process.Waiters.Abandon(at.Mono, &a.StrictCall)
	each(touched, func(s int) { d.Nodes[s].CancelLease(at, a.call.Hits(), a.Ticket()) })
	d.process.Waiters.End(&a.StrictCall)
	w.drain(d, touched)
	w.calls = append(w.calls, a.call)
}

// account records the decision on a call and passes it to the auditors.
func (w *World) account(a *pendingCall, at node.Instant) {
	d, c := a.daemon, a.call
	w.trace.decision(d, c)
	if w.lines != nil {
		w.lines.decision(a)
	}
	if w.owners {
		w.strict.decided(w.now, a)
	}
	w.auditors.called(d, a.set, c)
	hits := c.Hits()
	set := &w.sets[a.set]
	asked := uint64(0)
	for i := range hits {
		st := &c.Statuses[i]
		if st.Limit == nil {
			continue
		}
		charging := hits[i].N
		if c.Peek {
			charging = 0
		}
		asked = max(asked, charging)
		if st.Degraded != node.NotDegraded {
			w.tallies.degraded++
		}
		if st.Rule != nil {
			w.tallies.note(set.tally[st.Rule.Index], d.RegionIndex, charging, c.Decision.Allowed, st.Refuses())
		}
		w.decided = Decided{
			At: w.now, Instant: at, Daemon: d, Key: hits[i].Key, Rule: st.Rule, Limit: st.Limit,
			Clock: d.Nodes[node.ShardOf(hits[i].Key, len(d.Nodes))].Millis(at), Hits: hits[i].N, Peek: c.Peek, Allowed: c.Decision.Allowed, Status: st, Token: a.token(i),
		}
		w.auditors.decided(&w.decided)
	}
	w.tallies.decision(asked, c.Decision.Allowed)
}

// refund passes a refund token to a daemon, as the native edge does.
func (w *World) refund(d *Daemon, text string, hits uint64) {
	at := d.Instant(w.now)
	t, err := d.sealer.Open(text, d.incarnations[0])
	if err != nil {
		w.trace.flag(false)
		return
	}
	shard := node.ShardOf(t.Receipt.Key, len(d.Nodes))
	done := d.Nodes[shard].Refund(at, &t.Receipt, hits)
	w.drain(d, 1<<shard)
	number := t.Receipt.Number
	if w.traced(d) {
		w.lines.add(d, "refund", "token=%d key=%s hits=%d refunded=%d expired=%t", number, keyText(t.Receipt.Key), hits, done.Hits,
			done.Expired)
	}
	w.trace.word(number)
	w.trace.word(done.Hits)
	w.trace.flag(done.Expired)
	w.load.refunded += done.Hits
	w.auditors.refunded(d, number, hits, done)
}
