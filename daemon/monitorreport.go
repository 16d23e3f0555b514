package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// answer is what /v1/budget says. Its error is that of a rule that is not there.
func (m *monitor) answer(q api.BudgetQuery, daemon string) (api.BudgetAnswer, error) {
	at := m.engine.Now()
	now := m.engine.Time(at).Millis()
	m.look(at)
	tallies, members := m.tallies(), m.daemons(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	out := api.BudgetAnswer{Region: m.region, Daemon: daemon, Omitted: m.leftOut, Rights: m.rights()}
	for i, name := range m.regions {
		v := api.RegionView{Region: name}
		if r := &m.ages.regions[i]; r.seen {
			v.StalenessSeconds = api.Seconds(r.now)
		}
		if i < len(m.ages.rtt) && m.ages.rtt[i] > 0 {
			v.RTTSeconds = api.Seconds(m.ages.rtt[i])
		}
		out.Views = append(out.Views, v)
	}
	for _, f := range m.follows {
		if q.Rule != "" && !named(f.rule, q.Rule) {
			continue
		}
		out.Rules = append(out.Rules, m.describe(f, q.Target, now, members, tallies[f.id]))
	}
	if q.Rule != "" && len(out.Rules) == 0 {
		return out, m.unknown(q.Rule)
	}
	return out, nil
}

// daemons returns how many daemons of the region live, this one included.
func (m *monitor) daemons(at node.Instant) int {
	n := 1
	for _, l := range m.engine.Links(at) {
		if l.Peer.Region == m.region {
			n++
		}
	}
	return n
}

// named reports whether a text names a rule: by its name, its path, or its domain
// and path.
func named(r *rules.Rule, text string) bool {
	return text == r.Path || text == r.Limit.Name || text == ruleName(r)
}

// ruleName is what sentences call a rule.
func ruleName(r *rules.Rule) string { return r.Domain + ": " + r.Path }

func (m *monitor) unknown(text string) error {
	var names []string
	for _, f := range m.follows {
		names = append(names, f.rule.Path, ruleName(f.rule))
		if f.rule.Limit.Name != "" {
			names = append(names, f.rule.Limit.Name)
		}
	}
	slices.Sort(names) // a rule may be named as its path is
	return &api.UnknownRuleError{Rule: text, Closest: suggest.Closest(text, slices.Compact(names))}
}

// tallies returns what became of the hits of rules, by node.SharedRule.
func (m *monitor) tallies() map[uint64]quota.Tally {
	type name struct{ domain, rule string }
	sums := make(map[name]quota.Tally)
	m.engine.Tallies(func(domain, rule string, t quota.Tally) {
		n := name{domain, rule}
		sums[n] = sums[n].Plus(t)
	})
	out := make(map[uint64]quota.Tally)
	for _, r := range m.engine.Rules().Rules() {
		if r.Limit != nil && r.Limit.Window() > 0 {
			out[node.SharedRule(r)] = sums[name{r.Domain, r.Path}]
		}
	}
	return out
}

// subject is a rule as package budget sees it.
func (f *follow) subject() overage.Rule {
	l := f.rule.Limit
	b := node.Busy{Rule: f.rule, Length: l.Window()}
	if quota.Of(l).Drains() {
		_, b.Length, _ = quota.Of(l).Shared(&quota.Cell{}, 0)
	}
	r := overage.Rule{
		Name: ruleName(f.rule), Limit: b.Fits(), WindowMs: b.Length, Entity: f.rule.Entity, Regions: f.regions,
	}
	switch {
	case f.strict():
		r.Mode, r.Placement, r.Open = overage.Strict, overage.Owner, l.OnFailure == rules.Allow
	case !f.gated:
	case l.Consistency == rules.Partition:
		r.Mode = overage.Partition
	default:
		r.HasBudget, r.Budget = true, overage.PPM(l.Budget)
	}
	for _, w := range l.Weights {
		for i, name := range f.regions {
			if name == w.Region && !f.regional {
				r.Pins = append(r.Pins, overage.Pin{Region: i, Share: overage.PPM(w.Share)})
			}
		}
	}
	return r
}

// describe fills in one rule.
func (m *monitor) describe(f *follow, target float64, now int64, members int, t quota.Tally) api.RuleBudget {
	l, subject := f.rule.Limit, f.subject()
	out := api.RuleBudget{
		Domain: f.rule.Domain, Rule: f.rule.Path, Name: l.Name,
		Algorithm: l.Algorithm.String(), Consistency: l.Consistency.String(), Scope: scopeName(l.Scope),
		Shadow: f.shadow, Limit: subject.Limit, WindowSeconds: float64(subject.WindowMs) / 1000,
		DeniedRights: t.DeniedRights, Stranded: t.Stranded, Offered: t.Offered,
		Explanation: []string{}, Alarms: []string{},
	}
	out.Achieved, out.AchievedWorst = f.achieved(now)
	if l.HasRights() {
		out.Budget, out.Placement = new(budgetOf(l).Ratio()), cmp.Or(l.Placed, rules.Spread).String()
	}
	if f.strict() {
		out.Placement = rules.Owner.String()
	}
	out.Bound, out.Bounded = m.bound(f, members), f.held()
	m.shares(f, &out, now)
	m.report(f, &out, subject, target)
	return out
}

// strict reports whether homes hold the limit.
func (f *follow) strict() bool { return f.rule.Limit.Consistency == rules.Strict }

// held reports whether rights hold the bound, whatever happens.
func (f *follow) held() bool {
	return !f.shadow && (f.gated || f.strict() && f.rule.Limit.OnFailure != rules.Allow)
}

// bound is the worst case: the budget, or one limit of each who may not hear the
// others but the first; nil where nothing is refused, or not while a home is away.
func (m *monitor) bound(f *follow, members int) *float64 {
	switch {
	case f.shadow || f.strict() && !f.held():
		return nil
	case f.held():
		return new(budgetOf(f.rule.Limit).Ratio())
	case len(f.regions) > 1:
		return new(float64(len(f.regions) - 1))
	}
	return new(float64(max(members, 1) - 1))
}

func scopeName(s rules.Scope) string {
	return [...]string{"global", "region", "node"}[min(s, rules.NodeLocal)]
}

// shares fills in who has which part of the rights of the label that runs, and
// what the regions admitted in it.
func (m *monitor) shares(f *follow, out *api.RuleBudget, now int64) {
	l, run := f.rule.Limit, f.running(now)
	var weights []overage.PPM
	total := uint64(0)
	var x, carry int64
	if f.gated {
		weights = m.weights(f)
		x, carry = quota.Of(l).RightsWindow(now)
		if total = l.Total(); quota.Of(l).Drains() {
			total = l.TotalBurst()
		}
		held, why := m.agent.Allotment(f.id, total, x, carry, f.regional)
		if out.Held = held; held == 0 {
			out.WhyNot = why.String()
		}
	}
	for i, name := range f.regions {
		r := api.RegionShare{Region: name}
		if f.gated {
			r.Weight = new(weights[i].Ratio())
			part := total
			if !f.regional {
				part = m.agent.RegionPart(name, f.id, total, x, carry)
			}
			r.Rights = &part
		}
		if run != nil {
			r.Admitted = run.regions[i]
		}
		out.Regions = append(out.Regions, r)
	}
}

// report fills in what the history says.
func (m *monitor) report(f *follow, out *api.RuleBudget, subject overage.Rule, target float64) {
	if f.history == nil {
		out.Explanation = []string{"The stamps of a sliding log are not told apart by region: of it only the bound and " +
			"what was achieved is known."}
		return
	}
	m.setLinks(f)
	want := overage.DefaultTarget
	if target >= 0 {
		want = overage.PPM(target * float64(rules.Whole))
	}
	p, err := f.history.Report(subject, want)
	if err != nil { // a limit of 0
		out.Explanation = []string{sentence(err.Error())}
		return
	}
	for _, s := range overage.Explain(p) {
		out.Explanation = append(out.Explanation, s)
	}
	out.Recommended = sentence(p.Recommended.String() + ". " + p.Reason)
	for _, a := range p.Alarms {
		out.Alarms = append(out.Alarms, a.Text)
	}
	out.Windows, out.Gated = p.Windows, p.Gated
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

// sentence begins with a capital and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}

func advise(f *follow, subject overage.Rule, target overage.PPM) *api.Advice {
	a := &api.Advice{Target: target.Ratio()}
	if len(subject.Regions) == 1 {
		a.Problem = "the limit is held in one region, and demand is told apart by region alone: " +
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

// setLinks tells a history how old views are. Only those of this daemon are
// known: others are taken to see us as we see them, and each other as badly as we
// see the worse of the two.
func (m *monitor) setLinks(f *follow) {
	if f.regional {
		return
	}
	links := make([]overage.Link, len(m.regions))
	own := 0
	for i, name := range m.regions {
		r := &m.ages.regions[i]
		if name == m.region {
			own = i
			continue
		}
		p50, p99, most := r.quantiles()
		links[i] = overage.Link{AgeP50Ms: p50, AgeP99Ms: p99, AgeMaxMs: most, AgeNowMs: max(0, r.now.Milliseconds())}
		if i < len(m.ages.rtt) {
			links[i].RTTMs = m.ages.rtt[i].Milliseconds()
		}
	}
	for i := range links {
		for j := range links {
			l := links[i]
			if i == own || links[j].AgeP50Ms > l.AgeP50Ms {
				l = links[j]
			}
			if i != own && j != own {
				l.AgeNowMs = min(l.AgeNowMs, l.AgeP99Ms) // whether they hear each other is not known
			}
			if i != j {
				_ = f.history.SetLink(i, j, l) // all within bounds
			}
		}
	}
}

// rights describes the office, nil where there is none.
func (m *monitor) rights() *api.RightsState {
	if m.agent == nil {
		return nil
	}
	s := m.agent.status()
	out := &api.RightsState{Holds: s.Holds, StoreFault: s.Failing, Regions: epochStates(s.Regions), Daemons: epochStates(s.Daemons)}
	if !s.Holds {
		out.WhyNot = s.Reason.String()
	}
	return out
}

// unixMs is a time in Unix milliseconds, nil for 0.
func unixMs(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	return new(time.UnixMilli(ms).UTC())
}
