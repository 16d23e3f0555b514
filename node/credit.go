package node

import (
	"cmp"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// credit is the rights to a key that homes granted to this daemon, of one label.
type credit struct {
	window   int64 // of a bucket or log when they end
	until    int64 // they may be used before it, Unix milliseconds
	from     []grantor
	used     uint64
	reserved uint64 // of what is left, set aside for waiters
	asks     []asked
	pace     pace
	often    pace          // by stockTick
	latest   uint64        // hits of the call that came last
	keep     uint64        // of what is left may be kept, by the home's last word
	stocked  bool          // the last grant was of more than was needed
	unsure   uint8         // how often what was given back is to be said again
	said     time.Duration // when it was said last

	heard   time.Duration // when the home was last heard of the label, monotonic; 0 for never
	report  quota.Report  // what it said
	trip    time.Duration // how long it takes to answer, smoothed
	ahead   time.Duration // when more was last asked for ahead of need
	touched time.Duration // when some of it was last used

	refused uint64 // as many hits and more were denied, 0 for none
	retry   time.Duration
	streak  uint8 // denials since the last grant
}

// grantor is a home and what it granted in the label.
type grantor struct {
	owner           crdt.Incarnation
	total, returned uint64
	round           uint64 // of its ballot, for people
}

// maxGrantors bounds the homes that one label is heard of.
const maxGrantors = 8

// asked is an ask that was not answered yet.
type asked struct {
	id uint64
	of crdt.Incarnation
	at time.Duration
}

// The bounds of asking.
const (
	maxAsked = 16
	// askAgain is the least time after which an ask counts as lost.
	askAgain = 20 * time.Millisecond
	// batchAhead is for how long a batch should last beyond two round trips.
	batchAhead = 50 * time.Millisecond
	// heardFresh is how old what a home said may be for a peek.
	heardFresh = time.Second
	// denialKept bounds how long a denial is believed: what is given back may
	// have made room. denialLeast is where a daemon that is denied again and
	// again ends up, so that all daemons of the world ask seldom together.
	denialKept  = time.Second
	denialLeast = 128 * time.Millisecond
	// idleAfter is when rights that nobody uses go back to their home.
	idleAfter = 200 * time.Millisecond
)

// held is what was granted and not returned or used, and may be used at now.
func (c *credit) held(l *rules.Limit, now int64) uint64 {
	if now >= c.until {
		return 0
	}
	if quota.Of(l).Windowed() && now-now%l.Window() != c.window {
		return 0
	}
	sum := uint64(0)
	for i := range c.from {
		sum = sat.Add(sum, c.from[i].total-c.from[i].returned)
	}
	return sum - min(sum, c.used)
}

// left is what is held and not set aside.
func (c *credit) left(l *rules.Limit, now int64) uint64 {
	held := c.held(l, now)
	return held - min(held, c.reserved)
}

// begin moves the credit to a later label. What waiters had set aside of the former is gone.
func (c *credit) begin(window, until int64) {
	c.window, c.until = window, until
	c.from, c.used, c.reserved = c.from[:0], 0, 0
	c.heard, c.refused, c.keep, c.stocked, c.unsure = 0, 0, 0, false, 0
}

// grantor returns the entry of a home, nil when there are too many.
func (c *credit) grantor(owner crdt.Incarnation) *grantor {
	for i := range c.from {
		if c.from[i].owner == owner {
			return &c.from[i]
		}
	}
	if len(c.from) == maxGrantors {
		return nil
	}
	c.from = append(c.from, grantor{owner: owner})
	return &c.from[len(c.from)-1]
}

// askOwner asks the home of a ledger for what its waiters lack and no ask is under way
// for, and for a batch where hits keep coming. It returns false when there is
// nobody to ask.
func (n *Node) askOwner(led *ledger, r *rules.Rule, now int64) bool {
	l := n.termsOf(r, led.reserve, now)
	owner, _ := n.ownerOf(led.key, led.id, regional(r.Limit, led.reserve))
	if l == nil || owner.Incarnation == 0 || owner.Self {
		return false
	}
	wait, open := n.cfg.Owners.Reach(owner.Incarnation)
	c := &led.credit
	n.forgetLost(c, owner.Incarnation, wait)
	if len(c.asks) >= maxAsked || !c.mayAsk(n.at.Mono) {
		return true // those who wait for an ask are covered by the next one
	}
	want, need, peek := led.uncovered()
	if !open && want == 0 && !peek {
		return false // calls that wait were let through
	}
	extra, prefetch := n.batch(c), n.prefetch(c, l)
	prefetch -= min(prefetch, c.left(l, now))
	switch {
	case want > 0 || peek:
	case extra+prefetch == 0 || !n.runsOut(c, l, now) || len(c.asks) > 0 || n.at.Mono-c.ahead < max(c.trip, 10*time.Millisecond):
		return true
	default:
		c.ahead = n.at.Mono
	}
	a := n.newAsk(led, r, owner.Incarnation, now)
	n.desk.asked++
	a.ID, a.Want, a.Need, a.Extra, a.Prefetch = n.desk.asked, want, need, extra, prefetch
	a.Within = uint32(min(max(wait, 0), maxWithin) / time.Millisecond)
	for i := range led.waiters {
		if w := &led.waiters[i]; w.state == stillWaiting && w.ask == 0 {
			w.ask = a.ID
			w.first = cmp.Or(w.first, a.ID)
		}
	}
	c.asks = append(c.asks, asked{a.ID, owner.Incarnation, n.at.Mono})
	m := n.send(owner.Incarnation)
	m.Requests = append(m.Requests, a)
	n.desk.counts.Requests++
	n.attend(led)
	return true
}

// mayAsk spaces the asks under way: a millisecond from the third on, then twice as long each.
func (c *credit) mayAsk(mono time.Duration) bool {
	under := len(c.asks)
	if c.streak > 0 { // what is left is asked for by one
		return under == 0
	}
	return under < 2 || mono-c.asks[under-1].at >= time.Millisecond<<min(under-2, 5)
}

// maxWithin bounds for how long a grant is asked to be usable.
const maxWithin = time.Second

// newAsk returns an ask that wants nothing yet.
func (n *Node) newAsk(led *ledger, r *rules.Rule, to crdt.Incarnation, now int64) sticky.LeaseRequest {
	a := sticky.LeaseRequest{Lessee: n.incarnation, Key: led.key, Rule: led.shared, Reserve: led.reserve, Window: led.credit.window}
	if l := r.Limit; quota.Of(l).Windowed() {
		a.Window = now - now%l.Window()
	}
	if c := &led.credit; a.Window == c.window {
		for i := range c.from {
			if c.from[i].owner == to {
				a.Owner, a.Returned = to, c.from[i].returned
			}
		}
	}
	return a
}

// forgetLost gives up asks that were not answered in time, or not of who is home
// now, 0 for anybody.
func (n *Node) forgetLost(c *credit, owner crdt.Incarnation, wait time.Duration) {
	after := wait
	if c.trip > 0 {
		after = min(after, max(askAgain, 2*c.trip+10*time.Millisecond))
	}
	kept := c.asks[:0]
	for _, a := range c.asks {
		if n.at.Mono-a.at < after && (owner == 0 || owner == a.of) {
			kept = append(kept, a)
		}
	}
	c.asks = kept
}

// uncovered sums up what waiters want that no ask under way is for, and the least
// of them; peek says that one wants to know only.
func (led *ledger) uncovered() (want, need uint64, peek bool) {
	for i := range led.waiters {
		w := &led.waiters[i]
		if w.state != stillWaiting {
			continue
		}
		if w.ask != 0 && !led.credit.underWay(w.ask) {
			w.ask = 0 // lost
		}
		switch {
		case w.ask != 0:
		case w.hits == 0:
			peek = true
		default:
			want = sat.Add(want, w.hits)
			if need == 0 || w.hits < need {
				need = w.hits
			}
		}
	}
	return min(want, 1<<32), need, peek
}

func (c *credit) underWay(id uint64) bool {
	for i := range c.asks {
		if c.asks[i].id == id {
			return true
		}
	}
	return false
}

// runsOut reports whether what is left hardly lasts until more could be there, where hits
// keep coming, or, of stock, does not do for another call.
func (n *Node) runsOut(c *credit, l *rules.Limit, now int64) bool {
	low := c.pace.within(n.at.Mono, c.trip+batchAhead/2)
	left := c.left(l, now)
	return left < low || c.stocked && left < max(c.latest, 1) && n.prefetch(c, l) > 0
}

// batch returns how many rights beyond the needed ones are of use: enough for as
// long as an ask takes twice.
func (n *Node) batch(c *credit) uint64 { return c.pace.within(n.at.Mono, 2*c.trip+batchAhead) }

// spendCredit counts hits as used, and asks for more before there are none left.
func (n *Node) spendCredit(led *ledger, h *Hit, now int64) {
	c := &led.credit
	c.used = sat.Add(c.used, h.N)
	c.touched = n.at.Mono
	if len(c.asks) > 0 || n.at.Mono < c.retry {
		return
	}
	if n.runsOut(c, h.Limit, now) {
		n.askOwner(led, h.Rule, now)
	}
}

// grant takes in the answer of a home.
func (n *Node) grant(g *sticky.LeaseGrant, now int64) bool {
	rule := n.ruleShared(g.Rule)
	if rule == nil {
		return false
	}
	led := n.desk.of[nameOf(g.Key, rule, g.Reserve)]
	if led == nil || led.reserve != g.Reserve || led.shared != g.Rule || g.Owner == 0 && g.Reason == sticky.NoReason {
		return false
	}
	r := n.rules.set.Find(led.id)
	if !led.isOf(r) {
		return false
	}
	n.attend(led)
	c := &led.credit
	n.answeredAsk(c, g.ID)
	if g.Reason != sticky.NoReason {
		n.unansweredBy(led, r, g, now)
		return true
	}
	if !n.credited(led, r.Limit, g, now) {
		return false
	}
	c.streak = min(c.streak+1, 7)
	if !g.Denied {
		c.streak, c.refused = 0, 0
	}
	n.serveCredit(led, r.Limit, g, now)
	c.stocked = c.left(r.Limit, now) > 0
	if !g.Denied && g.Remaining == 0 && g.Retry > 0 { // these were the last
		n.deny(c, 1)
	}
	n.askOwner(led, r, now)
	return true
}

// answeredAsk notes that an ask is over, and those before it.
func (n *Node) answeredAsk(c *credit, id uint64) {
	kept := c.asks[:0]
	for _, a := range c.asks {
		switch {
		case a.id > id:
			kept = append(kept, a)
		case a.id == id:
			trip := n.at.Mono - a.at
			if c.trip == 0 {
				c.trip = trip
			}
			c.trip += (trip - c.trip) / 8
		}
	}
	c.asks = kept
}

// credited adds what a grant says to the credit. It returns false for one that is
// out of date, or of a time that is not near.
func (n *Node) credited(led *ledger, l *rules.Limit, g *sticky.LeaseGrant, now int64) bool {
	c := &led.credit
	end := g.Until
	if quota.Of(l).Windowed() {
		end = g.Window + l.Window()
		if g.Window%l.Window() != 0 {
			return false
		}
	}
	if g.Until > end || g.Until-now > max(l.Window(), 4*maxWithin.Milliseconds())+n.cfg.maxOffset() {
		return false
	}
	if g.Window > c.window {
		n.giveBack(led, l, now, 0)
		n.unreserve(led)
		c.begin(g.Window, g.Until)
	}
	if g.Window < c.window {
		return true // its waiters are asked for again
	}
	c.until = max(c.until, g.Until)
	if from := c.grantor(g.Owner); from != nil {
		from.total, from.round = max(from.total, g.Total), max(from.round, g.Round)
	}
	c.heard, c.keep = max(n.at.Mono, 1), g.Keep
	c.report = quota.Report{Remaining: g.Remaining, Reset: max(g.Reset, 0), Retry: max(g.Retry, 0), Never: g.Never}
	return true
}

// unreserve makes the waiters of a credit that begins anew wait again.
func (n *Node) unreserve(led *ledger) {
	for i := range led.waiters {
		if w := &led.waiters[i]; w.state == granted && !w.banked {
			w.state, w.ask = stillWaiting, 0
		}
	}
}

// serveCredit sets rights aside for waiters in their order, and denies those that
// the grant answers otherwise.
func (n *Node) serveCredit(led *ledger, l *rules.Limit, g *sticky.LeaseGrant, now int64) {
	c := &led.credit
	for i := range led.waiters {
		w := &led.waiters[i]
		if w.state != stillWaiting {
			continue
		}
		switch {
		case w.hits <= c.left(l, now):
			w.state, w.banked, w.window, w.report = granted, false, c.window, c.report
			c.reserved += w.hits
		case g.Denied && w.first != 0 && w.first <= g.ID:
			w.state, w.report = denied, c.report
			n.deny(c, w.hits)
		default:
			continue
		}
		n.desk.answered = append(n.desk.answered, w.ticket)
	}
}

// deny remembers that as many hits were denied: until they may fit, and the longer
// the oftener it was in vain.
func (n *Node) deny(c *credit, hits uint64) {
	wait := max(duration(c.report.Retry), time.Millisecond<<c.streak)
	if c.report.Never {
		wait = denialKept
	}
	if c.refused == 0 || hits < c.refused || n.at.Mono >= c.retry {
		c.refused = hits
	}
	c.retry = n.at.Mono + min(wait, denialKept)
}

// unansweredBy lets waiters know that the home could not say. One that a label
// has ended for asks again.
func (n *Node) unansweredBy(led *ledger, r *rules.Rule, g *sticky.LeaseGrant, now int64) {
	again := g.Reason == sticky.WindowOver
	for i := range led.waiters {
		w := &led.waiters[i]
		if w.state != stillWaiting || w.ask == 0 || w.ask > g.ID {
			continue
		}
		if again && !w.again {
			w.ask, w.again = 0, true
			continue
		}
		w.state = unanswered
		n.desk.answered = append(n.desk.answered, w.ticket)
	}
	if again {
		n.askOwner(led, r, now)
	}
}
