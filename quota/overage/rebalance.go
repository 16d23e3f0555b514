package overage

import (
	"fmt"
	"slices"

	"github.com/georld/rld/rules"
)

// RebalanceConfig controls how weights follow demand. All shares are in parts
// per million, at most 1,000,000.
type RebalanceConfig struct {
	Regions int // 1 to MaxRegions

	// Alpha is the least part of the way that the smoothed demand moves to the
	// latest demand in one period, 1 to 1,000,000. A smaller one follows
	// slower.
	Alpha rules.PPM
	// Equal is the part of the rights that is split equally, whatever the
	// demand: the start of a burst in a silent region. If bursts are
	// unpredictable, weights that only follow the last burst are worse than
	// equal ones.
	Equal rules.PPM
	// Hysteresis is the relative error of a weight from which a change is worth
	// an epoch. A quarter of it is enough if the same region had an error in
	// the same direction for persistence periods.
	Hysteresis rules.PPM
	// Step is the most that moves between regions in one epoch, 10,000 or more.
	// A moving share is unusable until all regions have acknowledged the epoch.
	Step rules.PPM
	// Evidence is the number of hits to gather before weights change: the
	// shares of a few hits are noise.
	Evidence uint64
	// Pins are the weights that the operator set. They apply at once; the other
	// regions share the rest.
	Pins []Pin
}

// persistence is the number of periods after which a small error is not noise.
const persistence = 8

// billion is the unit of the smoothed demand. It is finer than a weight, so
// that smoothing reaches the demand.
const billion = 1_000_000_000

// DefaultRebalance returns the configuration for most rules: half the way per
// period, 15 % equal shares, 10 % hysteresis, steps of at most 25 %, and 500
// hits of evidence.
func DefaultRebalance(regions int) RebalanceConfig {
	return RebalanceConfig{
		Regions: regions, Alpha: 50 * percent, Equal: 15 * percent, Hysteresis: 10 * percent, Step: 25 * percent,
		Evidence: 500,
	}
}

// Validate returns an error with the fault and a valid value.
func (c *RebalanceConfig) Validate() error {
	if c.Regions < 1 || c.Regions > MaxRegions {
		return fmt.Errorf("weights for %d regions, want 1 to %d", c.Regions, MaxRegions)
	}
	return validatePins(c.Pins, c.Regions)
}

// validatePins checks that pinned weights leave a share for all other regions.
func validatePins(pins []Pin, regions int) error {
	seen, sum := uint64(0), uint64(0)
	for _, p := range pins {
		switch {
		case p.Region < 0 || p.Region >= regions:
			return fmt.Errorf("a weight is pinned for region %d, want 0 to %d", p.Region, regions-1)
		case seen&(1<<p.Region) != 0:
			return fmt.Errorf("the weight of region %d is pinned twice, want once", p.Region)
		}
		seen |= 1 << p.Region
		sum += uint64(p.Share)
	}
	switch {
	case sum > whole:
		return fmt.Errorf("pinned weights sum to %v, want at most 100%%", shown(sum))
	case len(pins) == regions && regions > 0 && sum != whole:
		return fmt.Errorf("the weights of all regions are pinned and sum to %v, want 100%%", shown(sum))
	case sum == whole && len(pins) < regions:
		return fmt.Errorf("pinned weights sum to 100%%, which leaves nothing for %d other regions: pin "+
			"these to 0%% or the others to less",
			regions-len(pins))
	}
	return nil
}

// shown converts a sum of shares for a message, without overflow.
func shown(sum uint64) rules.PPM { return rules.PPM(min(sum, 1<<32-1)) }

// Rebalancer derives weights from the demand of the regions, period by period.
// It is deterministic: two of them with the same inputs return the same
// weights. It is not safe for concurrent use.
type Rebalancer struct {
	cfg    RebalanceConfig
	rest   uint64   // the part without pins, in parts per million
	free   []int    // regions that are not pinned
	gather []uint64 // their demand since it was last smoothed, 0 for pinned
	smooth []uint64 // their demand shares in parts of a billion, 0 for pinned
	seen   uint64   // demands smoothed so far, and the equal one that it starts from

	// The error that persists: of which region, in which direction.
	leaning int
	upward  bool
	leant   int // periods so far
}

// NewRebalancer returns a rebalancer that starts from equal demand.
func NewRebalancer(cfg RebalanceConfig) (*Rebalancer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Pins = slices.Clone(cfg.Pins)
	r := &Rebalancer{cfg: cfg, rest: whole, gather: make([]uint64, cfg.Regions)}
	for _, p := range cfg.Pins {
		r.rest -= uint64(p.Share)
	}
	for i := range cfg.Regions {
		if !slices.ContainsFunc(cfg.Pins, func(p Pin) bool { return p.Region == i }) {
			r.free = append(r.free, i)
		}
	}
	r.smooth, r.seen = r.split(billion, slices.Repeat([]uint64{1}, cfg.Regions)), 1
	return r, nil
}

