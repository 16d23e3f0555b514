package node

import (
	"cmp"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/transfer"
	"github.com/georld/rld/rules"
)

// row is what a node knows of the rights to one key: its own use, and what it
// takes to trade them.
type row struct {
	quota.Account
	grid  uint64 // of the limits it counts under
	rates transfer.Rates
	since int64 // milliseconds of the monotonic clock: rates are of later hits
	given int64 // label that out is of
	out   uint64

	asker  *transfer.Requester // nil until it first asks
	giver  transfer.Donor
	hunger transfer.Shortage
	told   int64 // when the aggregator was last told of want
	looked int64 // when this aggregator looked last at its region's rights
	wants  []want
}

// want is what a daemon of the region told its aggregator.
type want struct {
	of     crdt.Incarnation
	second uint64
	at     int64
}

// gave returns what was given of the current label.
func (r *row) gave() uint64 {
	if r.given != r.Window {
		return 0
	}
	return r.out
}

// rowOf returns the row of a hit's key, which is made when there is none; nil for
// a key that has no counter of its own. What was used before it was made is what
// the replicated cells say, which hold it all.
func (n *Node) rowOf(h *Hit, at ref, now int64) *row {
	if at.where != inLive {
		if at.where != nowhere {
			return nil
		}
		// A new key is tracked from here on, though it may be refused.
		at = n.learn(h, now)
		n.promised = max(0, n.promised-1) // the room for it is taken
	}
	e := n.live.at(at.index)
	// A row that is there holds all, also what the cells do not.
	if r := n.extras.row(e.extra); r != nil && r.grid == h.Limit.Grid() {
		return r
	}
	if e.inherited() {
		return nil
	}
	r := n.newRow(h, now)
	n.attach(e, r)
	return r
}

func (n *Node) attach(e *entry, r *row) {
	if e.extra < 0 {
		e.extra = n.extras.take()
	}
	n.extras.all[e.extra].row = r
}

// rowAt returns the row of the counter of a hit, nil for none.
func (n *Node) rowAt(h *Hit, at ref) *row {
	if !at.exists() {
		return nil
	}
	if r := n.extras.row(n.entry(at).extra); r != nil && r.grid == h.Limit.Grid() {
		return r
	}
	return nil
}

func (n *Node) newRow(h *Hit, now int64) *row {
	r := &row{grid: h.Limit.Grid(), since: n.at.Mono.Milliseconds()}
	l, eng, base := h.Limit, n.replica.engine, n.base(h.Rule, now)
	if quota.Of(l).Windowed() {
		r.Left(l, base, now) // takes the label of now
		for _, window := range [...]int64{r.Window - l.Window(), r.Window} {
			own, moved := eng.Own(h.Key, window), eng.Rights(h.Key, window)
			r.Recall(l, base, now, window, window, sat.Add(own.P, moved.Given))
			r.Return(l, window, sat.Add(own.N, moved.Received))
			if window == r.Window {
				r.given, r.out = window, moved.Given
				// As if all had come just now, which it has in a burst. It is too
				// little to pass for one where it came slowly.
				r.rates.Offer(r.since, min(own.Net(), base.Amount/rowFrom))
			}
		}
		return r
	}
	type part struct {
		window, end int64
		hits        uint64
	}
	var parts []part
	eng.OwnWindows(h.Key, func(window, end int64, hits uint64) { parts = append(parts, part{window, end, hits}) })
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.window, b.window) })
	for _, p := range parts {
		r.Recall(l, base, now, p.window, p.end, p.hits)
	}
	return r
}

// spend counts a charged hit in the row of its key, if there is one, also where
// the rights gate does not apply: it may again before the label ends. A row that
// was made for another hit of the call is found again.
func (n *Node) spend(h *Hit, now int64, st *Status) {
	r := st.row
	if r == nil {
		r = n.rowAt(h, st.ref)
	}
	if r == nil {
		return
	}
	if st.bounded {
		st.row = r
	}
	if h.Rule == nil || !quota.Of(h.Limit).Drains() {
		r.Spend(h.Limit, quota.Allotment{}, now, h.N) // windows and logs do not drain
		return
	}
	base, hits := n.base(h.Rule, now), h.N
	if st.Over && !h.Limit.CarryDebt {
		hits = min(hits, r.Left(h.Limit, base, now)) // beyond that the bucket forgives
	}
	r.Spend(h.Limit, base, now, hits)
}

// own is what the row's daemon knows of itself as a donor. What a row has not
// seen of the last second it takes from the average of the label.
func (n *Node) own(r *row, l *rules.Limit, left uint64, now int64) transfer.DonorState {
	ms := n.at.Mono.Milliseconds()
	o := transfer.DonorState{Rights: left, Recent: r.rates.Recent(ms), Second: r.rates.Second(ms)}
	if young := 1000 - (ms - r.since); young > 0 {
		used := r.Used - min(r.Used, r.gave())
		average := used * 1000 / uint64(max(1000, now-r.Window))
		o.Second = max(o.Second, average)
		o.Recent = max(o.Recent, average/5)
	}
	return o
}
