package overage

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// replay is a history prepared to evaluate other budgets: the demand of each
// window, and the weights of that time.
type replay struct {
	windows []replayed
	wanted  float64 // hits that a perfect limiter would have admitted
}

// replayed is one window of a replay.
type replayed struct {
	limit   uint64
	demand  []uint64 // by region
	surge   []uint64 // by region: arrivals of a round trip beyond those of the one before
	weights []rules.PPM
}

// newReplay prepares a history under the pins of r. Windows without weights get
// those that a rebalancer would have derived by then from the demand before
// them, one period per window. So a rule without a budget can be advised too.
func newReplay(h *History, r *Rule) replay {
	p := replay{windows: make([]replayed, 0, h.count)}
	guess := newGuess(h.regions, r.Pins)
	for k := range h.count {
		w := h.at(k)
		guess.open(w.StartMs)
		x := replayed{
			limit:   w.Limit,
			demand:  make([]uint64, h.regions),
			surge:   make([]uint64, h.regions),
			weights: make([]rules.PPM, h.regions),
		}
		known, total := false, uint64(0)
		for i := range w.Regions {
			t := &w.Regions[i]
			x.demand[i], x.surge[i], x.weights[i] = t.Demand(), t.SurgeRTT, t.Weight
			known = known || t.Weight > 0
			total += x.demand[i]
		}
		if !known {
			copy(x.weights, guess.weights)
		}
		for i, d := range x.demand {
			guess.demand[i] = clip(guess.demand[i] + d)
		}
		p.wanted += float64(min(total, x.limit))
		p.windows = append(p.windows, x)
	}
	return p
}

// falseDenials returns the false denials under static shares of L(1+b) and
// under shares with transfers, as fractions of the hits that a perfect limiter
// would have admitted. Neither grows with b.
//
// With static shares, region i admits min(demand, share). The shortfall of
// their sum from min(total demand, L) was denied falsely. With transfers, a
// region requests ahead the hits of one round trip at its present rate, and
// receives them a round trip later: it lacks only the arrivals beyond that.
// This treats the moment at which rights run out like any other of the window,
// and is optimistic if donors keep back rights that others lack.
func (p *replay) falseDenials(b rules.PPM) (static, transferred float64) {
	if p.wanted == 0 {
		return 0, 0
	}
	for k := range p.windows {
		s, d := p.windows[k].missing(b)
		static += float64(s)
		transferred += float64(d)
	}
	return static / p.wanted, transferred / p.wanted
}

// missing returns the hits of a window that are denied falsely.
func (x *replayed) missing(b rules.PPM) (static, transferred uint64) {
	all := rights(x.limit, b)
	total, admitted, late := uint64(0), uint64(0), uint64(0)
	for i, d := range x.demand {
		held := share(all, x.weights[i])
		got := min(d, held)
		total += d
		admitted += got
		late += min(d-got, x.surge[i])
	}
	wanted := min(total, x.limit)
	if admitted >= wanted {
		return 0, 0
	}
	return wanted - admitted, min(wanted-admitted, late)
}

// share returns the part of the rights that a weight gives, rounded down.
// Largest remainders would give a hit more here and there, but with them a
// region may lose a hit when the budget grows (the Alabama paradox), so that a
// larger budget could look worse.
func share(all uint64, w rules.PPM) uint64 {
	return sat.MulDiv(all, uint64(min(w, whole)), whole)
}

// guess is the rebalancer's past as it would have been.
type guess struct {
	r       *Rebalancer
	weights []rules.PPM
	startMs int64
	demand  []uint64 // of the window so far
}

func newGuess(regions int, pins []Pin) *guess {
	cfg := DefaultRebalance(regions)
	cfg.Pins = pins
	r, _ := NewRebalancer(cfg) // Validate has checked the pins.
	return &guess{r: r, weights: r.Target(), demand: make([]uint64, regions)}
}

// open begins a window, and closes the previous one if it is another.
func (g *guess) open(startMs int64) {
	if startMs != g.startMs {
		if next, err := g.r.Propose(g.demand, g.weights); err == nil && next != nil {
			g.weights = next
		}
		clear(g.demand)
	}
	g.startMs = startMs
}

// The budgets to try: tenths of a percent up to 2 %, then whole percents, as an
// operator would write them.
const (
	fineSteps = 20
	fineStep  = percent / 10
)

// step returns budget number k.
func step(k int) rules.PPM {
	if k <= fineSteps {
		return rules.PPM(k) * fineStep
	}
	return fineSteps*fineStep + rules.PPM(k-fineSteps)*percent
}

// steps returns the number of the greatest budget of r regions.
func steps(regions int) int {
	largest := rules.PPM(regions-1) * whole
	if largest == 0 {
		return 0
	}
	return fineSteps + int(largest-fineSteps*fineStep)/percent
}

// smallest returns the smallest of these budgets under which the false denials,
// with transfers or without, are at most target. It returns false if even the
// greatest is not enough.
func (p *replay) smallest(regions int, target rules.PPM, transfers bool) (rules.PPM, bool) {
	meets := func(k int) bool {
		static, transferred := p.falseDenials(step(k))
		if transfers {
			return transferred <= target.Ratio()
		}
		return static <= target.Ratio()
	}
	lo, hi := 0, steps(regions)
	if !meets(hi) {
		return step(hi), false
	}
	for lo < hi { // Sound because false denials never grow with the budget.
		if mid := (lo + hi) / 2; meets(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return step(lo), true
}