// Propose returns new weights that sum to 1,000,000, or nil if a change is not
// worth an epoch. demand is the admitted and denied hits of each region in the
// last period, current the weights of the latest epoch. Call it every period,
// and drop the result while an epoch is unsettled. If current does not sum to
// 1,000,000, or has other pins than the configuration, Propose returns
// corrected weights whatever the demand.
func (r *Rebalancer) Propose(demand []uint64, current []rules.PPM) ([]rules.PPM, error) {
	if len(demand) != r.cfg.Regions || len(current) != r.cfg.Regions {
		return nil, fmt.Errorf("demand of %d regions and weights of %d, want %d of each",
			len(demand), len(current), r.cfg.Regions)
	}
	enough := r.observe(demand)
	now, repinned := r.base(current)
	target := r.target()
	if !repinned && (!enough || !r.worth(now, target)) {
		return nil, nil
	}
	next := toPPM(r.bounded(now, target))
	if slices.Equal(next, current) {
		return nil, nil
	}
	r.leant = 0
	return next, nil
}

// Target returns the weights that steady demand like the present one leads to.
func (r *Rebalancer) Target() []rules.PPM { return toPPM(r.target()) }

// observe smooths the gathered demand; false if it is too little.
func (r *Rebalancer) observe(demand []uint64) bool {
	const most = 1 << 56 // The sum over MaxRegions cannot overflow.
	gathered := uint64(0)
	for _, i := range r.free {
		r.gather[i] = min(r.gather[i]+min(demand[i], most), most)
		gathered += r.gather[i]
	}
	if gathered < max(r.cfg.Evidence, 1) {
		return false
	}
	// At first all periods count alike, so that slow smoothing does not keep
	// the initial equal demand for long.
	r.seen = min(r.seen+1, whole)
	alpha := max(uint64(r.cfg.Alpha), whole/r.seen)
	for i, s := range r.split(billion, r.gather) {
		r.smooth[i] = (r.smooth[i]*(whole-alpha) + s*alpha) / whole
	}
	clear(r.gather)
	return true
}

// target mixes smoothed demand with equal shares. The mix is linear, so
// smoothing the demand before it equals smoothing the weights after it.
func (r *Rebalancer) target() []uint64 {
	sum := uint64(0)
	for _, s := range r.smooth {
		sum += s
	}
	mixed := make([]uint64, len(r.smooth))
	for _, i := range r.free {
		mixed[i] = r.smooth[i]*(whole-uint64(r.cfg.Equal)) + sum*uint64(r.cfg.Equal)/uint64(len(r.free))
	}
	return r.pinned(mixed)
}

// base returns the weights to start from: current, or, if its pins are not
// those of the configuration, current with these pins and the others scaled to
// fit.
func (r *Rebalancer) base(current []rules.PPM) (now []uint64, repinned bool) {
	now = make([]uint64, len(current))
	sum := uint64(0)
	for i, w := range current {
		now[i] = uint64(w)
		sum += uint64(w)
	}
	repinned = sum != whole
	for _, p := range r.cfg.Pins {
		repinned = repinned || current[p.Region] != p.Share
	}
	if repinned {
		now = r.pinned(now)
	}
	return now, repinned
}

// worth reports whether a weight is wrong by enough, or for long enough.
func (r *Rebalancer) worth(now, target []uint64) bool {
	worst, upward, err := -1, false, uint64(0) // The error is relative, in parts per million.
	for i := range now {
		if now[i] == target[i] {
			continue
		}
		lo, hi := min(now[i], target[i]), max(now[i], target[i])
		if e := (hi - lo) * whole / hi; e > err {
			worst, upward, err = i, target[i] > now[i], e
		}
	}
	if worst < 0 || err < uint64(r.cfg.Hysteresis)/4 {
		r.leant = 0
		return false
	}
	if worst != r.leaning || upward != r.upward {
		r.leaning, r.upward, r.leant = worst, upward, 0
	}
	r.leant++
	return err >= uint64(r.cfg.Hysteresis) || r.leant >= persistence
}

// bounded moves from now towards target, by Step at most.
func (r *Rebalancer) bounded(now, target []uint64) []uint64 {
	moves := uint64(0)
	for i := range now {
		moves += max(now[i], target[i]) - min(now[i], target[i])
	}
	moves /= 2
	if moves <= uint64(r.cfg.Step) {
		return target
	}
	step := uint64(r.cfg.Step) - uint64(len(r.free)) // Rounding may add one each.
	between := make([]uint64, len(now))
	for i := range now {
		between[i] = now[i]*(moves-step) + target[i]*step
	}
	return r.pinned(between)
}

// split apportions total among the regions without pins; the others get 0.
func (r *Rebalancer) split(total uint64, weights []uint64) []uint64 {
	free := make([]uint64, len(r.free))
	for k, i := range r.free {
		free[k] = weights[i]
	}
	parts := make([]uint64, len(weights))
	for k, part := range apportion(total, free) {
		parts[r.free[k]] = part
	}
	return parts
}

// pinned returns the pinned weights, and the rest split by the others of
// weights.
func (r *Rebalancer) pinned(weights []uint64) []uint64 {
	parts := r.split(r.rest, weights)
	for _, p := range r.cfg.Pins {
		parts[p.Region] = uint64(p.Share)
	}
	return parts
}

// toPPM converts weights that sum to a million.
func toPPM(weights []uint64) []rules.PPM {
	out := make([]rules.PPM, len(weights))
	for i, w := range weights {
		out[i] = rules.PPM(w)
	}
	return out
}
