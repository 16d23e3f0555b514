package overage

import (
	"math/bits"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// ruleLog is the history of one rule.
type ruleLog struct {
	rule     *rules.Rule
	id       uint64 // shared name
	regional bool
	gated    bool     // has rights
	shadow   bool     // denies nothing
	warned   bool     // of windows that are short for the age of the views
	regions  []string // whose counts make up the limit
	own      int      // index of the own region, or -1
	history  *overage.History
	// since is when the limit and the budget came into force at all daemons, 0
	// if that was before the first sample.
	since int64

	envelopes    []envelopes // by region
	ageMs, rttMs int64       // lengths of the envelopes
	windows      []window    // not settled yet, ascending
	minutes      [60]minute
}

// envelopes find the peaks of the arrivals of a region.
type envelopes struct{ age, rtt *overage.Envelope }

// minute is the greatest overage of a minute.
type minute struct {
	number int64
	over   float64
}

// window is the busiest key of a rule in one window.
type window struct {
	overage.Window // for the history, with the denials of all regions but the own
	length         int64
	key            crdt.Key
	count          uint64 // of all regions
	denied         node.Denied
	rolled         bool // peaks and surges are of the whole window
}

const (
	// settleMs is how long after its end counts of a window arrive, waitMs the
	// longest wait for them.
	settleMs, waitMs = 2_000, 4_500
	// maxWindows bounds the windows of a rule that are not settled.
	maxWindows = 8
	// reloadMs is how long all daemons take to load new limits. Windows that
	// start earlier do not count for the new limits.
	reloadMs = 2_000
	// leastAgeMs is the shortest envelope.
	leastAgeMs = 100
	maxAgeMs   = 86_400_000
)

func (m *Monitor) newRuleLog(r *rules.Rule, windows int) *ruleLog {
	f := &ruleLog{id: r.Shared(), regions: m.Regions, regional: r.Limit.Scope == rules.Region}
	if f.regional {
		f.regions = []string{m.Region}
	}
	f.own = slices.Index(f.regions, m.Region)
	if !quota.Of(r.Limit).Stamped() { // else its counts are not known by region
		f.history = overage.NewHistory(len(f.regions), windows)
	}
	return f
}

// setRule continues with the limit in force now.
func (f *ruleLog) setRule(r *rules.Rule, rights, shadow bool, now int64) {
	was := f.rule
	f.rule, f.gated, f.shadow = r, rights && r.Limit.HasRights(), shadow || r.Limit.Shadow
	if was == nil || sameBound(was.Limit, r.Limit) {
		return
	}
	f.warned = false
	// Current windows keep the greatest limit, but do not count for the
	// overage.
	f.minutes, f.since = [60]minute{}, now+reloadMs
	for i := range f.windows {
		f.windows[i].Gated = false
	}
}

// sameBound reports whether two limits have the same overage.
func sameBound(a, b *rules.Limit) bool {
	return a.Shadow == b.Shadow && a.ChargeDenied == b.ChargeDenied && a.Requests == b.Requests && a.Burst == b.Burst &&
		a.HasRights() == b.HasRights() && a.Total() == b.Total()
}

// observe adds the current counts of the busiest key of a window.
func (f *ruleLog) observe(m *Monitor, b *BusyKey, now int64) {
	l := f.open(m, b, now)
	if l == nil {
		return
	}
	newest := l == &f.windows[len(f.windows)-1]
	l.Limit = max(l.Limit, b.Fits())
	if b.Key != l.key {
		l.key, l.denied = b.Key, node.Denied{}
	}
	count := uint64(0)
	for _, r := range b.Regions {
		count += r.Hits
		i := slices.Index(f.regions, r.Region)
		if i < 0 {
			continue
		}
		grown := r.Hits - min(r.Hits, l.Regions[i].Admitted)
		l.Regions[i].Admitted = r.Hits
		if newest && !l.rolled && len(f.envelopes) > 0 {
			f.envelopes[i].add(now, grown)
		}
	}
	if f.history == nil {
		count = b.Count
	}
	l.count = count
	was := deniedHits(&l.denied)
	l.denied = b.Denied
	if newest && !l.rolled && len(f.envelopes) > 0 && f.own >= 0 {
		is := deniedHits(&l.denied)
		f.envelopes[f.own].add(now, is-min(is, was))
	}
	f.cross(l, now)
	f.record(l, now)
}

func deniedHits(r *node.Denied) uint64 { return r.Rights + r.Estimate }

// cross keeps the recent arrivals when a window crosses the limit.
func (f *ruleLog) cross(l *window, now int64) {
	if l.Crossed || l.count+deniedHits(&l.denied) <= l.Limit {
		return
	}
	l.Crossed = true
	if l.rolled {
		return
	}
	for i := range f.envelopes {
		l.Regions[i].AtCrossing = f.envelopes[i].age.Recent(now)
	}
}

// record keeps the overage of a window in its minute.
func (f *ruleLog) record(l *window, now int64) {
	if l.StartMs < f.since {
		return
	}
	n := now / 60_000
	at := &f.minutes[n%int64(len(f.minutes))]
	if at.number != n {
		*at = minute{number: n}
	}
	at.over = max(at.over, l.over())
}

// achieved returns the overage of the current window and the greatest of the
// last hour, nil if counts include denied hits.
func (f *ruleLog) achieved(now int64) (run, worst *float64) {
	if f.rule.Limit.ChargeDenied {
		return nil, nil
	}
	run, worst = new(0.0), new(f.worst(now))
	if l := f.current(now); l != nil {
		*run = l.over()
	}
	return run, worst
}

// over returns the overage as a fraction of the limit.
func (l *window) over() float64 {
	if l.Limit == 0 || l.count <= l.Limit {
		return 0
	}
	return float64(l.count-l.Limit) / float64(l.Limit)
}

// worst returns the greatest overage of the last hour.
func (f *ruleLog) worst(now int64) float64 {
	worst := 0.0
	for i := range f.minutes {
		if at := &f.minutes[i]; at.number > now/60_000-int64(len(f.minutes)) {
			worst = max(worst, at.over)
		}
	}
	return worst
}

// current returns the current window, nil if it has no hits.
func (f *ruleLog) current(now int64) *window {
	if n := len(f.windows); n > 0 {
		if l := &f.windows[n-1]; now < l.StartMs+l.length {
			return l
		}
	}
	return nil
}

// open returns the window of a busy key, a new one for its first sample, or nil
// if it is settled already.
func (f *ruleLog) open(m *Monitor, b *BusyKey, now int64) *window {
	for i := range f.windows {
		if f.windows[i].StartMs == b.Window {
			return &f.windows[i]
		}
	}
	n := len(f.windows)
	if now >= b.Window+b.Length+settleMs || n > 0 && b.Window < f.windows[n-1].StartMs {
		return nil
	}
	if n == maxWindows { // a clock jumped
		f.windows = slices.Delete(f.windows, 0, 1)
	}
	if n = len(f.windows); n > 0 {
		f.roll(&f.windows[n-1], now)
	}
	f.measure(m)
	w := overage.Window{
		StartMs: b.Window, Regions: make([]overage.Traffic, len(f.regions)),
		Gated:  f.gated && !f.shadow && !f.rule.Limit.ChargeDenied && b.Window >= f.since,
		Budget: budgetOf(f.rule.Limit), AgeMs: f.ageMs, RTTMs: f.rttMs,
	}
	for i, weight := range m.weights(f) {
		w.Regions[i].Weight = weight
	}
	f.windows = append(f.windows, window{Window: w, length: b.Length, key: b.Key})
	return &f.windows[len(f.windows)-1]
}

// budgetOf returns the budget that rights enforce: 0 for consistency partition.
func budgetOf(l *rules.Limit) rules.PPM {
	if l.Consistency != rules.Eventual {
		return 0
	}
	return l.Budget
}

// measure replaces the envelopes if the ages or the round trips changed.
func (f *ruleLog) measure(m *Monitor) {
	if f.history == nil {
		return
	}
	age, rtt := m.views.greatest(slices.Index(m.Regions, m.Region), f.regional)
	age, rtt = interval(age), interval(rtt)
	if len(f.envelopes) > 0 && age == f.ageMs && rtt == f.rttMs {
		return
	}
	f.ageMs, f.rttMs, f.envelopes = age, rtt, make([]envelopes, len(f.regions))
	for i := range f.envelopes {
		f.envelopes[i] = envelopes{overage.NewEnvelope(age), overage.NewEnvelope(rtt)}
	}
}

// interval rounds milliseconds up to a tenth of a second times a power of two,
// so that envelopes seldom change.
func interval(ms int64) int64 {
	if ms <= leastAgeMs {
		return leastAgeMs
	}
	n := (ms + leastAgeMs - 1) / leastAgeMs
	return min(int64(leastAgeMs)<<bits.Len64(uint64(n-1)), maxAgeMs)
}

func (e *envelopes) add(now int64, n uint64) {
	if n > 0 {
		e.age.Add(now, n)
		e.rtt.Add(now, n)
	}
}

// roll keeps the peaks of a window that is over.
func (f *ruleLog) roll(l *window, now int64) {
	if l.rolled {
		return
	}
	l.rolled = true
	for i := range f.envelopes {
		l.Regions[i].PeakAge = f.envelopes[i].age.Roll(now)
		l.Regions[i].SurgeRTT = f.envelopes[i].rtt.Roll(now).Surge
	}
}

// settle closes the windows that no late counts are expected for. It drops a
// window whose counts of a region are not known to its end.
func (f *ruleLog) settle(m *Monitor, now int64) {
	for len(f.windows) > 0 {
		l := &f.windows[0]
		end := l.StartMs + l.length
		if now >= end {
			f.roll(l, now)
		}
		known := f.regional || m.views.since(now-end)
		if now < end+settleMs || !known && now < end+waitMs {
			return
		}
		if known {
			f.close(l)
		}
		f.windows = slices.Delete(f.windows, 0, 1)
	}
}

// close adds a window to the history.
func (f *ruleLog) close(l *window) {
	if f.history == nil || l.Limit == 0 {
		return
	}
	if f.own >= 0 {
		t := &l.Regions[f.own]
		t.DeniedRights, t.DeniedEstimate, t.Stranded = l.denied.Rights, l.denied.Estimate, l.denied.Stranded
	}
	f.history.Add(l.Window)
}
