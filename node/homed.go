package node

import (
	"time"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// source is where the rights to a strict hit come from.
type source uint8

const (
	noSource   source = iota
	fromCredit        // granted to this daemon
	fromBank          // this daemon is the home
	fromTicket        // set aside for the call
)

// finding is what a ledger says of a hit.
type finding uint8

const (
	passes finding = iota
	over
	waits
	fails
)

// judgeHomed puts a hit through the gate of its home: rights that were granted to
// this daemon, or are its own to grant. Where the home cannot be asked, the floor of
// the region stands in, and beyond that on_failure.
func (n *Node) judgeHomed(h *Hit, st *Status, now int64) {
	st.Gate, st.account, st.bounded, st.Wait, st.Over = NoGate, nil, false, false, false
	st.led, st.source, st.self = nil, noSource, false
	for st.stage = 0; st.stage < 2; st.stage++ {
		reserve := st.stage > 0
		l := n.termsOf(h.Rule, reserve, now)
		if l == nil {
			break
		}
		switch n.find(h, st, l, reserve, now) {
		case passes:
			return
		case waits:
			st.Wait = true
			return
		case over:
			st.Over, st.Gate = true, OwnerGate
			return
		}
		if st.Degraded != CircuitOpen {
			st.Degraded = OwnerUnreachable
		}
	}
	st.Over = h.Limit.OnFailure != rules.Allow
	if st.Over {
		st.Gate, st.led = FailureGate, nil
	}
}

// failedFor is after how many milliseconds it is worth asking for a home again
// that could not be asked.
func (n *Node) failedFor(st *Status) int64 {
	return max(time.Second, st.Within).Milliseconds()
}

// find looks for the rights to a hit in a ledger, which is kept under l.
func (n *Node) find(h *Hit, st *Status, l *rules.Limit, reserve bool, now int64) finding {
	led := n.ledgerAt(h, reserve)
	need := sat.Add(st.ahead, h.N)
	if led != nil && h.Ticket != 0 {
		if i := led.waiter(h.Ticket); i >= 0 {
			if f, known := n.findTicket(h, led, i, st, l, need, now); known {
				return f
			}
		}
	}
	if h.Failed > st.stage {
		return fails
	}
	if led != nil && h.N > 0 && need <= led.credit.left(h.Limit, now) {
		st.led, st.source = led, fromCredit
		return passes
	}
	owner, v := n.ownerOf(ledgerKey(h.Key, reserve), h.Rule.ID, regional(h.Limit, reserve))
	if v == nil || owner.Incarnation == 0 {
		return fails
	}
	var open bool
	st.Owner = owner.Incarnation
	st.Within, open = n.cfg.Owners.Reach(owner.Incarnation)
	if owner.Self {
		return n.findHere(h, st, led, v, l, need, now)
	}
	if !open {
		st.Degraded = CircuitOpen
		return fails
	}
	return n.findThere(h, st, led, need, now)
}

// findTicket looks at what became of a call that waits.
func (n *Node) findTicket(h *Hit, led *ledger, i int, st *Status, l *rules.Limit, need uint64, now int64) (finding, bool) {
	w := &led.waiters[i]
	st.Owner = 0
	switch w.state {
	case denied:
		st.led, st.source = led, fromTicket
		return over, true
	case unanswered:
		return fails, true
	case granted:
		if h.N > 0 && !h.Peek && need > w.hits || !n.keeps(led, w, l, now) {
			n.unset(led, w)
			return passes, false // the label has ended: sought again
		}
		st.led, st.source = led, fromTicket
		if w.hits == 0 && need > 0 && need > sat.Add(w.report.Remaining, led.credit.left(l, now)) {
			return over, true // a peek
		}
		return passes, true
	}
	return passes, false
}

// unset frees what was set aside for a waiter, which waits again.
func (n *Node) unset(led *ledger, w *waiter) {
	if w.banked && led.bank != nil {
		led.bank.reserved -= min(led.bank.reserved, w.hits)
	} else {
		led.credit.reserved -= min(led.credit.reserved, w.hits)
	}
	w.state, w.ask, w.banked = stillWaiting, 0, false
}

// keeps reports whether what is set aside for a waiter can still be used.
func (n *Node) keeps(led *ledger, w *waiter, l *rules.Limit, now int64) bool {
	if w.banked {
		b := led.bank
		return b != nil && b.row.Watermark(l, now, now, 0).Window == w.window &&
			(!quota.Of(l).Drains() || b.row.Room(l, now, now, b.marked(w.window)) >= b.reserved)
	}
	return w.window == led.credit.window && (w.hits == 0 || w.hits <= led.credit.held(l, now))
}

// findHere looks for rights in the bank of a home.
func (n *Node) findHere(h *Hit, st *Status, led *ledger, v *route.Routing, l *rules.Limit, need uint64, now int64) finding {
	st.self = true
	if led == nil || led.bank == nil {
		return n.waitsHere(h, v)
	}
	b := led.bank
	b.roll(l, now)
	switch left, room := b.left(l, now, now), b.room(l, now, now); {
	case !b.taken:
		return n.waitsHere(h, v)
	case need > left:
		st.led, st.source = led, fromBank
		return over
	case need <= room || h.Peek || h.N == 0:
		st.led, st.source = led, fromBank
		return passes
	}
	return n.waitsHere(h, v)
}

// waitsHere reports whether it is worth waiting for marks: a majority lives.
func (n *Node) waitsHere(h *Hit, v *route.Routing) finding {
	live := 0
	for _, s := range v.Voters() {
		if s.Incarnation != 0 {
			live++
		}
	}
	if live < v.Majority() || !v.Seated() {
		return fails
	}
	return waits
}

// findThere looks at what another home said last.
func (n *Node) findThere(h *Hit, st *Status, led *ledger, need uint64, now int64) finding {
	if led == nil {
		return waits
	}
	c := &led.credit
	windowed := quota.Of(h.Limit).Windowed()
	current := !windowed || c.window == now-now%h.Limit.Window()
	switch {
	case !current:
	case c.refused > 0 && need >= c.refused && need > 0 && n.at.Mono < c.retry:
		st.led, st.source = led, fromCredit
		n.desk.counts.Cached++
		return over
	case (h.Peek || h.N == 0) && c.heard > 0 && n.at.Mono-c.heard < heardFresh:
		st.led, st.source = led, fromCredit
		if need > sat.Add(c.report.Remaining, c.left(h.Limit, now)) {
			return over
		}
		return passes
	}
	return waits
}

// spendHomed uses the rights to a hit that is charged.
func (n *Node) spendHomed(h *Hit, st *Status, now int64) {
	led := st.led
	if led == nil || st.Over {
		return // on_failure let it pass, or shadow mode
	}
	from := st.source
	if from == fromTicket {
		i := led.waiter(h.Ticket)
		if i < 0 {
			return
		}
		w := &led.waiters[i]
		took := min(h.N, w.hits)
		w.hits -= took
		from = fromCredit
		if w.banked {
			from = fromBank
			led.bank.reserved -= min(led.bank.reserved, took)
		} else {
			led.credit.reserved -= min(led.credit.reserved, took)
		}
	} else {
		n.desk.counts.Local++
		led.credit.came(n.at.Mono, h.N)
	}
	if from == fromCredit {
		n.spendCredit(led, h, now)
		return
	}
	n.spendBank(led, h, now)
}

// spendBank consumes hits at the home, and has marks raised before there are none left.
func (n *Node) spendBank(led *ledger, h *Hit, now int64) {
	l, v := n.termsOf(h.Rule, led.reserve, now), n.cfg.Owners.Routing()
	if l == nil || v == nil {
		return
	}
	b := led.bank
	b.spend(l, now, now, h.N, n.at.Mono)
	n.raiseAhead(led, l, v, now)
}

// reportHomed writes what the caller is told of a strict hit.
func (n *Node) reportHomed(h *Hit, st *Status, now int64) {
	rep := n.reportOf(h, st, now)
	st.Remaining, st.Reset = rep.Remaining, duration(rep.Reset)
	st.Retry, st.Never = 0, false
	if st.Over {
		st.Retry, st.Never = duration(rep.Retry), rep.Never
	}
	st.room = 1 << 40 // nobody else decides by what is counted: it need not be told at once
	if !st.passed {
		st.Delay = 0
	}
}

// reportOf returns what is known of the ledger that decided a strict hit.
func (n *Node) reportOf(h *Hit, st *Status, now int64) quota.Report {
	led, l := st.led, n.termsOf(h.Rule, st.stage > 0, now)
	if led == nil || l == nil {
		if !st.Over {
			return quota.Report{}
		}
		return quota.Report{Retry: n.failedFor(st), Reset: h.Limit.Window()}
	}
	asked := uint64(0)
	if st.Over {
		asked = sat.Add(st.ahead, h.N)
	}
	switch st.source {
	case fromTicket: // the answer is as good as the home's
		if i := led.waiter(h.Ticket); i >= 0 {
			return led.waiters[i].report
		}
	case fromBank:
		if led.bank != nil {
			return led.bank.row.Report(l, now, asked)
		}
	}
	return n.reportCredit(&led.credit, h, st, l, now)
}

// reportCredit returns what the home said last, and what is left of its grants.
func (n *Node) reportCredit(c *credit, h *Hit, st *Status, l *rules.Limit, now int64) quota.Report {
	if c.heard == 0 {
		return quota.Report{}
	}
	rep, ago := c.report, (n.at.Mono - c.heard).Milliseconds()
	left := c.left(l, now)
	rep.Reset = max(0, rep.Reset-ago)
	switch {
	case st.Over:
		rep.Retry = max(1, (c.retry - n.at.Mono).Milliseconds(), rep.Retry-ago)
	case h.Peek || h.N == 0 || n.at.Mono-c.heard < 2*prefetchTick:
		rep.Remaining = sat.Add(left, rep.Remaining)
	default: // others may have used the rest since
		rep.Remaining = left
	}
	return rep
}

// refundHomed returns hits to the rights that were used: to those granted to this daemon,
// which go back to their home when nobody uses them, or to its own bank. Which
// of them a hit used is not remembered, and does not matter to their sum.
func (n *Node) refundHomed(h *Hit, window int64, hits uint64, now int64) {
	for _, reserve := range [...]bool{false, true} {
		led, l := n.ledgerAt(h, reserve), n.termsOf(h.Rule, reserve, now)
		if led == nil || l == nil {
			continue
		}
		c := &led.credit
		windowed := quota.Of(l).Windowed()
		if now < c.until && windowed && c.window == window {
			back := min(hits, c.used)
			c.used -= back
			hits -= back
			c.touched = n.at.Mono
			n.attend(led)
		}
		if b := led.bank; b != nil && hits > 0 {
			b.roll(l, now)
			if quota.Of(l).Stamped() {
				window -= window % quota.Of(l).WatermarkStep()
			}
			b.row.Unspend(l, window, hits)
			return
		}
	}
}
