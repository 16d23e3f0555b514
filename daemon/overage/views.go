package overage

import (
	"slices"
	"time"
)

// view is the view of one region: its age, -1 if unknown, and the longest round
// trip.
type view struct{ age, rtt time.Duration }

// viewLog keeps the recent views of the regions.
type viewLog struct {
	regions []viewRing
	next    time.Duration // the earliest time of the next sample
}

// viewRing keeps the ages of the view of one region, in milliseconds, one a
// second.
type viewRing struct {
	ms  [viewSeconds]int64
	n   int // number of ages so far
	now view
}

// viewSeconds is how many seconds are kept.
const viewSeconds = 600

// sample adds the current views, at most once a second.
func (a *viewLog) sample(at time.Duration, current func() []view) {
	if at < a.next {
		return
	}
	a.next = at + time.Second
	for i, v := range current() {
		r := &a.regions[i]
		if r.now = v; v.age >= 0 {
			r.ms[r.n%viewSeconds] = v.age.Milliseconds()
			r.n++
		}
	}
}

// since reports whether the views of all regions with live daemons are at most
// ms milliseconds old.
func (a *viewLog) since(ms int64) bool {
	for i := range a.regions {
		// The samples are up to a second old.
		if a.regions[i].now.age.Milliseconds() > ms+time.Second.Milliseconds() {
			return false
		}
	}
	return true
}

// median returns the greatest median age of the views of other regions in
// milliseconds, false before it is known. own is the index of the own region.
func (a *viewLog) median(own int) (ms int64, ok bool) {
	for i := range a.regions {
		if i == own {
			continue
		}
		r := &a.regions[i]
		if r.n < settledViews {
			return 0, false
		}
		p50, _, _ := r.quantiles()
		ms = max(ms, p50)
	}
	return ms, len(a.regions) > 1
}

// quantiles returns the median age, the 99th percentile and the greatest age.
func (r *viewRing) quantiles() (p50, p99, most int64) {
	n := min(r.n, viewSeconds)
	if n == 0 {
		return 0, 0, 0
	}
	sorted := slices.Clone(r.ms[:n])
	slices.Sort(sorted)
	return sorted[(n-1)/2], sorted[(n-1)*99/100], sorted[n-1]
}

// greatest returns the greatest age and round trip in milliseconds, of the own
// region if inside is true, else of the other ones.
func (a *viewLog) greatest(own int, inside bool) (age, rtt int64) {
	for i := range a.regions {
		r := &a.regions[i]
		if (i == own) != inside && len(a.regions) > 1 {
			continue
		}
		if n := min(r.n, viewSeconds); n > 0 {
			age = max(age, slices.Max(r.ms[:n]))
		}
		rtt = max(rtt, r.now.rtt.Milliseconds())
	}
	return age, rtt
}
