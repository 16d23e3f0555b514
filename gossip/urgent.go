package gossip

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// Room is how far a key is from its limit, as far as known.
type Room struct {
	// Left is how many more hits fit, Limit how many fit in all.
	Left, Limit uint64
}

// near reports whether a key is near its limit: the decisions of daemons then
// depend on the latest increments of others.
func (r Room) near() bool { return r.Left <= r.Limit/2 }

// hot reports whether a key is near its limit in a window, or was in the one
// before.
func (k *keyEntry) hot(window, length int64, room Room) bool {
	if room.near() {
		k.near = max(k.near, window)
		return true
	}
	return k.near != 0 && sat.AddInt(k.near, length) >= window
}

// sums reports whether a window is the latest one of a key whose sums were sent
// to other regions, or withheld from them, and makes it that if it is later.
// Only sums of that window are withheld.
func (k *keyEntry) sums(window int64) bool {
	if window > k.sumOf {
		k.sumOf, k.summed, k.slack, k.left, k.leftSum, k.unsentFrom, k.promptAt, k.sumFrom = window, 0, 0, 0, 0, 0, 0, 0
	}
	return window == k.sumOf
}

// sent returns the hits and refunds in the sum of the region of a key and
// window when it was sent to other regions last.
func (k *keyEntry) sent(window int64) uint64 {
	if k.sumOf != window {
		return 0
	}
	return k.summed
}

// urgent expedites an increment that this daemon counted, if it could affect
// other daemons at once: of a key that is near its limit or was in the window
// before, and of another one if half of what was left would be used up if all
// daemons counted as much. It reports whether it could.
func (e *Engine) urgent(i int32, room Room) bool {
	if len(e.links) == 0 {
		return false
	}
	c := e.state.cells.at(i)
	across := e.across(i, room)
	if e.roles.two && e.roles.cached(e.state.keys.at(c.key)) == e.self.ID {
		foresee(e, i, room)
	}
	if !e.state.keys.at(c.key).hot(c.Window, e.state.meta(c).WindowLength, room) {
		unsent := c.Value.P - c.refP
		if !e.roles.two || unsent < max(2, sat.Add(room.Left, unsent)/(2*uint64(e.roles.active))) {
			return across
		}
	}
	aggregator := e.roles.cached(e.state.keys.at(c.key))
	if e.roles.two && aggregator == e.self.ID {
		e.inform(i, room, false)
		beat(e, c, room)
		return true
	}
	if unsent := c.Value.P - c.refP; unsent == 0 || unsent < room.Left/(4*uint64(e.roles.active)) {
		return across
	}
	for _, l := range e.links {
		if l.local && (!e.roles.two || l.peer.ID == aggregator) {
			e.expedited = l.expedite(i) || e.expedited
			if e.roles.two && room.near() {
				l.expect(e.dispatched.latest + max(0, l.rtt) + 2*acknowledgeAfter)
			}
		}
	}
	return true
}

// small reports whether an increment that this daemon counted may wait, of a
// key that is not near its limit and was not in the window before: a single
// hit, or so few that they would be an eighth of what was left if all daemons
// held back as much. It waits until the daemon is informed of the key.
func small(e *Engine, c *cell, room Room) bool {
	k := e.state.keys.at(c.key)
	if !e.roles.two || c.Window < k.near || k.near != 0 && sat.AddInt(k.near, e.state.meta(c).WindowLength) >= c.Window {
		return false
	}
	unsent := c.Value.P - c.refP
	left := sat.Add(room.Left, unsent) / uint64(e.roles.active)
	return unsent <= left/8 || unsent == 1
}

