// Package overage observes how far the rules that several daemons count
// together exceed their limits, and answers questions about overage budgets. It
// decides nothing.
//
// Of each rule a Monitor follows the busiest key, window by window, as far as
// this daemon knows its counts. Only this daemon's own denials are known; they
// count as demand of its own region, and those of other regions are missing.
// Counts of other regions arrive in batches, so their peaks are overestimated
// rather than underestimated. The number of keys of a rule plays no part.
package overage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// Engine holds the counters that a Monitor reads. Implementations are safe for
// concurrent use.
type Engine interface {
	Now() node.Instant
	Time(at node.Instant) hlc.Timestamp
	Rules() *rules.Set
	Links(at node.Instant) []node.Link
	Tallies(yield func(domain, rule string, t quota.Tally))
	// BusyKeys adds the busiest keys of the rules of set. It adds none if
	// another set is in force.
	BusyKeys(at node.Instant, set *rules.Set, to *BusyKeys)
}

// Agent is the rights agent of the daemon. Implementations are safe for
// concurrent use.
type Agent interface {
	Status() agent.Status
	// WhyNot returns a reason for no allotment as half a sentence.
	WhyNot(epoch.Reason) string
	// Weights returns the weights of the regions for a rule.
	Weights(rule uint64) []agent.MemberStatus
	// Allotment and RegionPart are as in node.Allotments.
	Allotment(rule, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason)
	RegionPart(region string, rule, total uint64, x, carry int64) uint64
}

// Config is the configuration of a Monitor.
type Config struct {
	Engine Engine
	// Agent is nil for a daemon without rights.
	Agent Agent
	// Region and Name identify the daemon. Regions are all configured ones,
	// sorted. Cluster returns these and those that the cluster has now, sorted,
	// nil while that is not known; it may be nil.
	Region, Name string
	Regions      []string
	Cluster      func() []string
	// Shadow reports that the daemon denies nothing.
	Shadow bool
	// Short is called for rules whose windows are short for the age of the
	// views of other regions, once each until their limits change, soon after
	// these came into force. It may be nil. names are of the first ones, and
	// text describes what that means for the shortest window.
	Short func(names []string, more int, text string)
}

// Monitor observes rules. It is safe for concurrent use.
type Monitor struct {
	Config

	mu      sync.Mutex
	set     *rules.Set
	judged  *rules.Set // whose windows were compared with the age of the views
	rules   []*ruleLog // in the order of the rules
	byIndex []*ruleLog // by Rule.Index, nil for a rule that is not observed
	omitted int
	views   viewLog
	busy    BusyKeys
}

const (
	// sampleEvery is the time between two samples, or slowSample for a monitor
	// of more than fewRules: a sample of 1,000 rules on 64 shards takes 2 ms.
	sampleEvery, slowSample = 100 * time.Millisecond, 250 * time.Millisecond
	fewRules                = 300
	// maxRules bounds the observed rules.
	maxRules = 1_000
	// allWindows bounds the windows kept of all rules together, maxHistory and
	// minHistory those of one rule.
	allWindows, maxHistory, minHistory = 24_000, 240, 24
)

// New returns a monitor. Run samples for it.
func New(c Config) *Monitor {
	return &Monitor{Config: c, views: viewLog{regions: make([]viewRing, len(c.Regions))}}
}

// Run samples until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	t := time.NewTimer(sampleEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		at, every := m.Engine.Now(), sampleEvery
		if m.sample(at) > fewRules {
			every = slowSample
		}
		// At a multiple, as replication: the process wakes up once for both.
		t.Reset(every - at.Mono%every)
	}
}

// sample reads the counters and returns the number of observed rules.
func (m *Monitor) sample(at node.Instant) int {
	now := m.Engine.Time(at).Millis()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.followRegions()
	if set := m.Engine.Rules(); set != m.set {
		m.setRules(set, now)
	}
	m.views.sample(at.Mono, func() []view { return m.currentViews(at) })
	m.warnShort()
	m.busy.reset(len(m.set.Rules()))
	m.Engine.BusyKeys(at, m.set, &m.busy)
	for i := range m.busy.keys {
		k := &m.busy.keys[i]
		if r := m.byIndex[k.Rule.Index]; r != nil {
			r.observe(m, k, now)
		}
	}
	for _, r := range m.rules {
		r.settle(m, now)
	}
	return len(m.rules)
}

const (
	// settledViews is the number of samples of each view, one a second, after
	// which its median is that of the network.
	settledViews = 10
	// maxNames bounds the names of one warning.
	maxNames = 8
)

