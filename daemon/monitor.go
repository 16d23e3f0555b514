package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// monitor follows how far the rules that daemons count together go over their
// limits: of each rule the busiest key, label by label, as it is known here. It
// decides nothing. What is refused is known of this daemon alone, and stands under
// its own region; what others refused is missing from the demand of theirs. Counts
// of other regions come in batches, so that their peaks are seen too high rather
// than too low. How many keys a rule has is not counted. It is safe for concurrent
// use.
type monitor struct {
	engine *Engine
	agent  *rightsLoop // nil for a daemon that holds no rights
	region string
	shadow bool // the daemon refuses nothing
	// regions are all that are configured, sorted.
	regions []string

	mu      sync.Mutex
	set     *rules.Set
	follows []*follow // in the order of the rules
	byIndex []*follow // by Rule.Index, nil for a rule that is not followed
	leftOut int
	ages    ageLog
	busy    busyKeys // scratch
}

const (
	// monitorEvery is the time between two looks, and monitorSlow that of a monitor
	// that follows more than fewRules: a look at 1,000 rules on 64 shards takes 2 ms.
	monitorEvery, monitorSlow = 100 * time.Millisecond, 250 * time.Millisecond
	fewRules                  = 300
	// maxFollowed bounds the rules that are followed.
	maxFollowed = 1_000
	// allWindows bounds the labels that are kept of all rules together, and
	// mostWindows and leastWindows those of one.
	allWindows, mostWindows, leastWindows = 24_000, 240, 24
)

func newMonitor(e *Engine, o *rightsLoop, region string, regions []string, shadow bool) *monitor {
	m := &monitor{engine: e, agent: o, region: region, regions: regions, shadow: shadow}
	m.ages.regions = make([]ageRing, len(regions))
	return m
}

// run looks until ctx ends.
func (m *monitor) run(ctx context.Context) {
	t := time.NewTimer(monitorEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if m.look(m.engine.Now()) > fewRules {
			t.Reset(monitorSlow)
		} else {
			t.Reset(monitorEvery)
		}
	}
}

// look takes in how things are, and returns how many rules are followed.
func (m *monitor) look(at node.Instant) int {
	now := m.engine.Time(at).Millis()
	m.mu.Lock()
	defer m.mu.Unlock()
	if set := m.engine.Rules(); set != m.set {
		m.take(set, now)
	}
	m.ages.look(at.Mono, func() []time.Duration { return m.views(at) })
	m.busy.look(m.engine, at, m.set)
	for i := range m.busy.keys {
		k := &m.busy.keys[i]
		if f := m.byIndex[k.Rule.Index]; f != nil {
			f.see(m, k, now)
		}
	}
	for _, f := range m.follows {
		f.settle(m, now)
	}
	return len(m.follows)
}

// take follows the rules of a set from now on. What is known of a rule that
// counts as it did is kept.
func (m *monitor) take(set *rules.Set, now int64) {
	known := make(map[uint64]*follow, len(m.follows))
	for _, f := range m.follows {
		known[f.id] = f
	}
	followed := m.pick(set)
	windows := min(mostWindows, max(leastWindows, allWindows/max(1, len(followed))))
	m.set, m.follows, m.byIndex = set, nil, make([]*follow, len(set.Rules()))
	for _, r := range followed {
		f := known[node.SharedRule(r)]
		if f == nil {
			f = m.newFollow(r, windows)
		}
		f.adopt(r, m.agent != nil, m.shadow, now)
		m.follows = append(m.follows, f)
		m.byIndex[r.Index] = f
	}
}

// pick returns the rules to follow, in their order: those with rights go first
// where there are too many.
func (m *monitor) pick(set *rules.Set) []*rules.Rule {
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
	m.leftOut = max(0, len(all)-maxFollowed)
	all = all[:len(all)-m.leftOut]
	slices.SortFunc(all, func(a, b *rules.Rule) int { return a.Index - b.Index })
	return all
}

// views returns how old the oldest view of each region is, with what was not
// sent, -1 for a region that nobody was heard of; and sets the round trips.
func (m *monitor) views(at node.Instant) []time.Duration {
	ages := make([]time.Duration, len(m.regions))
	clear(m.ages.trips(len(m.regions)))
	heard := make([]bool, len(m.regions))
	if i := slices.Index(m.regions, m.region); i >= 0 {
		heard[i] = true // this daemon itself
	}
	for _, l := range m.engine.Links(at) {
		i := slices.Index(m.regions, l.Peer.Region)
		if i < 0 {
			continue
		}
		if l.Unsent >= 0 {
			heard[i] = true
			ages[i] = max(ages[i], l.Unsent)
		}
		m.ages.rtt[i] = max(m.ages.rtt[i], l.RTT)
	}
	for i := range ages {
		if !heard[i] {
			ages[i] = -1
		}
	}
	return ages
}

// weights returns the regions' parts of a rule's rights in parts per million, all
// 0 for a rule without.
func (m *monitor) weights(f *follow) []overage.PPM {
	out := make([]overage.PPM, len(f.regions))
	if !f.gated {
		return out
	}
	if f.regional {
		out[0] = overage.PPM(rules.Whole)
		return out
	}
	sum, most := overage.PPM(0), 0
	for _, w := range m.agent.weights(f.id) {
		if i := slices.Index(f.regions, w.Name); i >= 0 {
			out[i] = overage.PPM(min(w.Weight, uint64(rules.Whole)))
			sum += out[i]
		}
	}
	for i := range out {
		if out[i] > out[most] {
			most = i
		}
	}
	// What rounding leaves to nobody, and what a retired region had.
	if sum > 0 && sum <= overage.PPM(rules.Whole) {
		out[most] += overage.PPM(rules.Whole) - sum
	}
	return out
}
