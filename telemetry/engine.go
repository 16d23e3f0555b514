package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// TallySource tells what became of calls, by rule.
type TallySource interface {
	// Tallies calls yield any number of times for a rule; what it brings is
	// added up. Names that are empty stand for overrides on descriptors that
	// no rule matches.
	Tallies(yield func(domain, rule string, t quota.Tally))
}

// Engine is what is asked at each scrape, so that a decision pays for no
// counter of ours. Implementations are safe for concurrent use.
type Engine interface {
	TallySource
	// Unmatched returns how many descriptors no rule matched: those of
	// domains that have rules, and those of domains that have none.
	Unmatched() (known, unknown uint64)
	// Stats returns the sum over the shards.
	Stats() node.Stats
	// Rules returns the rules in force.
	Rules() *rules.Set
}

// overrideRule is the label of overrides without a rule. Their domain is
// empty, which no rule's is.
const overrideRule = "override"

// engineCollector reads an Engine at each scrape.
type engineCollector struct {
	engine Engine

	decisions, hits, unmatched, degraded *prometheus.Desc
	liveKeys, maxKeys, overflowKeys      *prometheus.Desc
	rules, clockOffset, clockSteps       *prometheus.Desc
}

func newEngineCollector(e Engine) *engineCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("rld_"+name, help, labels, nil)
	}
	return &engineCollector{
		engine: e,
		decisions: desc("decisions_total",
			"Descriptors answered: allowed, denied, or shadowed (over, in shadow mode). "+
				"Under the global shadow mode a call that passed counts as what it would have been. "+
				"Rule override with an empty domain is limits that came with requests.",
			"domain", "rule", "outcome"),
		hits: desc("hits_total",
			"Hits: within the limit, near it (above the near-limit ratio), or over it.",
			"domain", "rule", "outcome"),
		unmatched: desc("unmatched_total",
			"Descriptors without a rule, in domains that have rules (known) or none.",
			"domain"),
		degraded: desc("degraded_total",
			"Descriptors whose answer was less than exact, by reason.", "reason"),
		liveKeys: desc("live_keys", "Keys that are tracked."),
		maxKeys:  desc("max_keys", "Keys that can be tracked; new ones beyond it share overflow counters."),
		overflowKeys: desc("overflow_keys",
			"Overflow counters in use; above 0, new keys may be denied falsely."),
		rules: desc("config_rules", "Rules in force, entries without a limit included."),
		clockOffset: desc("clock_offset_seconds",
			"How far the clock that windows follow is ahead of the wall clock."),
		clockSteps: desc("clock_steps_total",
			"Steps of the wall clock, as when it is set, by direction.", "direction"),
	}
}

// Describe implements prometheus.Collector.
func (c *engineCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.decisions, c.hits, c.unmatched, c.degraded,
		c.liveKeys, c.maxKeys, c.overflowKeys, c.rules, c.clockOffset, c.clockSteps,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *engineCollector) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	for _, r := range c.rows() {
		count(c.decisions, r.tally.Allowed, r.domain, r.rule, "allowed")
		count(c.decisions, r.tally.Denied, r.domain, r.rule, "denied")
		count(c.decisions, r.tally.Shadowed, r.domain, r.rule, "shadowed")
		count(c.hits, r.tally.HitsWithin, r.domain, r.rule, "within")
		count(c.hits, r.tally.HitsNear, r.domain, r.rule, "near")
		count(c.hits, r.tally.HitsOver, r.domain, r.rule, "over")
	}
	known, unknown := c.engine.Unmatched()
	count(c.unmatched, known, "known")
	count(c.unmatched, unknown, "unknown")

	stats := c.engine.Stats()
	for i, n := range stats.Degraded {
		if reason := node.Degraded(i); reason != node.NotDegraded {
			count(c.degraded, n, reason.String())
		}
	}
	gauge(c.liveKeys, float64(stats.LiveKeys))
	gauge(c.maxKeys, float64(stats.MaxKeys))
	gauge(c.overflowKeys, float64(stats.OverflowKeys))
	gauge(c.rules, float64(len(c.engine.Rules().Rules())))
	gauge(c.clockOffset, time.Duration(stats.ClockOffset).Seconds())
	count(c.clockSteps, stats.ClockForward, "forward")
	count(c.clockSteps, stats.ClockBackward, "backward")
}

// row is the tally of one pair of labels.
type row struct {
	label
	tally quota.Tally
}

type label struct{ domain, rule string }

// rows returns a row for each rule that has a limit, so that a series begins
// at 0 and its first denial is seen as an increase, and for what else was
// counted. Rules with the same labels share one.
func (c *engineCollector) rows() []row {
	sums := make(map[label]quota.Tally)
	for _, r := range c.engine.Rules().Rules() {
		if r.Limit != nil && !r.Limit.Unlimited {
			sums[label{r.Domain, r.Path}] = quota.Tally{}
		}
	}
	c.engine.Tallies(func(domain, rule string, t quota.Tally) {
		if t == (quota.Tally{}) {
			return
		}
		l := label{domain, rule}
		if l == (label{}) {
			l.rule = overrideRule
		}
		sums[l] = sums[l].Plus(t)
	})
	out := make([]row, 0, len(sums))
	for _, l := range slices.SortedFunc(maps.Keys(sums), label.compare) {
		out = append(out, row{l, sums[l]})
	}
	return out
}

func (l label) compare(o label) int {
	return cmp.Or(cmp.Compare(l.domain, o.domain), cmp.Compare(l.rule, o.rule))
}
