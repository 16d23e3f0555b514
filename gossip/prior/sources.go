package prior

import (
	"slices"

	"github.com/georld/rld/crdt"
)

// Sources are the reports that an aggregator received of a key, one of each
// daemon of its region and of each other region. The zero value has none.
type Sources struct{ all []source }

// source is the latest report of a daemon, or of a region.
type source struct {
	of    crdt.Incarnation
	local bool // a daemon of the own region
	Report
}

// Add adds a report, unless a later one is known. Those that are more than keep
// milliseconds older are dropped, and no more than most are kept.
func (s *Sources) Add(of crdt.Incarnation, local bool, r Report, keep int64, most int) {
	r.Load = r.Bounded()
	s.all = slices.DeleteFunc(s.all, func(o source) bool { return o.Window < r.Window-keep })
	i := slices.IndexFunc(s.all, func(o source) bool { return o.of == of && o.local == local })
	switch {
	case i < 0 && len(s.all) < most:
		s.all = append(s.all, source{of, local, r})
	case i >= 0 && r.Window >= s.all[i].Window:
		s.all[i].Report = r
	}
}

// Region returns the load of the daemons of the region, of windows from one on,
// and the latest of these.
func (s *Sources) Region(from int64) Report {
	return s.sum(from, func(o *source) bool { return o.local })
}

// Others returns the load of all but one daemon of the region, likewise. 0
// stands for no daemon.
func (s *Sources) Others(from int64, but crdt.Incarnation) Report {
	return s.sum(from, func(o *source) bool { return !o.local || o.of != but })
}

func (s *Sources) sum(from int64, counts func(*source) bool) Report {
	var sum Report
	for i := range s.all {
		if o := &s.all[i]; o.Window >= from && counts(o) {
			sum.Window = max(sum.Window, o.Window)
			sum.Load = sum.Add(o.Load)
		}
	}
	return sum
}

// Daemons calls yield for each daemon of the region that reported.
func (s *Sources) Daemons(yield func(of crdt.Incarnation)) {
	for i := range s.all {
		if s.all[i].local {
			yield(s.all[i].of)
		}
	}
}

// Len returns the number of reports.
func (s *Sources) Len() int { return len(s.all) }
