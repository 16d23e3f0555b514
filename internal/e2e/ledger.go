package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Replica is one incarnation of a daemon.
type Replica struct {
	Region, Name string
	// Run is 1 for the first process of that name, 2 for the next.
	Run int
}

// matches reports whether r is what pattern names: fields that are zero in
// pattern stand for all.
func (r Replica) matches(pattern Replica) bool {
	return (pattern.Region == "" || pattern.Region == r.Region) &&
		(pattern.Name == "" || pattern.Name == r.Name) &&
		(pattern.Run == 0 || pattern.Run == r.Run)
}

// Hit is one admitted hit: it was counted between the two times.
type Hit struct {
	By             Replica
	Sent, Answered time.Time
}

// Window names one key in one window.
type Window struct {
	Rule, Value string
	Ends        time.Time
}

// String names the window as a failure shows it.
func (w Window) String() string {
	return fmt.Sprintf("%s=%s until %s", w.Rule, w.Value, w.Ends.UTC().Format("15:04:05"))
}

// Ledger holds every admitted hit. It is not safe for concurrent use.
type Ledger struct {
	hits map[Window][]Hit
}

// Add enters a hit.
func (l *Ledger) Add(w Window, h Hit) {
	if l.hits == nil {
		l.hits = make(map[Window][]Hit)
	}
	l.hits[w] = append(l.hits[w], h)
}

// Windows returns all windows that have hits, by rule, value and end.
func (l *Ledger) Windows() []Window {
	return slices.SortedFunc(maps.Keys(l.hits), func(a, b Window) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Value, b.Value), a.Ends.Compare(b.Ends))
	})
}

// of returns the hits of the window that replicas that match admitted.
func (l *Ledger) of(w Window, by Replica) []Hit {
	return slices.DeleteFunc(slices.Clone(l.hits[w]), func(h Hit) bool { return !h.By.matches(by) })
}

// Admitted returns how many hits of the window replicas that match admitted.
func (l *Ledger) Admitted(w Window, by Replica) int { return len(l.of(w, by)) }

// Latest returns when the last hit of the window was answered, by replicas
// that match; the zero time when there is none.
func (l *Ledger) Latest(w Window, by Replica) time.Time {
	var last time.Time
	for _, h := range l.of(w, by) {
		last = laterOf(last, h.Answered)
	}
	return last
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Gap is a period in which some replicas and all others exchanged nothing: a
// death, a freeze, a partition.
type Gap struct {
	// Of selects the separated replicas. See Replica.matches.
	Of Replica
	// Since is the time up to which the counts of one side are known on the
	// other. Until is the time at which views are fresh again; zero is never.
	Since, Until time.Time
}

// separates reports whether a and b were apart in the gap at t.
func (g Gap) separates(a, b Replica, t time.Time) bool {
	return a.matches(g.Of) != b.matches(g.Of) && t.After(g.Since) && (g.Until.IsZero() || t.Before(g.Until))
}

// Views holds the ages of the views that replicas have of each other.
type Views struct {
	// Near is how old a replica's view of another of its region is at most,
	// Far that of one of another region, in any of their own counters.
	Near, Far time.Duration
	Gaps      []Gap
}

// knownUntil returns the time up to which what `of` counted is known at `at`
// at time t.
func (v *Views) knownUntil(of, at Replica, t time.Time) time.Time {
	age := v.Far
	if of.Region == at.Region {
		age = v.Near
	}
	known := t.Add(-age)
	for _, g := range v.Gaps {
		if g.separates(of, at, t) && g.Since.Before(known) {
			known = g.Since
		}
	}
	return known
}

// Unseen returns by how many hits the window may exceed its limit: the hits
// admitted by others, up to the last hit, that the replica of the last hit
// could not know of.
//
// A replica admits only hits that fit beside all counts it has, so at the last
// hit the limit holds for the counts known there, and nothing is admitted after
// it. Only hits of replicas that match count; an empty pattern matches all. A
// hit was counted at some time between question and answer, so several may have
// been the last: the worst of them counts.
func (l *Ledger) Unseen(w Window, by Replica, v *Views) int {
	hits := l.of(w, by)
	var latest time.Time // by then the last hit had not been counted
	for _, h := range hits {
		latest = laterOf(latest, h.Sent)
	}
	worst := 0
	for _, last := range hits {
		if last.Answered.Before(latest) {
			continue
		}
		unseen := 0
		for _, h := range hits {
			if h.By != last.By && h.Answered.After(v.knownUntil(h.By, last.By, last.Sent)) {
				unseen++
			}
		}
		worst = max(worst, unseen)
	}
	return worst
}
