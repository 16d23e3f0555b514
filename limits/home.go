package limits

import (
	"math/bits"
	"strings"

	"github.com/georld/rld/rules"
)

// maxBucketRate bounds what a homed bucket passes a second: a home says how
// full one is by the instant at which it will have drained, in nanoseconds.
const maxBucketRate = 10_000_000

// strict reports whether hits of a limit are decided at one home, never one
// too many. A limit of one daemon needs none for that.
func strict(out *rules.Limit) bool {
	return out.Consistency == rules.Strict && out.Scope != rules.NodeLocal
}

// setHome pins the home region.
func (l *loader) setHome(out *rules.Limit, own, defaults *added) {
	at := own.home.at
	if at == nil {
		return
	}
	atHome := strict(out) || out.HasRights() && out.Placement == rules.Owner
	switch {
	case out.Scope != rules.Global:
		l.errorf(at.pos, "drop one of the two"+origin(own.scope.at, defaults.scope.at),
			"home with scope %s, under which the regions share nothing", word(scopeNames, int(out.Scope)))
	case !atHome && out.HasRights():
		l.errorf(at.pos, "add placement: owner, or drop it"+origin(own.placement.at, defaults.placement.at),
			"home with placement %s, where not one daemon holds all rights of a key", out.Placement)
	case !atHome:
		l.errorf(at.pos, "make it consistency: strict, or drop it"+origin(own.consistency.at, defaults.consistency.at),
			"home with consistency %s, where no daemon decides for the others", out.Consistency)
	case !l.options.knows(own.home.v):
		l.errorf(at.pos, l.regionHint(own.home.v), "home in %s, which is no region of the cluster", quote(own.home.v))
	default:
		out.Home = own.home.v
	}
}

// regionHint says which region was likely meant, else which there are.
func (l *loader) regionHint(name string) string {
	if best := Closest(name, l.options.Regions); best != "" {
		return "did you mean " + best + "?"
	}
	return "the regions are " + join(l.options.Regions)
}

// answer sets what a strict limit does without its home.
func (l *loader) answer(out *rules.Limit, own, defaults *added, r *record) {
	if out.Consistency != rules.Strict {
		if n := own.onFailure.at; n != nil {
			l.errorf(n.pos, "drop it, or make it consistency: strict"+origin(own.consistency.at, defaults.consistency.at),
				"on_failure with consistency %s: it is what a strict limit answers without its home", out.Consistency)
		}
		return
	}
	f := own.onFailure.or(defaults.onFailure)
	if f.v.answer == rules.Share && !l.shares(out, f, own, defaults) {
		return
	}
	out.OnFailure, out.ReserveShare = f.v.answer, f.v.share
	if out.OnFailure == rules.Share {
		l.checkReserves(out, own, defaults, r)
	}
}

// shares reports whether there are regions to set a share aside for. What
// the defaults say is left out where the limit itself has none.
func (l *loader) shares(out *rules.Limit, f said[failure], own, defaults *added) bool {
	switch {
	case out.Scope != rules.Global:
		if own.onFailure.at != nil {
			l.errorf(f.at.pos, "write deny or allow"+origin(own.scope.at, defaults.scope.at),
				"on_failure share with scope %s: there is no other region to fall back in", word(scopeNames, int(out.Scope)))
		}
		return false
	case len(l.options.Regions) == 1:
		l.errorf(f.at.pos, "write deny or allow",
			"on_failure share in a cluster of one region: there is no other region to fall back in")
		return false
	}
	return true
}

// checkReserves refuses a share of which a region would get nothing, or which
// leaves nothing to the home.
func (l *loader) checkReserves(out *rules.Limit, own, defaults *added, r *record) {
	regions := len(l.options.Regions)
	if regions < 2 || out.Requests == 0 {
		return
	}
	requests, burst := out.Reserve(regions)
	home := out.OwnerLimit(regions)
	bucket := out.Algorithm.Bucket()
	at := r.countAt()
	if n := own.onFailure.at; n != nil {
		at = n.pos
	}
	what := ""
	switch {
	case requests == 0 || bucket && burst == 0:
		what = "less than 1 for each of " + itoa(regions) + " regions"
	case home.Requests == 0 || bucket && home.Burst == 0:
		what = "all of it, and nothing is left for the home"
	default:
		return
	}
	l.errorf(at, reserveHint(out, regions)+origin(own.onFailure.at, defaults.onFailure.at),
		"on_failure share %s of %s is %s", percent(out.ReserveShare), amounts(out), what)
}

