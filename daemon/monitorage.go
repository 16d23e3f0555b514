package daemon

import (
	"slices"
	"time"
)

// ageLog keeps how old the views of regions were of late.
type ageLog struct {
	regions []ageRing // by region
	rtt     []time.Duration
	looked  time.Duration
	began   bool
}

// ageRing is the ages of one region's view, in milliseconds, a second apart.
type ageRing struct {
	ms   [ageSeconds]int64
	n    int // how many were taken
	now  time.Duration
	seen bool
}

// ageSeconds is how many seconds are kept.
const ageSeconds = 600

// look takes the ages of now once a second.
func (a *ageLog) look(at time.Duration, ages func() []time.Duration) {
	if a.began && at-a.looked < time.Second {
		return
	}
	a.began, a.looked = true, at
	for i, age := range ages() {
		r := &a.regions[i]
		r.now, r.seen = age, r.seen || age >= 0
		if age >= 0 {
			r.ms[r.n%ageSeconds] = age.Milliseconds()
			r.n++
		}
	}
}

// trips returns the round trips, of n regions.
func (a *ageLog) trips(n int) []time.Duration {
	if len(a.rtt) != n {
		a.rtt = make([]time.Duration, n)
	}
	return a.rtt
}

// since reports whether all regions were heard so many milliseconds ago or later,
// but for those that nobody lives in.
func (a *ageLog) since(ms int64) bool {
	for i := range a.regions {
		if a.regions[i].now.Milliseconds() > ms+time.Second.Milliseconds() { // ages are up to a second old
			return false
		}
	}
	return true
}

// quantiles returns the middle age, the 99th percentile and the greatest.
func (r *ageRing) quantiles() (p50, p99, most int64) {
	n := min(r.n, ageSeconds)
	if n == 0 {
		return 0, 0, 0
	}
	sorted := slices.Clone(r.ms[:n])
	slices.Sort(sorted)
	return sorted[(n-1)/2], sorted[(n-1)*99/100], sorted[n-1]
}

// greatest returns the greatest age of the own region, or of any other, and the
// greatest round trip, in milliseconds.
func (a *ageLog) greatest(own int, inside bool) (age, rtt int64) {
	for i := range a.regions {
		r := &a.regions[i]
		if (i == own) != inside && len(a.regions) > 1 {
			continue
		}
		for _, ms := range r.ms[:min(r.n, ageSeconds)] {
			age = max(age, ms)
		}
		if i < len(a.rtt) {
			rtt = max(rtt, a.rtt[i].Milliseconds())
		}
	}
	return age, rtt
}