// Forward expedites a received change, if it could affect other daemons at once
// and this daemon is the aggregator of its key: a count of the own region to
// other regions, and the sum of another region to the own one. It may be called
// as long as the change is valid.
func (e *Engine) Forward(change *Change, room Room) {
	c := e.state.cells.at(change.cell)
	k := e.state.keys.at(c.key)
	if change.Less > 0 && e.roles.cached(k) == e.self.ID {
		revoke(e, change.cell)
	}
	if e.roles.two && c.Kind == Daemon && change.Gain > 0 && e.roles.pair(k).successor == e.self.ID && room.near() {
		if l := linkOf(e, e.roles.cached(k)); l != nil && l.peer.ID != c.Incarnation {
			l.expect(e.dispatched.latest + max(0, l.rtt) + missedAnswers*answerHot)
		}
		return
	}
	if change.Gain == 0 || e.roles.cached(k) != e.self.ID {
		return
	}
	e.across(change.cell, room)
	if e.roles.two && c.Kind == Daemon {
		foresee(e, change.cell, room)
	}
	switch {
	case !k.hot(c.Window, change.Span.WindowLength, room):
	case c.Kind == Daemon:
		if e.roles.two {
			e.inform(change.cell, room, c.Value.P <= change.Gain)
			beat(e, c, room)
		}
	case e.roles.two:
		e.inform(change.cell, room, false)
	default:
		for _, l := range e.links {
			if l.local {
				e.expedited = l.expedite(change.cell) || e.expedited
			}
		}
	}
}

// across no longer withholds the sum of the region in the window of a cell from
// the aggregators of its key in other regions, if the sum grew by the slack:
// see roles.slack. If the key is near its limit, or the sum grows so fast that
// it matters before the next interval, the sum is due after NearEvery, or at
// once when little is left. Only the aggregator of the key does that; across
// reports whether it did.
func (e *Engine) across(i int32, room Room) bool {
	c, regions := e.state.cells.at(i), e.roles.regions[1:]
	k := e.state.keys.at(c.key)
	if len(regions) == 0 || e.state.meta(c).Regional || e.roles.cached(k) != e.self.ID {
		return false
	}
	if c.Window > k.sumOf {
		sendWithheld(e, c)
	}
	if !k.sums(c.Window) { // nothing of it is withheld
		return c.Kind == Daemon && room.near() && expediteSum(e, i)
	}
	if k.slack = e.roles.slack(k.key, room.Left); room.near() {
		k.near = max(k.near, c.Window)
	}
	if i = e.state.ofRegion(i); i == none {
		return false
	}
	grown := e.state.unsentSum(c)
	switch {
	case grown == 0:
		return false
	case k.unsentFrom == 0:
		k.unsentFrom = max(1, e.dispatched.latest)
	}
	soon, withholdable := grown < k.slack, e.state.withholdable(c)
	if soon && withholdable && !fast(e, k, grown) {
		return false
	}
	changed := c.Kind == Daemon
	if !changed && (!soon || e.state.meta(c).Carry == 0) {
		e.state.touch(i, e.dispatched.latest) // it was passed over while it was withheld
		changed = true
	}
	near := room.near() || k.near == c.Window
	switch {
	case soon && !withholdable:
		return near && changed && prompt(e, k)
	case soon:
		k.slack = 0
		return false
	case !near && !fast(e, k, grown):
		return false // it waits for the interval
	case canWait(e, k, grown, room.Left):
		return prompt(e, k)
	}
	return expediteSum(e, i)
}

// canWait reports whether all regions use up at most an eighth of what is left
// in NearEvery if each goes on like the unsent hits of this one. These count as
// of the latest interval, as most may be.
func canWait(e *Engine, k *keyEntry, unsent, left uint64) bool {
	since := min(e.dispatched.latest-k.unsentFrom, e.cfg.WANInterval)
	most := 8 * uint64(len(e.roles.regions)) * uint64(max(NearEvery, e.cfg.MinGap))
	return left > 0 && sat.MulDiv(unsent, most, uint64(max(1, since))) <= left
}

// prompt makes the sum of the region due in other regions after NearEvery, with
// all that changes until then. It returns true.
func prompt(e *Engine, k *keyEntry) bool {
	d, at := &e.dispatched, promptly(e, e.dispatched.latest)
	if k.promptAt == 0 {
		k.promptAt = at
	}
	if d.prompt == never || d.prompt <= d.latest { // else the caller wakes before
		d.prompt, e.expedited = at, true
	}
	return true
}

// expediteSum expedites a sum of the region to the aggregators of its key in
// other regions. It returns true.
func expediteSum(e *Engine, i int32) bool {
	k := e.state.keys.at(e.state.cells.at(i).key)
	for r := range e.roles.regions[1:] {
		if l := linkOf(e, e.roles.winner(1+r, k)); l != nil {
			e.expedited = l.expedite(i) || e.expedited
		}
	}
	return true
}

