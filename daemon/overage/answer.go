package overage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// Answer answers /v1/budget, except for the time. It returns an
// *api.UnknownRuleError if no observed rule has the name.
func (m *Monitor) Answer(q api.BudgetQuery) (api.BudgetAnswer, error) {
	at := m.Engine.Now()
	now := m.Engine.Time(at).Millis()
	m.sample(at)
	tallies, members := m.tallies(), m.daemons(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	out := api.BudgetAnswer{Region: m.Region, Daemon: m.Name, Omitted: m.omitted, Rights: m.rights()}
	for i, name := range m.Regions {
		v := api.RegionView{Region: name}
		r := &m.views.regions[i]
		if r.n > 0 {
			v.StalenessSeconds = api.Seconds(r.now.age)
		}
		if r.now.rtt > 0 {
			v.RTTSeconds = api.Seconds(r.now.rtt)
		}
		out.Views = append(out.Views, v)
	}
	var names []string
	for _, r := range m.rules {
		own := Names(r.rule)
		names = append(names, own...)
		if q.Rule == "" || slices.Contains(own, q.Rule) {
			out.Rules = append(out.Rules, m.describe(r, q.Target, now, members, tallies[r.id]))
		}
	}
	if q.Rule != "" && len(out.Rules) == 0 {
		return out, UnknownRule(q.Rule, names)
	}
	return out, nil
}

// UnknownRule returns the error for a name that is none of names.
func UnknownRule(name string, names []string) error {
	return &api.UnknownRuleError{Rule: name, Closest: suggest.Closest(name, names)}
}

// WorstRule returns the rule that used most of its bound within the last hour,
// nil if none exceeded its limit.
func (m *Monitor) WorstRule() *api.RuleUse {
	at := m.Engine.Now()
	now, members := m.Engine.Time(at).Millis(), m.daemons(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	var worst *api.RuleUse
	most := 0.0
	for _, r := range m.rules {
		_, over := r.achieved(now)
		if over == nil || *over <= 0 {
			continue
		}
		bound, used := m.bound(r, members), *over
		if bound != nil && *bound > 0 {
			used /= *bound
		}
		if worst == nil || used > most {
			worst, most = UseOf(r.rule), used
			worst.Overage, worst.Bound = over, bound
		}
	}
	return worst
}

// daemons returns the number of live daemons of the region, including this one.
func (m *Monitor) daemons(at node.Instant) int {
	n := 1
	for _, l := range m.Engine.Links(at) {
		if l.Peer.Region == m.Region {
			n++
		}
	}
	return n
}

// tallies returns the outcomes of rules, by shared name.
func (m *Monitor) tallies() map[uint64]quota.Tally {
	type name struct{ domain, rule string }
	sums := make(map[name]quota.Tally)
	m.Engine.Tallies(func(domain, rule string, t quota.Tally) {
		n := name{domain, rule}
		sums[n] = sums[n].Plus(t)
	})
	out := make(map[uint64]quota.Tally)
	for _, r := range m.Engine.Rules().Rules() {
		if r.Limit != nil && r.Limit.Window() > 0 {
			out[r.Shared()] = sums[name{r.Domain, r.Path}]
		}
	}
	return out
}

// subject returns the rule as package quota/overage reads it.
func (f *ruleLog) subject() overage.Rule {
	l := f.rule.Limit
	b := node.Busy{Rule: f.rule, Length: quota.Of(l).ReportLength()}
	r := overage.Rule{
		Name: RuleName(f.rule), Limit: b.Fits(), WindowMs: b.Length, Regions: f.regions,
	}
	switch {
	case f.strict():
		r.Mode = overage.Strict
	case !f.gated:
	case l.Consistency == rules.Partition:
		r.Mode = overage.Partition
	default:
		r.HasBudget, r.Budget = true, l.Budget
	}
	r.Open = (f.gated || f.strict()) && l.OnFailure == rules.Allow
	for _, w := range l.Weights {
		if i := slices.Index(f.regions, w.Region); i >= 0 && !f.regional {
			r.Pins = append(r.Pins, overage.Pin{Region: i, Share: w.Share})
		}
	}
	return r
}

// describe returns the state of one rule.
func (m *Monitor) describe(f *ruleLog, target float64, now int64, members int, t quota.Tally) api.RuleBudget {
	l, subject := f.rule.Limit, f.subject()
	out := api.RuleBudget{
		Domain: f.rule.Domain, Rule: f.rule.Path, Name: l.Name,
		Algorithm: l.Algorithm.String(), Consistency: l.Consistency.String(), Scope: ScopeName(l.Scope),
		Shadow: f.shadow, Limit: subject.Limit, WindowSeconds: float64(subject.WindowMs) / 1000,
		DeniedRights: t.DeniedRights, Stranded: t.Stranded, Offered: t.Offered,
	}
	out.Achieved, out.AchievedWorst = f.achieved(now)
	if l.HasRights() {
		out.Budget, out.Placement = new(budgetOf(l).Ratio()), cmp.Or(l.Placed, rules.Spread).String()
	}
	if f.strict() {
		out.Placement = rules.Owner.String()
	}
	out.Bound, out.Bounded = m.bound(f, members), f.bounded()
	m.shares(f, &out, now)
	m.report(f, &out, subject, target)
	return out
}

// strict reports whether owners consume the limit.
func (f *ruleLog) strict() bool { return f.rule.Limit.Consistency == rules.Strict }

// bounded reports whether rights enforce the bound under every fault.
func (f *ruleLog) bounded() bool {
	return !f.shadow && (f.gated || f.strict()) && f.rule.Limit.OnFailure != rules.Allow
}

// bound returns the worst case: the budget, or one limit for each further
// region or daemon that may be partitioned. It is nil if nothing is denied, or
// on_failure admits hits without an owner or rights.
func (m *Monitor) bound(f *ruleLog, members int) *float64 {
	switch {
	case f.shadow || !f.bounded() && (f.strict() || f.gated):
		return nil
	case f.bounded():
		return new(budgetOf(f.rule.Limit).Ratio())
	case len(f.regions) > 1:
		return new(float64(len(f.regions) - 1))
	}
	return new(float64(max(members, 1) - 1))
}

// total returns the rights to a rule in the current window, and the window as
// Agent names it.
func (f *ruleLog) total(now int64) (total uint64, x, carry int64) {
	l := f.rule.Limit
	x, carry = quota.Of(l).RightsWindow(now)
	if total = l.Total(); quota.Of(l).Drains() {
		total = l.TotalBurst()
	}
	return total, x, carry
}

// shares sets the shares of the rights of the current window, and the admitted
// hits of each region.
func (m *Monitor) shares(f *ruleLog, out *api.RuleBudget, now int64) {
	current, weights := f.current(now), m.weights(f)
	var total uint64
	var x, carry int64
	if f.gated {
		total, x, carry = f.total(now)
		held, why := m.Agent.Allotment(f.id, total, x, carry, f.regional)
		if out.Held = held; held == 0 {
			out.WhyNot = m.Agent.WhyNot(why)
		}
	}
	for i, name := range f.regions {
		r := api.RegionShare{Region: name}
		if f.gated {
			r.Weight, r.Rights = new(weights[i].Ratio()), new(total)
			if !f.regional {
				*r.Rights = m.Agent.RegionPart(name, f.id, total, x, carry)
			}
		}
		if current != nil {
			r.Admitted = current.Regions[i].Admitted
		}
		out.Regions = append(out.Regions, r)
	}
}

// report sets the results of the history.
func (m *Monitor) report(f *ruleLog, out *api.RuleBudget, subject overage.Rule, target float64) {
	if f.history == nil {
		out.Explanation = []string{"The counts of a sliding log are not known by region: only its bound and its achieved overage are."}
		return
	}
	m.setLinks(f)
	want := overage.DefaultTarget
	if target >= 0 {
		want = rules.PPM(target * float64(rules.Whole))
	}
	p, err := f.history.Report(subject, want)
	if err != nil { // a limit of 0
		out.Explanation = []string{sentence(err.Error())}
		return
	}
	e := overage.Explain(p)
	out.Explanation = e[:]
	out.Recommended = sentence(p.Recommended.String() + ". " + p.Reason)
	out.Alarms, out.Windows, out.Gated = p.Alarms, p.Windows, p.Gated
	if lag, short := m.short(f); short {
		out.Alarms = append(out.Alarms, lag.String())
	}
	if p.Windows > 0 {
		out.Headroom = new(p.Headroom)
	}
	if p.Crossings > 0 {
		out.Predicted = &p.Predicted.Ratio
		if out.Bound != nil {
			out.Predicted = new(min(p.Predicted.Ratio, *out.Bound))
		}
	}
	if p.Gated > 0 {
		out.FalseDenials = new(p.FalseDenials)
	}
	if target >= 0 {
		out.Advice = advise(f, subject, want)
	}
}

// sentence capitalizes s and ends it with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

// advise returns the budget that meets a target of false denials.
func advise(f *ruleLog, subject overage.Rule, target rules.PPM) *api.Advice {
	a := &api.Advice{Target: target.Ratio()}
	if len(subject.Regions) == 1 {
		a.Problem = "the limit counts in one region, and demand is known by region only: " +
			"raise overage_budget until rld budget shows no false denials"
		return a
	}
	found, err := overage.Advise(f.history, subject, target)
	switch {
	case errors.Is(err, overage.ErrNoTraffic):
		a.Problem = overage.ErrNoTraffic.Error()
		return a
	case err != nil:
		a.Problem = strings.TrimPrefix(err.Error(), fmt.Sprintf("rule %q: ", subject.Name))
		return a
	}
	a.YAML, a.Text = found.YAML, found.Text
	a.Budget, a.Bound = found.Budget.Ratio(), found.Bound.Ratio
	a.Predicted, a.FalseDenials = found.Predicted.Ratio, found.FalseDenials
	return a
}

// setLinks sets the staleness between regions in the history of a rule. Only
// the views of this daemon are known. The views of other regions of this one
// are assumed to be as old; the views between two other regions as old as the
// older one.
func (m *Monitor) setLinks(f *ruleLog) {
	if f.regional {
		return
	}
	links := make([]overage.Link, len(m.Regions))
	for i, name := range m.Regions {
		if name == m.Region {
			continue
		}
		r := &m.views.regions[i]
		p50, p99, most := r.quantiles()
		links[i] = overage.Link{
			AgeP50Ms: p50, AgeP99Ms: p99, AgeMaxMs: most, AgeNowMs: max(0, r.now.age.Milliseconds()), RTTMs: r.now.rtt.Milliseconds(),
		}
	}
	own := max(0, slices.Index(m.Regions, m.Region))
	for i := range links {
		for j := range links {
			l := links[i]
			if i == own || links[j].AgeP50Ms > l.AgeP50Ms {
				l = links[j]
			}
			if i != own && j != own {
				l.AgeNowMs = min(l.AgeNowMs, l.AgeP99Ms) // whether they are partitioned now is unknown
			}
			if i != j {
				f.history.SetLink(i, j, l)
			}
		}
	}
}

// rights returns the state of the rights agent, nil without one.
func (m *Monitor) rights() *api.RightsState {
	if m.Agent == nil {
		return nil
	}
	s := m.Agent.Status()
	out := &api.RightsState{Holds: s.Holds, StoreFault: s.Failing, Since: UnixMs(s.Since), Regions: EpochStates(s.Regions), Daemons: EpochStates(s.Daemons)}
	if !s.Holds {
		out.WhyNot = m.Agent.WhyNot(s.Reason)
	}
	return out
}
