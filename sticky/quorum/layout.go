package quorum

import (
	"fmt"
	"time"

	"github.com/georld/rld/sticky/route"
)

// Report is the state of an acceptor as far as it is on disk. The choice of the
// voters follows from the reports.
type Report struct {
	// Number and Log identify the newest layout that it has: it votes under no
	// earlier one. Copied reports that it has all watermarks that a voter of
	// that layout needs.
	Number uint64
	Log    route.Log
	Copied bool
	// Generation is its store number.
	Generation uint64
	// Failing reports that its disk fails.
	Failing bool
	// Unknown is a layout that the newest one of Follow does not cover, nil for
	// none. The acceptor does not seal it: the next layout must name it as a
	// former one.
	Unknown *route.Layout
}

// Report returns the present state, without changes that are not stored yet.
func (r *Acceptor) Report() Report {
	s := Report{Number: r.stored.Number, Log: r.stored.Log, Generation: r.meta.Generation, Unknown: r.unknown}
	s.Copied, s.Failing = r.failed == nil && r.stored.copied, r.failed != nil
	return s
}

// onDisk is a state of an acceptor on disk.
type onDisk struct {
	Number uint64
	Log    route.Log
	copied bool
}

func (r *Acceptor) onDisk() onDisk {
	l := r.newest()
	return onDisk{l.Number, l.Log, r.next == nil && r.complete()}
}

// Layout returns a copy of the layout that daemons use.
func (r *Acceptor) Layout() route.Layout { return r.newest().Clone() }

// Follow sets the layouts of the control log: the active one, and the announced
// one that follows it; nil for none. A voter under a layout seals it for the
// next one. A voter of the next one votes once it has copied all that it needs
// and the layout is active. Follow does not keep or change the layouts.
func (r *Acceptor) Follow(at time.Duration, active, announced *route.Layout) {
	r.clock(at)
	newest := active
	if announced != nil {
		newest = announced
	}
	switch is := r.newest(); {
	case newest == nil:
		return
	case r.failed != nil: // it knows the owners, and stores nothing
		if newest.Number > is.Number {
			r.layout, r.next = newest.Clone(), nil
			r.rebuild()
		}
		return
	}
	if was := r.active; active != nil && (was.Number != active.Number || was.Log != active.Log) {
		r.active = onDisk{Number: active.Number, Log: active.Log}
		r.rebuild()
		r.events.Add(Changed, "", fmt.Sprintf("layout %d", active.Number))
	}
	is := r.newest()
	unknown := r.unknown
	r.unknown = nil
	keep := func(l *route.Layout) {
		if r.unknown = unknown; unknown == nil || unknown.Number != l.Number || unknown.Log != l.Log {
			r.unknown = new(l.Clone())
		}
	}
	switch {
	case !newest.Covers(&r.layout): // also where a recovery dropped that it is active
		keep(&r.layout)
	case r.next != nil && !newest.Covers(r.next):
		keep(r.next)
	case newest.Number == is.Number && newest.Log == is.Log:
		r.refresh(newest)
	case newest.Number > is.Number && newest.Validate() == nil:
		r.adopt(newest)
	}
}

// refresh takes over from which windows on the layout has how many reserves.
func (r *Acceptor) refresh(l *route.Layout) {
	if r.newest().HasReserves(l) {
		return
	}
	if next := l.Clone(); r.next != nil {
		r.next = &next
		r.batch.entries = append(r.batch.entries, Entry{Next: new(next.Clone())})
	} else {
		r.layout = next
		r.putLayout()
	}
	r.rebuild()
}

// complete reports whether the acceptor has all state of the layout in force,
// so that its snapshot for the next one is complete.
func (r *Acceptor) complete() bool { return r.meta.Voting && r.isVoter(&r.layout) }

// serves reports whether the state of the layout in force is complete for
// voters of a later one.
func (r *Acceptor) serves(l *route.Layout) bool {
	if !r.complete() || !r.witness.over {
		return false
	}
	for i := range l.Formers {
		f := &l.Formers[i]
		if f.Log == r.layout.Log && f.Number <= r.layout.Number || f.Log.Number < r.layout.Log.Number {
			return true
		}
	}
	return r.layout.Number == l.Number && r.layout.Log == l.Log
}

// adopt puts a later layout in force. A voter under the layout before it seals
// that one by storing the new one. A voter of the new layout votes once it has
// copied the state it needs.
func (r *Acceptor) adopt(l *route.Layout) {
	next := l.Clone()
	sealing := r.complete()
	if !sealing && r.meta.Voting {
		r.meta.Voting = false
		r.putMeta() // first: it must not pass for a seal of the layout before l
	}
	if sealing || r.isVoter(l) {
		r.next = &next
		r.batch.entries = append(r.batch.entries, Entry{Next: new(next.Clone())})
	} else {
		r.layout, r.next = next, nil
		r.putLayout()
	}
	if r.isVoter(l) && r.lost() {
		r.events.Add(LostDisk, "", "copies the state of all other voters before it votes")
	}
	if sealing {
		r.events.Add(Sealed, "", fmt.Sprintf("layout %d", r.layout.Number))
	}
	r.copying = nil
	r.rebuild()
}
