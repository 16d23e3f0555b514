package telemetry

import "github.com/georld/rld/node"

// BudgetStats is a snapshot of the overage of rules. The scrape only reads it
// and does not keep it.
type BudgetStats struct {
	// Rules are the rules that several daemons count together. Their number is
	// bounded, and no two have the same names.
	Rules []RuleBudget
	// Usable reports whether the daemon has an allotment in windows that start
	// now, nil for a daemon without rights.
	Usable *bool
	// Epochs counts the epochs of each table by state. Empty for a daemon
	// without rights.
	Epochs []EpochCount
}

// RuleBudget is the overage of one rule. Ratios are fractions of its limit.
type RuleBudget struct {
	Domain, Rule string
	// Achieved is the overage of the busiest key in the current window, nil if
	// unknown. Bound is the worst case, nil if there is none.
	Achieved, Bound *float64
	// Rights reports that rights enforce the bound. Otherwise the fields below
	// are empty.
	Rights bool
	Budget float64
	// Held is the allotment of the daemon for a window, in hits.
	Held uint64
	// Weights are the shares of the regions.
	Weights []RegionWeight
}

// RegionWeight is the share of a region, a fraction of 1.
type RegionWeight struct {
	Region string
	Weight float64
}

// EpochCount is the number of epochs of a table in a state.
type EpochCount struct {
	Table, State string
	Count        int
}

// maxWeights bounds the series of weights. Rules above it have none.
const maxWeights = 10_000

func newBudgetCollector(read func() BudgetStats, e Engine) *collector {
	return newCollector(budgetFamilies, func(w *writer) {
		s := read()
		weights := 0
		for i := range s.Rules {
			r := &s.Rules[i]
			if r.Achieved != nil {
				w.float("overage_ratio", *r.Achieved, r.Domain, r.Rule)
			}
			if r.Bound != nil {
				w.float("overage_bound_ratio", *r.Bound, r.Domain, r.Rule)
			}
			if !r.Rights {
				continue
			}
			w.float("overage_budget_ratio", r.Budget, r.Domain, r.Rule)
			put(w, "rights_held_hits", r.Held, r.Domain, r.Rule)
			if weights += len(r.Weights); weights > maxWeights {
				continue
			}
			for _, x := range r.Weights {
				w.float("weight_ratio", x.Weight, r.Domain, r.Rule, labelText(x.Region))
			}
		}
		if s.Usable != nil {
			usable := 0
			if *s.Usable {
				usable = 1
			}
			put(w, "rights_usable", usable)
		}
		for _, e := range s.Epochs {
			put(w, "epochs", e.Count, e.Table, e.State)
		}
		stats := e.Stats()
		for i, n := range stats.Refusals {
			if g := node.Gate(i); g != node.NoGate {
				put(w, "gate_denials_total", n, g.String())
			}
		}
		put(w, "rights_given_hits_total", stats.Given)
		put(w, "rights_received_hits_total", stats.Received)
	})
}