// amounts returns what floors are taken off: "5", "5 and a burst of 2".
func amounts(out *rules.Limit) string {
	if !out.Algorithm.Bucket() {
		return utoa(uint64(out.Requests))
	}
	return utoa(uint64(out.Requests)) + " and a burst of " + utoa(uint64(out.Burst))
}

// reserveHint says which share works for a limit, and which limit for its share.
func reserveHint(out *rules.Limit, regions int) string {
	var hints []string
	if s, ok := leastShare(out, regions); ok {
		what := "share"
		if s < out.ReserveShare {
			what = "smaller share,"
		}
		hints = append(hints, "write a "+what+" of at least "+percent(s))
	}
	if n, ok := leastFloored(out.ReserveShare, regions); ok {
		var low []string
		if uint64(out.Requests) < n {
			low = append(low, fRequests.String())
		}
		if out.Algorithm.Bucket() && uint64(out.Burst) < n {
			low = append(low, fBurst.String())
		}
		if len(low) > 0 {
			hints = append(hints, "raise "+join(low)+" to "+utoa(n))
		}
	}
	return strings.Join(append(hints, "write deny or allow"), ", or ")
}

// leastShare returns the least share of which each region gets 1; false
// when there is none that leaves something for the home.
func leastShare(out *rules.Limit, regions int) (rules.PPM, bool) {
	n := uint64(out.Requests)
	if out.Algorithm.Bucket() {
		n = min(n, uint64(out.Burst))
	}
	if n <= uint64(regions) {
		return 0, false
	}
	return rules.PPM(ceil(uint64(regions)*uint64(rules.Whole), n)), true
}

// leastFloored returns the least limit of which a share gives each region 1; false for a share of all, which leaves the home nothing of most limits.
func leastFloored(share rules.PPM, regions int) (uint64, bool) {
	return ceil(uint64(regions)*uint64(rules.Whole), uint64(share)), share < rules.Whole
}

func ceil(a, b uint64) uint64 { return (a + b - 1) / b }

// checkHomed refuses homed buckets that are too fast, and counts homed limits
// for what is said of them once.
func (l *loader) checkHomed(out *rules.Limit, own, defaults *added, r *record) {
	if !out.Homed() {
		return
	}
	l.homed.count(r.countAt(), l.source)
	// Requests x 1000 > rate x milliseconds, in 128 bits.
	high, low := bits.Mul64(maxBucketRate, uint64(out.Window()))
	if out.Algorithm.Bucket() && high == 0 && out.Total()*1_000 > low {
		l.errorf(r.countAt(), "use fixed_window"+origin(own.algorithm.at, defaults.algorithm.at)+
			", or let every daemon decide for itself with consistency: eventual",
			"a %s that one home passes more than %d hits a second of: its level is an instant, and these are too close",
			out.Algorithm, maxBucketRate)
	}
}

// tally counts limits that have something in common, and keeps where the first
// of them is.
type tally struct {
	n     int
	first Diagnostic
}

func (t *tally) count(at rules.Position, source string) {
	if t.n++; t.n == 1 {
		t.first = Diagnostic{Position: at, Source: nthLine(source, at.Line)}
	}
}

// limits returns "1 limit VERB" or "3 limits VERBS".
func (t *tally) limits(one, many string) string {
	if t.n == 1 {
		return "1 limit " + one
	}
	return itoa(t.n) + " limits " + many
}

// tell adds what is said of all of them, at the first one.
func (t *tally) tell(l *loader, s Severity, message, hint string) {
	d := t.first
	d.Severity, d.Message, d.Hint = s, message, hint
	if hint != "" {
		d.Hint += " (the first of them is here)"
	}
	l.add(d)
}

// tellHomes says once a set on what the homes of its limits hang.
func (l *loader) tellHomes() {
	if l.homed.n == 0 {
		return
	}
	if l.options.Alone {
		l.homed.tell(l, Note, l.homed.limits("is strict", "are strict")+
			", and this daemon is alone: it counts in memory, and a restart forgets", "")
		return
	}
	n := l.options.Replicas
	decided := l.homed.limits("is decided at a home", "are decided at homes") + ", and "
	const (
		holds  = " what is used of keys at home in this region (strict.replicas): "
		answer = " on_failure answers for them, or they are refused"
		right  = "three daemons go on without one of them"
	)
	switch {
	case n == 1:
		l.homed.tell(l, Warning, decided+"one daemon alone holds"+holds+"while it is down"+answer, right)
	case n == 2:
		l.homed.tell(l, Warning, decided+"two daemons hold"+holds+"while one of them is down"+answer, right)
	case n > 0 && n%2 == 0:
		l.homed.tell(l, Warning, decided+itoa(n)+" daemons hold"+holds+"no more of them may be down than of "+itoa(n-1),
			"name an odd number of them")
	}
}
