package gossip

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// In a region that counts in two hops, increments go to the pair of a key,
// and the aggregator informs the other daemons with cells of kind Others.

// windowHits are the hits of a key in one window, as known to a daemon.
type windowHits struct {
	window, end int64
	own, others uint64   // net: of this daemon, and of all others
	sum         crdt.Sum // of the cells of others
	estimate    crdt.Sum // the aggregator's count of the others
}

// total returns the hits of all daemons.
func (w *windowHits) total() uint64 { return crdt.AddSat(w.own, w.known()) }

// known returns the hits of the other daemons: those that are known here, or
// those that the aggregator knows, if these are more. Both are lower bounds.
func (w *windowHits) known() uint64 {
	if w.estimate.Compare(w.sum) > 0 {
		return crdt.PN(w.estimate).Net()
	}
	return w.others
}

// add adds a cell.
func (w *windowHits) add(s *state, c *cell, self, region crdt.Incarnation) {
	switch {
	case c.Kind == Others:
		w.estimate = crdt.Sum(c.Value)
	case c.Kind == Daemon && c.Incarnation == self:
		w.own = c.Value.Net()
	case c.Kind == Daemon || c.Kind == RegionSum && c.Incarnation != region:
		w.others = crdt.AddSat(w.others, c.Value.Net())
		w.sum.P, w.sum.N = sat.Add(w.sum.P, c.Value.P), sat.Add(w.sum.N, c.Value.N)
	default:
		return
	}
	w.end = max(w.end, s.end(c))
}

// windows visits the windows of a key that have hits, the latest one first.
func (s *state) windows(key int32, self, region crdt.Incarnation, visit func(*windowHits)) {
	for i := s.firstOf(key); i != none; {
		w := windowHits{window: s.cells.at(i).Window}
		for ; i != none && s.cells.at(i).Window == w.window; i = s.cells.at(i).ofKey.next {
			w.add(s, s.cells.at(i), self, region)
		}
		if w.end != 0 {
			visit(&w)
		}
	}
}

// estimated reports whether this daemon follows the estimate of the aggregator
// for a key, and not the cells that it has.
func (r *roles) estimated(k *keyEntry) bool { return k.estimates > 0 && r.cached(k) != r.self.ID }

// counted returns the count that grows with a cell: the cell's own, or, of a
// key with estimates, that of all other daemons in the window.
func (s *state) counted(c *cell, self, region crdt.Incarnation) crdt.PN {
	if s.keys.at(c.key).estimates == 0 {
		return c.Value
	}
	var w windowHits
	for o := s.first(c); o != nil; o = s.next(o) {
		w.add(s, o, self, region)
	}
	return crdt.PN(w.sum.Join(w.estimate))
}

// informAgain is the part of what was left when the region was informed last at
// which it is informed again.
const informAgain = 8

// inform informs the daemons of the region of the key of a cell when that
// matters. All of them are informed when the key gets near its limit, and when
// that is exhausted: also a daemon that did not count the key yet may admit
// hits. Those that count it are informed each time that eight times less is
// left. A daemon that counts although the limit is exhausted, or for the first
// time, is informed at once; first reports that the cell is new.
func (e *Engine) inform(i int32, room Room, first bool) {
	c := e.state.cells.at(i)
	k := e.state.keys.at(c.key)
	if c.Window < k.informedOf {
		return
	}
	again, now := k.informedOf == c.Window, e.dispatched.latest
	if !room.near() {
		if again {
			k.informedOf = 0 // a bucket has filled again
		}
		return
	}
	if again && room.Left > k.informed {
		k.informed = room.Left
	}
	if again && (room.Left > k.informed/informAgain || room.Left == k.informed ||
		room.Left > 0 && room.Left < uint64(e.roles.active)) {
		if l := linkOf(e, c.Incarnation); l != nil && (first || room.Left == 0) {
			e.expedited = l.inform(&e.state, c.key, e.region, 0) || e.expedited
		}
		return
	}
	by := now
	if room.Left > 0 && k.surgeOf == c.Window {
		by += timeOfEighth(room, now-k.began)
	}
	k.informedOf, k.informed = c.Window, room.Left
	for _, l := range e.links {
		if !l.local {
			continue
		}
		counts := e.state.countsAt(c.key, l.peer.ID)
		switch {
		case counts && (room.Left == 0 || k.rated > 0):
			e.expedited = l.inform(&e.state, c.key, e.region, 0) || e.expedited
		case counts || !again || room.Left == 0: // it has no hits, or they grow slowly
			l.inform(&e.state, c.key, e.region, l.next(by))
		}
	}
}