// sendWithheld sends the withheld sum of the latest window of a cell's key, if
// that is not over when the window of the cell begins: a key may have windows
// of several lengths.
func sendWithheld(e *Engine, c *cell) {
	k := e.state.keys.at(c.key)
	for i := e.state.from(k.chain.first, k.sumOf); i != none; {
		o, at := e.state.cells.at(i), i
		if i = o.ofKey.next; o.Window != k.sumOf {
			return
		}
		if o.Kind == Daemon && o.held && e.state.end(o) > c.Window {
			e.state.touch(at, e.dispatched.latest)
		}
	}
}

// fast reports whether the sum of the region in a window grows so fast that it
// exceeds the slack before other regions receive it: they extrapolate it then.
func fast(e *Engine, k *keyEntry, grown uint64) bool {
	if grown < minGain/2 {
		return false
	}
	for r := range e.roles.regions[1:] {
		if l := linkOf(e, e.roles.winner(1+r, k)); l != nil {
			slope := slopeOf(grown, max(l.interval(), e.dispatched.latest-k.unsentFrom), l.leastGain(k.sent(k.sumOf)+grown))
			if l.rtt < 0 || sat.Add(grown, extrapolated(slope, l.interval()+l.rtt/2)) >= k.slack {
				return true
			}
		}
	}
	return false
}

// ofRegion returns a cell that the sum of the region consists of, in the window
// of a cell, none if there is none.
func (s *state) ofRegion(i int32) int32 {
	c := s.cells.at(i)
	if c.Kind == Daemon {
		return i
	}
	for o := s.firstOf(c.key); o != none; o = s.cells.at(o).ofKey.next {
		if d := s.cells.at(o); d.Kind == Daemon && d.Window == c.Window {
			return o
		}
	}
	return none
}

// unsentSum returns how many hits and refunds the sum of the region in the
// window of a cell has that were not sent to other regions.
func (s *state) unsentSum(c *cell) uint64 {
	v, _ := s.sum(c)
	return sat.Sub(sat.Add(v.P, v.N), s.keys.at(c.key).sent(c.Window))
}

// withheld reports whether the sum that a cell is part of is not sent to other
// regions yet: it grew by so little that no decision there depends on it. Only
// sums of windows that count no longer than they last are withheld.
func (s *state) withheld(c *cell) bool {
	k := s.keys.at(c.key)
	return k.sumOf == c.Window && s.withholdable(c) && s.unsentSum(c) < k.slack
}

// withholdable reports whether the sum that a cell is part of may be withheld
// if it is small: not if the window counts after it is over, and near the limit
// only if more hits than slackest are small.
func (s *state) withholdable(c *cell) bool {
	k := s.keys.at(c.key)
	return s.meta(c).Carry == 0 && (k.near != c.Window || k.sumOf == c.Window && k.slack > slackest)
}

// letGo records that a change of a cell is not withheld, with all of its sum.
func letGo(s *state, c *cell) {
	k := s.keys.at(c.key)
	if k.sums(c.Window) {
		v, _ := s.sum(c)
		k.left, k.leftSum = c.version, sat.Add(v.P, v.N)
	}
}

// summed records that the sum of the region of a cell's key and window is sent
// to another region. What is withheld, or delayed, goes only to the region that
// lacked a former change.
func (s *state) summed(c *cell, sum crdt.Sum) {
	if k := s.keys.at(c.key); k.sums(c.Window) {
		k.summed, k.unsentFrom, k.promptAt = min(sat.Add(sum.P, sum.N), k.leftSum), 0, 0
	}
}

// Forwards reports whether Forward has work for a change: this daemon is the
// aggregator of its key, or its successor in two hops. It may be called as long
// as the change is valid.
func Forwards(e *Engine, change *Change) bool {
	p := e.roles.pair(e.state.keys.at(change.at))
	return p.aggregator == e.self.ID || e.roles.two && p.successor == e.self.ID
}

// beat answers the writer of an increment of a hot key soon, and sends a
// message to the successor: both learn in time when their aggregator is silent.
func beat(e *Engine, c *cell, room Room) {
	if !room.near() {
		return
	}
	at := e.dispatched.latest + answerHot
	for _, id := range []crdt.Incarnation{c.Incarnation, e.roles.pair(e.state.keys.at(c.key)).successor} {
		if l := linkOf(e, id); l != nil {
			l.owe(at)
		}
	}
}
