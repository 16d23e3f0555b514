package overage

import (
	"fmt"
	"slices"

	"github.com/georld/rld/rules"
)

const (
	percent = 10_000
	whole   = 1_000_000
)

// Mode is how the regions share a limit.
type Mode uint8

// The modes.
const (
	Eventual  Mode = iota // by estimate, and by rights when the rule has a budget
	Partition             // by rights that sum to the limit: a budget of zero
	Strict                // they do not: the owner of the key counts for all
)

// The bounds of a rule.
const (
	MaxRegions = 64
	MaxLimit   = 1 << 36 // hits; a limit and its budget are then exact in 64 bits
	mostBudget = (MaxRegions - 1) * whole
)

// Rule describes a limit for a report. The zero value is not valid; see
// Validate.
type Rule struct {
	Name      string    // as in the limits file, for sentences
	Limit     uint64    // hits per window, 1 to MaxLimit
	WindowMs  int64     // length of a window, at least 1
	Mode      Mode      // how regions share the limit
	HasBudget bool      // Eventual only: false leaves the estimate gate alone
	Budget    rules.PPM // 0 to (regions-1) x 100 %, of one region its daemons' part; unused without HasBudget
	Open      bool      // hits pass without an owner or rights: nothing is bounded
	Regions   []string  // names; Traffic and Link are by index into it
	Pins      []Pin     // weights that the operator set
}

// Pin is a weight that the operator set: the share of a region by its index.
type Pin struct {
	Region int
	Share  rules.PPM
}

// Validate returns an error with the fault and a valid value.
func (r *Rule) Validate() error {
	switch {
	case len(r.Regions) == 0 || len(r.Regions) > MaxRegions:
		return fmt.Errorf("rule %q has %d regions, want 1 to %d", r.Name, len(r.Regions), MaxRegions)
	case r.Limit == 0 || r.Limit > MaxLimit:
		return fmt.Errorf("rule %q has a limit of %d hits, want 1 to %d", r.Name, r.Limit, uint64(MaxLimit))
	case r.WindowMs < 1:
		return fmt.Errorf("rule %q has a window of %d ms, want at least 1", r.Name, r.WindowMs)
	case r.Mode > Strict:
		return fmt.Errorf("rule %q has mode %d, want eventual, partition or strict", r.Name, r.Mode)
	case r.Mode == Eventual && r.HasBudget && r.Budget > mostBudget:
		return fmt.Errorf("rule %q has an overage budget of %v, want at most %v", r.Name, r.Budget, rules.PPM(mostBudget))
	case r.Mode == Eventual && r.HasBudget && len(r.Regions) > 1 && r.Budget > r.largest():
		return fmt.Errorf("rule %q has an overage budget of %v, want 0%% to %v: %d regions without any "+
			"budget never exceed that",
			r.Name, r.Budget, r.largest(), len(r.Regions))
	}
	for i, name := range r.Regions {
		if slices.Contains(r.Regions[:i], name) {
			return fmt.Errorf("rule %q names region %q twice, want each once", r.Name, name)
		}
	}
	if err := validatePins(r.Pins, len(r.Regions)); err != nil {
		return fmt.Errorf("rule %q: %w", r.Name, err)
	}
	return nil
}

// largest returns the overage that regions without a budget cannot exceed.
func (r *Rule) largest() rules.PPM { return rules.PPM(len(r.Regions)-1) * whole }

// gated returns the budget that the rights gate enforces, false without one. An
// open rule has it while daemons have rights.
func (r *Rule) gated() (rules.PPM, bool) {
	switch r.Mode {
	case Partition:
		return 0, true
	case Strict:
		return 0, !r.Open
	}
	return r.Budget, r.HasBudget
}

// holders returns the word for the participants that share the rights.
func (r *Rule) holders() string {
	if len(r.Regions) == 1 {
		return "daemons"
	}
	return "regions"
}

// rights returns the sum of all rights of a window under budget b, rounded
// down. limit is at most MaxLimit and b at most MaxRegions x whole, so nothing
// overflows.
func rights(limit uint64, b rules.PPM) uint64 { return limit * (whole + uint64(b)) / whole }