// revoke informs the region again of the window of a cell with refunds, if it
// was informed of it before: other daemons may admit hits again.
func revoke(e *Engine, i int32) {
	c := e.state.cells.at(i)
	k := e.state.keys.at(c.key)
	if !e.roles.two || k.informedOf != c.Window {
		return
	}
	k.informedOf = 0 // the next hits count as those that get near the limit
	informAll(e, c.key)
}

// informAll informs all daemons of the region of a key at once.
func informAll(e *Engine, key int32) {
	for _, l := range e.local {
		e.expedited = l.inform(&e.state, key, e.region, 0) || e.expedited
	}
}

// timeOfEighth returns the time in which an eighth of what is left of a limit
// is used up, at most a second, if the rest took a time.
func timeOfEighth(room Room, used time.Duration) time.Duration {
	n := sat.MulDiv(uint64(used.Milliseconds()), room.Left, max(1, room.Limit-room.Left)) / 8
	return min(time.Second, time.Duration(min(n, 1000))*time.Millisecond)
}

// informed notes that the aggregator of a key informed this daemon of a window.
// Other daemons may decide soon: own hits no longer wait.
func informed(e *Engine, now time.Duration, l *link, of *cell) {
	k := e.state.keys.at(of.key)
	k.near = max(k.near, of.Window)
	i := e.state.find(e.ownID(of.Key, of.Window))
	if i == none {
		return
	}
	if c := e.state.cells.at(i); c.small && !l.has(c.version) {
		c.small = false
		if by := l.next(now); of.Rate > 0 {
			e.expedited = l.expedite(i) || e.expedited
		} else if l.marked && by < l.markedFor { // else dispatch has yet to note it
			l.noteBy(by)
		}
	}
}

// countsAt reports whether a daemon of the region is known to have counted a
// key, in any window.
func (s *state) countsAt(key int32, id crdt.Incarnation) bool {
	for i := s.firstOf(key); i != none; i = s.cells.at(i).ofKey.next {
		if c := s.cells.at(i); c.Kind == Daemon && c.Incarnation == id {
			return true
		}
	}
	return false
}

// maxInforms bounds what a peer is informed of in one message. It learns more
// once it counts.
const maxInforms = 256

// inform informs the peer of the windows of a key, by a time. It reports
// whether it has to be sent. region is the incarnation of the own region's
// sums.
func (l *link) inform(s *state, key int32, region crdt.Incarnation, by time.Duration) bool {
	window := int64(-1)
	for i := s.firstOf(key); i != none && len(l.informs) < maxInforms; i = s.cells.at(i).ofKey.next {
		c := s.cells.at(i)
		if c.Kind > RegionSum || c.Window == window || c.Incarnation == region || slices.Contains(l.informs, i) {
			continue
		}
		window = c.Window
		l.informs = append(l.informs, i)
	}
	if len(l.informs) > 0 {
		l.informsBy = min(l.informsBy, by)
	}
	l.queue.fix(l)
	return len(l.informs) > 0
}

