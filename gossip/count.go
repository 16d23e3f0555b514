package gossip

import (
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// ownID returns the name of this daemon's own count of a key and window.
func (e *Engine) ownID(k crdt.Key, window int64) CellID {
	return CellID{Key: k, Window: window, Kind: Daemon, Incarnation: e.self.ID}
}

// Add counts n hits of a key and window under the daemon's own incarnation.
// room is that of the key with these hits. Increments that could affect other
// daemons are expedited: those of a key that is near its limit, or was in the
// window before. It returns false if there is no room for the cell; then no
// other daemon learns of the hits.
func (e *Engine) Add(now time.Duration, k crdt.Key, window int64, meta CellMeta, n uint64, room Room) bool {
	hint := none
	return AddAt(e, &hint, now, k, window, meta, n, room)
}

// AddAt is Add with a hint of where the own cell of the key is, which saves a
// search: the one that AddAt left for the key. Any other number is of no harm.
func AddAt(e *Engine, hint *int32, now time.Duration, k crdt.Key, window int64, meta CellMeta, n uint64, room Room) bool {
	id, i := e.ownID(k, window), hinted(&e.state, *hint, k)
	if i != none && e.state.cells.at(i).is(&id) {
		e.state.describe(e.state.cells.at(i), &meta)
	} else if i = e.state.ensure(id, meta); i == none {
		if meta.Rule != 0 {
			Offered(e, now, k, window, meta.WindowLength, n)
		}
		return false
	}
	*hint = i
	called(e, now)
	c := e.state.cells.at(i)
	v := c.Value
	v.P = crdt.AddSat(v.P, n)
	e.state.set(c, v)
	if meta.Rule != 0 && e.state.keys.at(c.key).load > 0 { // an override may have other windows
		offered(e, now, c.key, window, meta.WindowLength, n)
	}
	urgent := e.urgent(i, room)
	c.small = !urgent && small(e, c, room)
	switch {
	case c.version > e.dispatched.version: // no message has this version yet
	case urgent || !e.cfg.delays(meta.WindowLength):
		e.state.touch(i, now)
	default:
		e.state.delay(i, now)
	}
	return true
}

// Refund refunds up to n hits that the daemon itself counted for a key and
// window, and returns how many: at most those it counted there and did not
// refund yet, and none of a saturated count. Refunds are sent like hits, but
// never expedited. The caller makes sure that a refund is applied once.
func (e *Engine) Refund(now time.Duration, k crdt.Key, window int64, n uint64) uint64 {
	i := e.state.find(e.ownID(k, window))
	if i == none {
		return 0
	}
	called(e, now)
	c := e.state.cells.at(i)
	v := c.Value
	if n = min(n, v.P-min(v.N, v.P)); n == 0 || v.P >= crdt.Max {
		return 0
	}
	v.N += n
	c.small = false
	e.state.set(c, v)
	if e.roles.cached(e.state.keys.at(c.key)) == e.self.ID {
		revoke(e, i)
	}
	if e.cfg.delays(e.state.meta(c).WindowLength) {
		e.state.delay(i, now)
	} else {
		e.state.touch(i, now)
	}
	return n
}

// hinted returns a hint if there is a cell of the key, or none.
func hinted(s *state, hint int32, k crdt.Key) int32 {
	if uint(hint) < uint(s.cells.used) {
		if c := s.cells.at(hint); c.Key == k && c.used {
			return hint
		}
	}
	return none
}

// Own returns the daemon's own count of a key and window.
func (e *Engine) Own(k crdt.Key, window int64) crdt.PN {
	if i := e.state.find(e.ownID(k, window)); i != none {
		return e.state.cells.at(i).Value
	}
	return crdt.PN{}
}

// OwnWindows calls yield for each cell of a key that the daemon itself counted,
// in no order.
func (e *Engine) OwnWindows(k crdt.Key, yield func(window, end int64, n uint64)) {
	e.state.counts(e.state.keyOf(k), e.region, func(c *cell) {
		if c.Incarnation == e.self.ID {
			yield(c.Window, sat.AddInt(c.Window, e.state.meta(c).WindowLength), c.Value.Net())
		}
	})
}

// Has reports whether a key has cells.
func (e *Engine) Has(k crdt.Key) bool { return e.state.keyOf(k) != none }

// Total returns the known count of a key and window: all daemons of the region
// and the sums of the other regions.
func (e *Engine) Total(k crdt.Key, window int64) uint64 {
	return e.state.total(e.state.keyOf(k), window, e.self.ID, e.region)
}

// TotalAfter returns the total of a change's key and window. It may be called
// as long as the change is valid.
func (e *Engine) TotalAfter(c *Change) uint64 {
	return e.state.total(c.at, c.Window, e.self.ID, e.region)
}

// total returns the hits of all daemons in a window of a key.
func (s *state) total(key int32, window int64, self, region crdt.Incarnation) uint64 {
	sum := uint64(0)
	s.windows(key, self, region, func(w *windowHits) {
		if w.window == window {
			sum = w.total()
		}
	})
	return sum
}

// CellsOf returns the cells of a key that count hits, in their order.
func (e *Engine) CellsOf(k crdt.Key) []Cell {
	var all []Cell
	e.state.chain(e.state.keyOf(k), func(_ int32, c *cell) {
		if c.Kind.Counts() && c.Incarnation != e.region {
			all = append(all, e.state.copy(c))
		}
	})
	slices.SortFunc(all, func(a, b Cell) int { return a.CellID.Compare(b.CellID) })
	return all
}

// Windows calls yield for each window of a key that has hits here, the latest
// one first.
func (e *Engine) Windows(k crdt.Key, yield func(window, end int64, n uint64)) {
	e.state.windows(e.state.keyOf(k), e.self.ID, e.region, func(w *windowHits) { yield(w.window, w.end, w.total()) })
}

// Extrapolated returns how many hits others are estimated to have counted for a
// key, in windows that start from one time to another, both included, since
// their cells were received. It follows a slope for at most three lags and at
// most longest, the time since the start of the window, and no cell beyond
// limit.
func (e *Engine) Extrapolated(now, longest time.Duration, k crdt.Key, from, to int64, limit uint64) uint64 {
	if at := e.state.keyOf(k); at != none {
		return extrapolateKey(e, now, longest, at, from, to, limit)
	}
	return 0
}

// extrapolateKey is Extrapolated for a key with cells.
func extrapolateKey(e *Engine, now, longest time.Duration, at int32, from, to int64, limit uint64) uint64 {
	if e.state.keys.at(at).rated == 0 {
		return 0
	}
	sum := uint64(0)
	estimated := e.roles.estimated(e.state.keys.at(at))
	for i := e.state.keys.at(at).chain.first; i != none; i = e.state.cells.at(i).ofKey.next {
		c := e.state.cells.at(i)
		if c.Window < from {
			break
		}
		if c.Rate == 0 || c.Window > to || c.Incarnation == e.region || (c.Kind == Others) != estimated || c.Kind == Daemon && c.Incarnation == e.self.ID {
			continue
		}
		if age, ok := cellAge(e, now, c); ok && !(c.Rate == usesUp && age > foreseenFor(&e.state, c)) {
			more := extrapolated(c.Rate, min(age, longest))
			sum = crdt.AddSat(sum, min(more, limit-min(limit, c.Value.Net())))
		}
	}
	return sum
}

// Keep makes the cells of a key count for carry milliseconds after the ends of
// their windows, as under the rule in force now. Other daemons receive that:
// without traffic for the key they would drop the cells and need them later.
func (e *Engine) Keep(k crdt.Key, carry int64) {
	// The time of the latest expiry is not later than now: nothing was added.
	e.state.keep(k, carry, e.expired)
}
