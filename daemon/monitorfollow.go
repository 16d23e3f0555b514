package daemon

import (
	"math/bits"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// follow is one rule that is followed.
type follow struct {
	rule     *rules.Rule
	id       uint64 // node.SharedRule
	regional bool
	gated    bool     // it has rights
	shadow   bool     // it refuses nothing
	regions  []string // whose counts make up the limit
	own      int      // which of them is this daemon's
	history  *overage.History
	// since is when the limit and the budget came into force everywhere, 0 for
	// before anything was followed.
	since int64

	envelopes    []envelopes // by region
	ageMs, rttMs int64       // that they are over
	windows      []window    // that are not settled, ascending
	minutes      [60]minute
}

// envelopes find the peaks of a region's arrivals.
type envelopes struct{ age, rtt *overage.Envelope }

// minute is the greatest overage of a minute.
type minute struct {
	number int64
	over   float64
}

// window is the busiest key of a rule in one label.
type window struct {
	start, width int64
	key          crdt.Key
	fits         uint64
	count        uint64   // of all regions
	regions      []uint64 // admitted
	refused      node.Refused
	crossed      bool
	atCrossing   []uint64
	peaks        []overage.Peaks
	surges       []uint64
	rolled       bool // peaks and surges are those of the whole label
	weights      []overage.PPM
	gated        bool
	budget       overage.PPM
	ageMs, rttMs int64
}

const (
	// settleMs is for how long after its end counts of a label come in, waitMs for
	// how long they are waited for at most.
	settleMs, waitMs = 2_000, 4_500
	// maxWindows bounds the labels of a rule that are not settled.
	maxWindows = 8
	// reloadMs is how long all daemons take to have new limits: a label that
	// began before that says nothing of them.
	reloadMs = 2_000
	// leastAgeMs is the shortest interval that peaks are looked for in.
	leastAgeMs = 100
	maxAgeMs   = 86_400_000
)

func (m *monitor) newFollow(r *rules.Rule, windows int) *follow {
	f := &follow{id: node.SharedRule(r), regions: m.regions, regional: r.Limit.Scope == rules.Region}
	if f.regional {
		f.regions = []string{m.region}
	}
	f.own = slices.Index(f.regions, m.region)
	if !quota.Of(r.Limit).Stamped() { // whose counts are not told apart by region
		// The bounds hold: regions are at most overage.MaxRegions by the settings.
		f.history, _ = overage.NewHistory(len(f.regions), windows)
	}
	return f
}

// adopt goes on under the limit that is in force now.
func (f *follow) adopt(r *rules.Rule, rights, shadow bool, now int64) {
	was := f.rule
	f.rule, f.gated, f.shadow = r, rights && r.Limit.HasRights(), shadow || r.Limit.Shadow
	if was != nil && was.Limit.Shadow == r.Limit.Shadow && was.Limit.ChargeDenied == r.Limit.ChargeDenied && was.Limit.Requests == r.Limit.Requests && was.Limit.Burst == r.Limit.Burst &&
		was.Limit.HasRights() == r.Limit.HasRights() && was.Limit.Total() == r.Limit.Total() {
		return
	}
	if was == nil {
		return
	}
	// Labels that run keep the greatest limit, and say nothing of the overage.
	f.minutes, f.since = [60]minute{}, now+reloadMs
	for i := range f.windows {
		f.windows[i].gated = false
	}
}

// see takes in what is known of the busiest key of a label.
func (f *follow) see(m *monitor, b *busyKey, now int64) {
	l := f.open(m, b, now)
	if l == nil {
		return
	}
	newest := l == &f.windows[len(f.windows)-1]
	l.fits = max(l.fits, b.Fits())
	if b.Key != l.key {
		l.key, l.refused = b.Key, node.Refused{}
	}
	count := uint64(0)
	for _, r := range b.regions {
		count += r.Hits
		i := slices.Index(f.regions, r.Region)
		if i < 0 {
			continue
		}
		grown := r.Hits - min(r.Hits, l.regions[i])
		l.regions[i] = r.Hits
		if newest && !l.rolled && len(f.envelopes) > 0 {
			f.envelopes[i].add(now, grown)
		}
	}
	if f.history == nil {
		count = b.Count
	}
	l.count = count
	was := l.refused
	l.refused = b.Refused
	if newest && !l.rolled && len(f.envelopes) > 0 && f.own >= 0 {
		more := refusedOf(&l.refused) - min(refusedOf(&l.refused), refusedOf(&was))
		f.envelopes[f.own].add(now, more)
	}
	f.cross(l, now)
	f.note(l, now)
}

func refusedOf(r *node.Refused) uint64 { return r.Rights + r.Estimate }

// cross notes what arrived before the limit was crossed.
func (f *follow) cross(l *window, now int64) {
	if l.crossed || l.count+refusedOf(&l.refused) <= l.fits {
		return
	}
	l.crossed = true
	if l.rolled {
		return
	}
	for i := range f.envelopes {
		l.atCrossing[i] = f.envelopes[i].age.Recent(now)
	}
}

// note keeps the overage of a label in its minute.
func (f *follow) note(l *window, now int64) {
	if l.start < f.since {
		return
	}
	n := now / 60_000
	at := &f.minutes[n%int64(len(f.minutes))]
	if at.number != n {
		*at = minute{number: n}
	}
	at.over = max(at.over, l.over())
}

// achieved returns what was achieved in the label of now, and at worst in the last
// hour; nil for counts that hold what was refused too.
func (f *follow) achieved(now int64) (run, worst *float64) {
	if f.rule.Limit.ChargeDenied {
		return nil, nil
	}
	run, worst = new(0.0), new(f.worst(now))
	if l := f.running(now); l != nil {
		*run = l.over()
	}
	return run, worst
}

// over is the overage as a part of the limit.
func (l *window) over() float64 {
	if l.fits == 0 || l.count <= l.fits {
		return 0
	}
	return float64(l.count-l.fits) / float64(l.fits)
}

// worst is the greatest overage of the last hour.
func (f *follow) worst(now int64) float64 {
	worst := 0.0
	for i := range f.minutes {
		if at := &f.minutes[i]; at.number > now/60_000-int64(len(f.minutes)) {
			worst = max(worst, at.over)
		}
	}
	return worst
}

// running returns the label of now, nil when nobody asked in it.
func (f *follow) running(now int64) *window {
	if n := len(f.windows); n > 0 {
		if l := &f.windows[n-1]; now < l.start+l.width {
			return l
		}
	}
	return nil
}

// open returns the label of a busy key, which begins when it is the first of it;
// nil for one that is settled already.
func (f *follow) open(m *monitor, b *busyKey, now int64) *window {
	for i := range f.windows {
		if f.windows[i].start == b.Window {
			return &f.windows[i]
		}
	}
	n := len(f.windows)
	if now >= b.Window+b.Length+settleMs || n > 0 && b.Window < f.windows[n-1].start {
		return nil
	}
	if n == maxWindows { // a clock that leaps
		f.windows = slices.Delete(f.windows, 0, 1)
	}
	if n = len(f.windows); n > 0 {
		f.roll(&f.windows[n-1], now)
	}
	f.measure(m)
	r := len(f.regions)
	f.windows = append(f.windows, window{
		start: b.Window, width: b.Length, key: b.Key, regions: make([]uint64, r), atCrossing: make([]uint64, r),
		peaks: make([]overage.Peaks, r), surges: make([]uint64, r), weights: m.weights(f),
		gated: f.gated && !f.shadow && !f.rule.Limit.ChargeDenied && b.Window >= f.since, budget: budgetOf(f.rule.Limit), ageMs: f.ageMs, rttMs: f.rttMs,
	})
	return &f.windows[len(f.windows)-1]
}

// budgetOf is the budget that rights hold: none for consistency partition.
func budgetOf(l *rules.Limit) overage.PPM {
	if l.Consistency != rules.Eventual {
		return 0
	}
	return overage.PPM(l.Budget)
}

// measure makes envelopes over what ages and round trips are by now.
func (f *follow) measure(m *monitor) {
	if f.history == nil {
		return
	}
	age, rtt := m.ages.greatest(slices.Index(m.regions, m.region), f.regional)
	age, rtt = interval(age), interval(rtt)
	if len(f.envelopes) > 0 && age == f.ageMs && rtt == f.rttMs {
		return
	}
	f.ageMs, f.rttMs, f.envelopes = age, rtt, make([]envelopes, len(f.regions))
	for i := range f.envelopes {
		// interval keeps to the bounds of an envelope.
		f.envelopes[i].age, _ = overage.NewEnvelope(age)
		f.envelopes[i].rtt, _ = overage.NewEnvelope(rtt)
	}
}

// interval rounds up to a tenth of a second times a power of two, so that
// intervals stay what they are for a while.
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

// roll takes the peaks of a label that is over.
func (f *follow) roll(l *window, now int64) {
	if l.rolled {
		return
	}
	l.rolled = true
	for i := range f.envelopes {
		l.peaks[i] = f.envelopes[i].age.Roll(now)
		l.surges[i] = f.envelopes[i].rtt.Roll(now).Surge
	}
}

// settle closes the labels whose late counts are in. Of a label in which a region
// was not heard to the end nothing is kept: what that admitted is not known.
func (f *follow) settle(m *monitor, now int64) {
	for len(f.windows) > 0 {
		l := &f.windows[0]
		end := l.start + l.width
		if now >= end {
			f.roll(l, now)
		}
		heard := f.regional || m.ages.since(now-end)
		if now < end+settleMs || !heard && now < end+waitMs {
			return
		}
		if heard {
			f.close(l)
		}
		f.windows = slices.Delete(f.windows, 0, 1)
	}
}

// close keeps a label as a window of the history.
func (f *follow) close(l *window) {
	if f.history == nil || l.fits == 0 {
		return
	}
	w := overage.Window{
		StartMs: l.start, Limit: l.fits, Crossed: l.crossed, Gated: l.gated, Budget: l.budget,
		AgeMs: max(1, l.ageMs), RTTMs: max(1, l.rttMs), Regions: make([]overage.Traffic, len(f.regions)),
	}
	for i := range w.Regions {
		w.Regions[i] = overage.Traffic{
			Admitted: l.regions[i], PeakAge: l.peaks[i], SurgeRTT: l.surges[i], AtCrossing: l.atCrossing[i],
			Weight: l.weights[i],
		}
	}
	if f.own >= 0 {
		t := &w.Regions[f.own]
		t.DeniedRights, t.DeniedEstimate, t.Stranded = l.refused.Rights, l.refused.Estimate, l.refused.Stranded
	}
	// A window that contradicts itself is not kept: it would tell nothing.
	_ = f.history.Add(w)
}
