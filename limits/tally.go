package limits

import (
	"strconv"

	"github.com/georld/rld/internal/yamlpos"
)

// tally counts limits that share a property, and keeps the position of the
// first one, for a diagnostic about all of them.
type tally struct {
	n     int
	first yamlpos.Diagnostic
}

func (t *tally) count(c *yamlpos.Collector, at yamlpos.Position) {
	if t.n++; t.n == 1 {
		t.first = yamlpos.Diagnostic{Position: at, Source: c.Line(at.Line)}
	}
}

// limits returns "1 limit VERB" or "3 limits VERBS".
func (t *tally) limits(one, many string) string {
	if t.n == 1 {
		return "1 limit " + one
	}
	return strconv.Itoa(t.n) + " limits " + many
}

// report adds a diagnostic about all counted limits at the first one.
func (t *tally) report(c *yamlpos.Collector, s yamlpos.Severity, message, hint string) {
	d := t.first
	d.Severity, d.Message, d.Hint = s, message, hint
	if hint != "" {
		d.Hint += " (the first of them is here)"
	}
	c.Add(d)
}

// reportShortWindows warns once a set of short windows.
func (l *loader) reportShortWindows() {
	if l.short.n > 0 {
		l.short.report(&l.Collector, yamlpos.Warning, l.short.limits("has a window", "have windows")+
			" shorter than 5s, 20 times what the clocks of two daemons may differ, "+
			"so the count at a window's edge may differ too", "a token_bucket has no edges")
	}
}

// reportBriefBuckets warns once a set of buckets that are refilled before they
// can be shared out.
func (l *loader) reportBriefBuckets() {
	if l.brief.n > 0 {
		l.brief.report(&l.Collector, yamlpos.Warning, l.brief.limits("has a bucket", "have buckets")+
			" refilled within 200ms, and an owner for each key: other daemons get at most half of it, "+
			"and nothing if it refills while the owner's answer is on its way", "a larger burst goes further")
	}
}

// reportOwned states once a set how available the limits are whose keys one
// daemon owns.
func (l *loader) reportOwned() {
	if l.owned.n == 0 {
		return
	}
	if l.options.Alone {
		l.owned.report(&l.Collector, yamlpos.Note, l.owned.limits("is strict", "are strict")+
			", and this daemon is alone: it counts in memory, and a restart forgets", "")
		return
	}
	n := l.options.Replicas
	decided := l.owned.limits("is decided by the owners of its keys", "are decided by the owners of their keys") + ", and "
	const (
		store     = " the consumption of the keys of this region (strict.replicas): "
		otherwise = " on_failure decides for them"
		hint      = "three daemons go on without one of them"
	)
	switch {
	case n == 1:
		l.owned.report(&l.Collector, yamlpos.Warning, decided+"one daemon alone stores"+store+"while it is down"+otherwise, hint)
	case n == 2:
		l.owned.report(&l.Collector, yamlpos.Warning, decided+"two daemons store"+store+"while one of them is down"+otherwise, hint)
	case n > 0 && n%2 == 0:
		l.owned.report(&l.Collector, yamlpos.Warning, decided+strconv.Itoa(n)+" daemons store"+store+
			"no more of them may be down than of "+strconv.Itoa(n-1), "name an odd number of them")
	}
}
