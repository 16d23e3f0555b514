package e2e

import (
	"time"

	"github.com/georld/rld/internal/admitted"
)

// Gap is a period in which some daemons and all others exchanged nothing: a
// death, a freeze, a partition.
type Gap struct {
	// Of selects the separated daemons.
	Of admitted.Daemon
	// Since is the time up to which the counts of one side are known on the
	// other. Until is the time at which views are fresh again; zero is never.
	Since, Until time.Time
}

// separates reports whether a and b were apart in the gap at t.
func (g Gap) separates(a, b admitted.Daemon, t time.Time) bool {
	return a.Matches(g.Of) != b.Matches(g.Of) && t.After(g.Since) && (g.Until.IsZero() || t.Before(g.Until))
}

// Views holds the ages of the views that daemons have of each other.
type Views struct {
	// Near is the greatest age of a daemon's view of another one of its region,
	// Far that of its view of a daemon of another region, in the counters that
	// the daemon itself reports.
	Near, Far time.Duration
	Gaps      []Gap
	// Daemons is the number of daemons of the cluster where each may keep few
	// hits back for fewWait: an eighth of the limit, divided by all, or one. It
	// is 0 in regions of fewer than three daemons, which keep none.
	Daemons int
}

// fewWait is how long few hits wait, see docs/concepts.md.
const fewWait = 2 * time.Second

// knownUntil returns the time up to which the counts of one daemon are known at
// another one at time t.
func (v *Views) knownUntil(of, at admitted.Daemon, t time.Time) time.Time {
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

// Unseen returns by how many hits a window may exceed its limit: the hits
// admitted by others, up to the last hit, that the daemon of the last hit could
// not know of.
//
// A daemon admits only hits that fit beside all counts it has, so at the last
// hit the limit holds for the counts known there, and nothing is admitted after
// it. Only hits of daemons that match the pattern count. A hit was counted at
// some time between question and answer, so several may have been the last: the
// worst of them counts.
func (v *Views) Unseen(c *admitted.Count, by admitted.Daemon) int {
	var latest time.Time // by then the last hit had not been counted
	for h := range c.Hits(by) {
		latest = laterOf(latest, h.Sent)
	}
	worst := 0
	for last := range c.Hits(by) {
		if last.Answered.Before(latest) {
			continue
		}
		unseen, kept := 0, make(map[admitted.Daemon]int)
		for h, n := range c.Hits(by) {
			if h.By == last.By {
				continue
			}
			known := v.knownUntil(h.By, last.By, last.Sent)
			if h.Answered.After(known) {
				unseen += n
			} else if v.Daemons > 0 && h.Answered.After(known.Add(-fewWait)) {
				kept[h.By] += n
			}
		}
		for _, n := range kept {
			unseen += min(n, max(1, c.Limit/(8*v.Daemons)))
		}
		worst = max(worst, unseen)
	}
	return worst
}

// latestOf returns the time of the answer to the last hit of a window, the zero
// time for a window without hits.
func latestOf(c *admitted.Count) time.Time {
	var last time.Time
	for h := range c.Hits(admitted.Daemon{}) {
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
