package report

import (
	"time"

	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// denials are the denied hits of each rule up to an instant.
type denials struct {
	at     time.Duration
	counts map[ruleKey]uint64
}

type ruleKey struct{ domain, path string }

// sampleDenials keeps the denied hits of now.
func (r *Report) sampleDenials() {
	now := r.countDenials()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied[0], r.denied[1] = r.denied[1], now
}

// countDenials returns the denied hits so far.
func (r *Report) countDenials() denials {
	d := denials{at: r.Engine.Now().Mono, counts: map[ruleKey]uint64{}}
	r.Engine.Tallies(func(domain, rule string, t quota.Tally) { d.counts[ruleKey{domain, rule}] += t.HitsOver })
	return d
}

// mostDenied returns the rule with the most recent denied hits, nil for none.
func (r *Report) mostDenied() *api.RuleUse {
	now := r.countDenials()
	r.mu.Lock()
	was := r.denied[0]
	if was.counts == nil {
		was = r.denied[1]
	}
	r.mu.Unlock()
	took := (now.at - was.at).Seconds()
	if was.counts == nil || took <= 0 {
		return nil
	}
	var most *rules.Rule
	worst := uint64(0)
	for _, rule := range r.Engine.Rules().Rules() { // the first of equal ones
		k := ruleKey{rule.Domain, rule.Path}
		if grown := now.counts[k] - min(now.counts[k], was.counts[k]); grown > worst {
			most, worst = rule, grown
		}
	}
	if most == nil {
		return nil
	}
	out := overage.UseOf(most)
	out.DeniedPerSecond = new(float64(worst) / took)
	return out
}
