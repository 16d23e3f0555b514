package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Engine is read at each scrape, so that decisions need no counters of their
// own here. Implementations are safe for concurrent use.
type Engine interface {
	// Tallies calls yield with the outcomes of each rule, any number of times
	// for one rule; their sum counts. Empty names are those of overrides on
	// descriptors without a rule.
	Tallies(yield func(domain, rule string, t quota.Tally))
	// Unmatched returns the number of descriptors without a rule, in domains
	// with rules and in domains without any.
	Unmatched() (known, unknown uint64)
	// Stats returns the sum over the shards.
	Stats() node.Stats
	// Rules returns the rules in force.
	Rules() *rules.Set
}

// overrideRule is the label of overrides without a rule. Their domain is empty,
// unlike that of any rule.
const overrideRule = "override"

func newEngineCollector(e Engine) *collector {
	return newCollector(engineFamilies, func(w *writer) {
		sums := tallies(e)
		for _, r := range slices.SortedFunc(maps.Keys(sums), ruleLabels.compare) {
			t := sums[r]
			put(w, "decisions_total", t.Allowed, r.domain, r.rule, "allowed")
			put(w, "decisions_total", t.Denied, r.domain, r.rule, "denied")
			put(w, "decisions_total", t.Shadowed, r.domain, r.rule, "shadowed")
			put(w, "hits_total", t.HitsWithin, r.domain, r.rule, "within")
			put(w, "hits_total", t.HitsNear, r.domain, r.rule, "near")
			put(w, "hits_total", t.HitsOver, r.domain, r.rule, "over")
			put(w, "rule_keys", t.Keys, r.domain, r.rule)
			put(w, "keys_full_total", t.KeysFull, r.domain, r.rule)
		}
		known, unknown := e.Unmatched()
		put(w, "unmatched_total", known, "known")
		put(w, "unmatched_total", unknown, "unknown")

		stats := e.Stats()
		for i, n := range stats.Degraded {
			if reason := node.Degraded(i); reason != node.NotDegraded {
				put(w, "degraded_total", n, reason.String())
			}
		}
		put(w, "live_keys", stats.LiveKeys)
		put(w, "max_keys", stats.MaxKeys)
		put(w, "overflow_keys", stats.OverflowKeys)
		put(w, "config_rules", len(e.Rules().Rules()))
		w.float("clock_offset_seconds", time.Duration(stats.ClockOffset).Seconds())
		put(w, "clock_steps_total", stats.ClockForward, "forward")
		put(w, "clock_steps_total", stats.ClockBackward, "backward")
	})
}

// ruleLabels are the labels of a rule.
type ruleLabels struct{ domain, rule string }

func (l ruleLabels) compare(o ruleLabels) int {
	return cmp.Or(cmp.Compare(l.domain, o.domain), cmp.Compare(l.rule, o.rule))
}

// tallies returns the outcomes of each rule with a limit, so that its series
// start at 0 and the first denial is an increase, and all others that are not
// zero. Rules with the same labels share a sum.
func tallies(e Engine) map[ruleLabels]quota.Tally {
	sums := make(map[ruleLabels]quota.Tally)
	for _, r := range e.Rules().Rules() {
		if r.Limit != nil && !r.Limit.Unlimited {
			sums[ruleLabels{r.Domain, r.Path}] = quota.Tally{}
		}
	}
	e.Tallies(func(domain, rule string, t quota.Tally) {
		if t == (quota.Tally{}) {
			return
		}
		l := ruleLabels{domain, rule}
		if l == (ruleLabels{}) {
			l.rule = overrideRule
		}
		sums[l] = sums[l].Plus(t)
	})
	return sums
}