// warnShort warns of rules whose windows are short for the age of the views.
func (m *Monitor) warnShort() {
	if m.judged == m.set || m.Short == nil {
		return
	}
	if _, known := m.views.median(slices.Index(m.Regions, m.Region)); !known {
		return
	}
	m.judged = m.set
	var names []string
	more, shortest := 0, overage.Lag{}
	for _, r := range m.rules {
		lag, short := m.short(r)
		if r.warned || !short {
			continue
		}
		r.warned = true
		if shortest.WindowMs == 0 || lag.WindowMs < shortest.WindowMs {
			shortest = lag
		}
		if len(names) < maxNames {
			names = append(names, RuleName(r.rule))
		} else {
			more++
		}
	}
	if len(names) > 0 {
		m.Short(names, more, shortest.String())
	}
}

// short reports whether the windows of a rule are short for the age of the
// views of other regions.
func (m *Monitor) short(r *ruleLog) (overage.Lag, bool) {
	l := r.rule.Limit
	if !overage.SeesLate(l) {
		return overage.Lag{}, false
	}
	age, known := m.views.median(slices.Index(m.Regions, m.Region))
	if !known {
		return overage.Lag{}, false
	}
	lag := overage.Lag{WindowMs: quota.Of(l).ReportLength(), AgeMs: age, Regions: len(m.Regions)}
	return lag, lag.Short()
}

// followRegions observes the regions that the cluster has now. The history of
// rules that count in all regions begins anew when one comes or goes.
func (m *Monitor) followRegions() {
	if m.Cluster == nil {
		return
	}
	names := m.Cluster()
	if slices.Equal(names, m.Regions) || !slices.Contains(names, m.Region) {
		return
	}
	m.Regions, m.views, m.set = names, viewLog{regions: make([]viewRing, len(names))}, nil
	m.rules = slices.DeleteFunc(m.rules, func(r *ruleLog) bool { return !r.regional })
}

// setRules observes the rules of a set from now on. It keeps the history of
// rules that count as before.
func (m *Monitor) setRules(set *rules.Set, now int64) {
	known := make(map[uint64]*ruleLog, len(m.rules))
	for _, r := range m.rules {
		known[r.id] = r
	}
	picked := m.pick(set)
	windows := min(maxHistory, max(minHistory, allWindows/max(1, len(picked))))
	m.set, m.rules, m.byIndex = set, nil, make([]*ruleLog, len(set.Rules()))
	for _, rule := range picked {
		r := known[rule.Shared()]
		if r == nil {
			r = m.newRuleLog(rule, windows)
		}
		r.setRule(rule, m.Agent != nil, m.Shadow, now)
		m.rules = append(m.rules, r)
		m.byIndex[rule.Index] = r
	}
}

// pick returns the rules to observe, in their order. If there are too many,
// rules with rights take precedence.
func (m *Monitor) pick(set *rules.Set) []*rules.Rule {
	var with, without []*rules.Rule
	for _, r := range set.Rules() {
		switch l := r.Limit; {
		case l == nil || l.Unlimited || l.Scope == rules.NodeLocal || l.Window() == 0:
		case l.HasRights():
			with = append(with, r)
		default:
			without = append(without, r)
		}
	}
	all := append(with, without...)
	m.omitted = max(0, len(all)-maxRules)
	all = all[:len(all)-m.omitted]
	slices.SortFunc(all, func(a, b *rules.Rule) int { return a.Index - b.Index })
	return all
}

// currentViews returns the oldest view of each region, including unsent counts,
// and the longest round trip.
func (m *Monitor) currentViews(at node.Instant) []view {
	all := make([]view, len(m.Regions))
	for i, name := range m.Regions {
		if all[i].age = -1; name == m.Region {
			all[i].age = 0 // of this daemon itself
		}
	}
	for _, l := range m.Engine.Links(at) {
		if i := slices.Index(m.Regions, l.Peer.Region); i >= 0 {
			all[i].age, all[i].rtt = max(all[i].age, l.Expected(l.Unsent)), max(all[i].rtt, l.RTT)
		}
	}
	return all
}

// weights returns the shares of the regions in the rights of a rule, all 0 for
// a rule without rights.
func (m *Monitor) weights(r *ruleLog) []rules.PPM {
	out := make([]rules.PPM, len(r.regions))
	if !r.gated {
		return out
	}
	if r.regional {
		out[0] = rules.PPM(rules.Whole)
		return out
	}
	sum, most := rules.PPM(0), 0
	for _, w := range m.Agent.Weights(r.id) {
		if i := slices.Index(r.regions, w.Name); i >= 0 {
			out[i] = rules.PPM(min(w.Weight, uint64(rules.Whole)))
			sum += out[i]
		}
	}
	for i := range out {
		if out[i] > out[most] {
			most = i
		}
	}
	// The greatest share includes the remainder of rounding and the shares of
	// retired regions.
	if sum > 0 && sum <= rules.PPM(rules.Whole) {
		out[most] += rules.PPM(rules.Whole) - sum
	}
	return out
}
