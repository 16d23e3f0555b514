package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// Add counts n hits under a key's label in the daemon's own slot. left is how
// many more hits fit the limit as far as is known: when what is unsent could
// matter to others it is sent at once. It returns false when there is no room
// for the cell; the hits are then known to nobody else.
func (e *Engine) Add(now time.Duration, k crdt.Key, window int64, span CellMeta, n, left uint64) bool {
	id := CellID{Key: k, Window: window, Kind: Daemon, Incarnation: e.self.ID}
	i := e.state.find(id)
	if i == none {
		if i = e.state.add(id, span); i == none {
			return false
		}
	}
	c := &e.state.cells[i]
	c.Carry = max(c.Carry, span.Carry)
	v := c.Value
	v.P = crdt.AddSat(v.P, n)
	e.state.set(i, v)
	unsent := v.P - c.sent
	switch {
	case unsent >= left/(2*uint64(e.busy)) && len(e.links) > 0 && unsent > 0:
		e.state.touch(i, now)
		e.expediteOwn(i)
	case e.cfg.Quiet > 0 && e.cfg.Quiet.Milliseconds() <= span.WindowLength/4:
		e.state.wait(i, now)
	default:
		e.state.touch(i, now)
	}
	return true
}

// expediteOwn makes the links that an own cell travels on tell it as soon as they
// may.
func (e *Engine) expediteOwn(i int32) {
	k := e.state.cells[i].Key
	mine := e.mine(k)
	for _, l := range e.links {
		if l.local || mine && e.teams[l.team].aggregator(k) == l.peer.ID {
			e.expedite(l, i)
		}
	}
}

// release publishes increments that have waited long enough.
func (e *Engine) release(now time.Duration) {
	for range 1 << 16 {
		i := e.state.waitHead
		if i == none || now-e.state.cells[i].since < e.cfg.Quiet {
			return
		}
		e.state.touch(i, now)
	}
}

// releaseDigested publishes all increments that wait in cells that are about to
// be compared: fingerprints hold what was told.
func (e *Engine) releaseDigested(now time.Duration) {
	for i := e.state.waitHead; i != none; {
		c := &e.state.cells[i]
		next := c.waitNext
		if c.digested() {
			e.state.touch(i, now)
		}
		i = next
	}
}

// Own returns what the daemon itself counted under a key's label.
func (e *Engine) Own(k crdt.Key, window int64) crdt.PN {
	if i := e.state.find(CellID{Key: k, Window: window, Kind: Daemon, Incarnation: e.self.ID}); i != none {
		return e.state.cells[i].Value
	}
	return crdt.PN{}
}

// OwnWindows calls yield for each cell of a key that the daemon itself counted,
// in no order.
func (e *Engine) OwnWindows(k crdt.Key, yield func(window, end int64, n uint64)) {
	e.each(k, func(c *cell) {
		if c.Incarnation == e.self.ID {
			yield(c.Window, sat.AddInt(c.Window, c.WindowLength), c.Value.Net())
		}
	})
}

// Has reports whether anything is known of a key.
func (e *Engine) Has(k crdt.Key) bool { return e.state.keyOf(k) != none }

// Total returns what is known of a key's label: all daemons of the region and
// the sums of the others.
func (e *Engine) Total(k crdt.Key, window int64) uint64 {
	sum := uint64(0)
	e.each(k, func(c *cell) {
		if c.Window == window {
			sum = crdt.AddSat(sum, c.Value.Net())
		}
	})
	return sum
}

// CellsOf returns the cells of a key that hold hits, in their order.
func (e *Engine) CellsOf(k crdt.Key) []Cell {
	var all []Cell
	e.each(k, func(c *cell) { all = append(all, c.Cell) })
	slices.SortFunc(all, func(a, b Cell) int { return a.CellID.Compare(b.CellID) })
	return all
}

// Windows calls yield for each cell of a key that counts here, in no order.
func (e *Engine) Windows(k crdt.Key, yield func(window, end int64, n uint64)) {
	e.each(k, func(c *cell) { yield(c.Window, c.End(c.Window), c.Value.Net()) })
}

// each visits the cells of a key that count: not rights, and not what others
// say of our own region.
func (e *Engine) each(k crdt.Key, visit func(*cell)) {
	at := e.state.keyOf(k)
	if at == none {
		return
	}
	for i := e.state.keys[at].first; i != none; i = e.state.cells[i].fwd {
		if c := &e.state.cells[i]; c.Kind == Daemon || c.Kind == RegionSum && c.Incarnation != e.region {
			visit(c)
		}
	}
}

// Extrapolated returns how many hits others are estimated to have counted
// under labels from on of a key since they were heard of: no slope is followed
// for longer than three lags or than longest, the time since the label began,
// and no slot to more than limit.
func (e *Engine) Extrapolated(now, longest time.Duration, k crdt.Key, from int64, limit uint64) uint64 {
	at := e.state.keyOf(k)
	if at == none || e.state.keys[at].rated == 0 {
		return 0
	}
	sum := uint64(0)
	for i := e.state.keys[at].first; i != none; i = e.state.cells[i].fwd {
		c := &e.state.cells[i]
		if c.Rate == 0 || c.Window < from || c.Incarnation == e.region || c.Incarnation == e.self.ID {
			continue
		}
		if age, ok := e.viewOf(now, c); ok {
			more := extrapolated(c.Rate, min(age, longest))
			sum = crdt.AddSat(sum, min(more, limit-min(limit, c.Value.Net())))
		}
	}
	return sum
}

// view estimates for how long a peer may have counted what it did not tell and
// what matters; false when it is silent. With a quiet interval that is only
// the time on the way: what is kept back for longer is too little to matter.
func (e *Engine) view(now time.Duration, l *link) (time.Duration, bool) {
	age, ok := l.view(now)
	if e.cfg.Quiet > 0 {
		age = min(age, max(0, l.rtt)/2+2*e.cfg.MinGap)
	}
	return age, ok
}

// viewOf returns how old the view of a cell is, false when nothing is heard
// of it any more.
func (e *Engine) viewOf(now time.Duration, c *cell) (time.Duration, bool) {
	l := e.link(c.via)
	if l == nil {
		return 0, false
	}
	age, ok := e.view(now, l)
	if !ok {
		return 0, false
	}
	age = min(age, now-c.told+max(0, l.rtt)/2) // it may have come by itself
	if c.Kind == Daemon {
		return age, true
	}
	if !l.local {
		return age + l.own, true
	}
	for _, b := range l.behind {
		if b.Region == c.Incarnation {
			return age + b.Age, true
		}
	}
	return 0, false
}

// sum returns what the daemons of the region counted under a key's label, and
// its span. regional says that it must not leave.
func (e *Engine) sum(k crdt.Key, window int64) (v crdt.Sum, span CellMeta) {
	at := e.state.keyOf(k)
	if at == none {
		return v, span
	}
	for i := e.state.keys[at].first; i != none; i = e.state.cells[i].fwd {
		c := &e.state.cells[i]
		if c.Kind != Daemon || c.Window != window {
			continue
		}
		v.P, v.N = crdt.AddSat(v.P, c.Value.P), crdt.AddSat(v.N, c.Value.N)
		carry := max(span.Carry, c.Carry)
		regional := span.Regional || c.Regional
		span = c.CellMeta
		span.Carry, span.Regional = carry, regional
	}
	return v, span
}