// boundBucket bounds the hits in use of a bucket by what its aggregator has in
// use, and the own hits that the aggregator lacks. cells are those of a message
// up to one with a level. It does not if this daemon knows of more hits than
// the aggregator in any window.
func boundBucket(e *Engine, l *link, cells []Cell) {
	last := &cells[len(cells)-1]
	key := e.state.keyOf(last.Key)
	if last.Kind != Others || last.Incarnation != e.self.ID || key == none ||
		e.roles.cached(e.state.keys.at(key)) != l.peer.ID {
		return
	}
	most, whole := last.Level-1, true
	e.state.windows(key, e.self.ID, e.region, func(w *windowHits) {
		whole = whole && w.estimate.Compare(w.sum) >= 0
		seen := uint64(0)
		for i := len(cells) - 1; i >= 0 && cells[i].Kind == Others && cells[i].Key == last.Key; i-- {
			if cells[i].Window == w.window {
				seen = cells[i].Seen
			}
		}
		most = sat.Add(most, sat.Sub(w.own, seen))
	})
	if at := e.state.find(last.CellID); whole && at != none {
		c := e.state.cells.at(at)
		e.changes = append(e.changes, Change{
			Key: c.Key, Window: c.Window, Span: *e.state.meta(c), Bounded: true, Most: most, at: key, cell: at,
		})
	}
}

// greetKeys bounds the keys that greet visits for one message.
const greetKeys = 4_096

// greet informs a peer that is new, or was silent, of keys that the region was
// informed of before, by this daemon or by the aggregator before it. It begins
// when the peer has answered, so that messages before there is a stream do not
// count, and goes on with each message until it has visited all keys.
func (l *link) greet(s *state, r *roles, region crdt.Incarnation) {
	for range greetKeys {
		l.greeting = int(l.greeted) < s.keys.used
		if !l.greeting || len(l.informs) > maxInforms/2 {
			return
		}
		if k := s.keys.at(l.greeted); k.cells > 0 && (k.informedOf != 0 || k.estimates > 0) && r.cached(k) == r.self.ID {
			l.inform(s, l.greeted, region, 0)
		}
		l.greeted++
	}
}

// pickInforms picks the estimates that a peer is informed of.
func (s *scope) pickInforms(picked []pick) []pick {
	informs := s.to.informs
	n := min(len(informs), s.to.cfg.FrameCells-len(picked))
	for _, i := range informs[:n] {
		if c := s.state.cells.at(i); c.used {
			picked = append(picked, s.estimate(i, c))
		}
	}
	if s.to.informs = append(informs[:0], informs[n:]...); len(s.to.informs) == 0 {
		s.to.informsBy = never
	}
	return picked
}

// others returns the cell with the count of all daemons but the receiver, in
// the window of a cell.
func (s *scope) others(of *cell) Cell {
	out := Cell{CellID: CellID{Key: of.Key, Window: of.Window, Kind: Others, Incarnation: s.to.peer.ID}, CellMeta: *s.state.meta(of)}
	var sum crdt.Sum
	k, own, rate := s.state.keys.at(of.key), uint64(0), uint64(0)
	for c := s.state.first(of); c != nil; c = s.state.next(c) {
		switch {
		case c.Kind == Daemon && c.Incarnation == s.to.peer.ID:
			out.Seen = c.Value.Net()
			own = sat.Add(own, out.Seen)
		case c.Kind == Daemon || c.Kind == RegionSum && c.Incarnation != s.ownRegion:
			if c.Kind == Daemon {
				own = sat.Add(own, c.Value.Net())
			}
			sum.P, sum.N = sat.Add(sum.P, c.Value.P), sat.Add(sum.N, c.Value.N)
			rate += uint64(c.Rate)
			out.CellMeta = out.join(s.state.meta(c))
		}
	}
	if k.surgeOf == of.Window && s.now-k.began <= SurgeFor {
		rate = max(rate, k.growsBy(own, out.Seen))
	}
	if k.expectsFull(s.now, of.Window) {
		rate = usesUp
	}
	out.Value, out.Rate = crdt.PN(sum), uint32(min(rate, math.MaxUint32))
	return out
}
