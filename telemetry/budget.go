package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/node"
)

// Budgets tells how far rules go over their limits. It is asked once a scrape.
// Implementations are safe for concurrent use and do not wait for peers.
type Budgets interface {
	BudgetStats() BudgetStats
}

// BudgetStats is a snapshot. It is only read, never kept beyond the scrape.
type BudgetStats struct {
	// Rules are those that daemons count together, each pair of names once and
	// of a bounded number.
	Rules []RuleBudget
	// Epochs counts the epochs of each table by state, of a daemon that can hold
	// rights.
	Epochs []EpochCount
}

// RuleBudget is one rule. Ratios are parts of its limit.
type RuleBudget struct {
	Domain, Rule string
	// Achieved is the overage of the busiest key in the label that runs, Bound the
	// worst case; nil for unknown, and for none.
	Achieved, Bound *float64
	// Rights says that rights hold the bound. What follows is of such rules.
	Rights bool
	Budget float64
	// Held is the hits of a label that the daemon holds rights to.
	Held uint64
	// Weights are the regions' parts of the rights.
	Weights []RegionWeight
}

// RegionWeight is the part of a region, of 1.
type RegionWeight struct {
	Region string
	Weight float64
}

// EpochCount is how many epochs of a table are in a state.
type EpochCount struct {
	Table, State string
	Count        int
}

// maxWeights bounds the series of weights of all rules together. Those of the
// rules beyond it are left out.
const maxWeights = 10_000

// budgetCollector reads Budgets at each scrape.
type budgetCollector struct {
	budgets Budgets
	engine  Engine

	achieved, bound, budget, held, weight *prometheus.Desc
	denials, donated, received, epochs    *prometheus.Desc
}

func newBudgetCollector(b Budgets, e Engine) *budgetCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("rld_"+name, help, labels, nil)
	}
	return &budgetCollector{
		budgets: b, engine: e,
		achieved: desc("overage_ratio",
			"By how much the busiest key is over its limit in the window that runs, as a part of the limit.",
			"domain", "rule"),
		bound: desc("overage_bound_ratio", "The same in the worst case.", "domain", "rule"),
		budget: desc("overage_budget_ratio",
			"The overage_budget of a rule with rights; 0 for consistency partition.", "domain", "rule"),
		held: desc("rights_held_hits",
			"Hits of a window that this daemon may admit to a key of the rule without asking anybody.", "domain", "rule"),
		weight: desc("weight_ratio", "The part of a region of the rights of a rule.", "domain", "rule", "region"),
		denials: desc("gate_denials_total",
			"Descriptors that were refused, by the gates that refused them: estimate, rights, or both; home, or failure where none could be asked.", "gate"),
		donated:  desc("rights_given_hits_total", "Rights that this daemon gave to others, in hits."),
		received: desc("rights_received_hits_total", "Rights that others gave to this daemon, in hits."),
		epochs: desc("epochs",
			"Agreements on who holds which part of the rights, by table and whether they are settled.", "table", "state"),
	}
}

// Describe implements prometheus.Collector.
func (c *budgetCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.achieved, c.bound, c.budget, c.held, c.weight, c.denials, c.donated, c.received, c.epochs,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *budgetCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.budgets.BudgetStats()
	w := metricWriter(ch)
	weights := 0
	for i := range s.Rules {
		r := &s.Rules[i]
		if r.Achieved != nil {
			w.gauge(c.achieved, *r.Achieved, r.Domain, r.Rule)
		}
		if r.Bound != nil {
			w.gauge(c.bound, *r.Bound, r.Domain, r.Rule)
		}
		if !r.Rights {
			continue
		}
		w.gauge(c.budget, r.Budget, r.Domain, r.Rule)
		w.gauge(c.held, float64(r.Held), r.Domain, r.Rule)
		if weights += len(r.Weights); weights > maxWeights {
			continue
		}
		for _, x := range r.Weights {
			w.gauge(c.weight, x.Weight, r.Domain, r.Rule, labelText(x.Region))
		}
	}
	for _, e := range s.Epochs {
		w.gauge(c.epochs, float64(e.Count), e.Table, e.State)
	}
	stats := c.engine.Stats()
	for i, n := range stats.Refusals {
		if g := node.Gate(i); g != node.NoGate {
			w.count(c.denials, n, g.String())
		}
	}
	w.count(c.donated, stats.Given)
	w.count(c.received, stats.Received)
}
