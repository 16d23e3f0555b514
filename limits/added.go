package limits

import (
	"strconv"
	"strings"

	"github.com/georld/rld/rules"
)

// The words of the fields that rules has no names for.
var (
	scopeNames       = []string{"global", "region", "node"}
	consistencyNames = []string{"eventual", "partition", "strict"}
	failureNames     = []string{"deny", "allow", "share"}
)

// said is a field's value and where it was written; at is nil when it was not.
type said[T any] struct {
	v  T
	at *node
}

// or takes the value of o where the field was not written.
func (s said[T]) or(o said[T]) said[T] {
	if s.at != nil {
		return s
	}
	return o
}

// failure is the value of on_failure.
type failure struct {
	answer rules.OnFailure
	share  rules.PPM
}

// added is what a rate_limit or the defaults say beyond upstream's fields.
type added struct {
	algorithm    said[rules.Algorithm]
	burst        said[uint32]
	multiplier   said[uint32]
	scope        said[rules.Scope]
	consistency  said[rules.Consistency]
	placement    said[rules.Placement]
	home         said[string]
	budget       said[rules.PPM]
	weights      said[[]rules.Weight]
	onFailure    said[failure]
	carryDebt    said[bool]
	chargeDenied said[bool]
}

// defaults reads the defaults of a file.
func (l *loader) defaults(file *record) added {
	s := file.set[fDefaults]
	if !s.given() {
		return added{}
	}
	var r record
	if !l.apply(s.value, inDefaults, &r) {
		return added{}
	}
	return l.added(&r)
}

// added reads our fields of a record, each for itself.
func (l *loader) added(r *record) added {
	var a added
	a.algorithm = chosen[rules.Algorithm](l, r, fAlgorithm, rules.Algorithms())
	a.scope = chosen[rules.Scope](l, r, fScope, scopeNames)
	a.consistency = chosen[rules.Consistency](l, r, fConsistency, consistencyNames)
	a.placement = chosen[rules.Placement](l, r, fPlacement, rules.Placements())
	a.home = l.region(r.set[fHome])
	a.burst = l.atLeastOne(r, fBurst)
	a.multiplier = l.atLeastOne(r, fMultiplier)
	a.carryDebt = l.flag(r, fCarryDebt)
	a.chargeDenied = l.flag(r, fChargeDenied)
	a.budget = l.budget(r.set[fBudget])
	a.weights = l.weights(r.set[fWeights])
	a.onFailure = l.onFailure(r.set[fOnFailure])
	return a
}

func chosen[T ~uint8](l *loader, r *record, f fieldID, words []string) said[T] {
	i, ok := l.word(r.set[f], f, words)
	if !ok {
		return said[T]{}
	}
	return said[T]{T(i), r.set[f].value}
}

func (l *loader) atLeastOne(r *record, f fieldID) said[uint32] {
	n, ok := l.whole(r.set[f], f, 1)
	if !ok || n == 0 {
		return said[uint32]{}
	}
	return said[uint32]{n, r.set[f].value}
}

func (l *loader) flag(r *record, f fieldID) said[bool] {
	b, ok := l.boolean(r.set[f], f)
	if !ok || !r.set[f].given() {
		return said[bool]{}
	}
	return said[bool]{b, r.set[f].value}
}

// region reads the name of a region.
func (l *loader) region(s setting) said[string] {
	name, ok := l.text(s, fHome.String())
	if !ok || !s.given() {
		return said[string]{}
	}
	if name == "" {
		l.errorf(s.pos(), "name a region, or drop it", "home without a region")
		return said[string]{}
	}
	return said[string]{name, s.value}
}

// maxBudget is the greatest overage budget: 100 limits' worth.
const maxBudget = 10_000 * rules.Percent

func (l *loader) budget(s setting) said[rules.PPM] {
	if !s.given() {
		return said[rules.PPM]{}
	}
	v, ok := l.percentage(s.value, fBudget.String(), "2%")
	if !ok {
		return said[rules.PPM]{}
	}
	if v > maxBudget {
		l.errorf(s.value.pos, "leave overage_budget out for a limit that is only estimated",
			"an overage_budget above 10000%% bounds nothing")
		return said[rules.PPM]{}
	}
	return said[rules.PPM]{v, s.value}
}

// percentage reads a scalar such as 2% or 0.5%; example is one for the hint.
func (l *loader) percentage(n *node, name, example string) (rules.PPM, bool) {
	if n.kind == scalar {
		number, found := strings.CutSuffix(n.text, "%")
		if v, ok := parsePPM(number); found && ok {
			return v, true
		}
	}
	what := describe(n)
	if n.kind == scalar {
		what = quote(n.text)
	}
	l.errorf(n.pos, "write a percentage with at most four decimals, such as "+example, "%s is %s", name, what)
	return 0, false
}

// parsePPM reads a decimal number of percent as parts per million; false when
// it is none, has more decimals than that, or overflows.
func parsePPM(percent string) (rules.PPM, bool) {
	whole, fraction, point := strings.Cut(percent, ".")
	if whole == "" || digits(whole) != len(whole) || digits(fraction) != len(fraction) {
		return 0, false
	}
	if len(fraction) > 4 || point && fraction == "" {
		return 0, false
	}
	fraction += "0000"[len(fraction):]
	ppm, err := strconv.ParseUint(whole+fraction, 10, 32)
	return rules.PPM(ppm), err == nil
}

// onFailure reads deny, allow, "share: N%" or the map {share: N%}.
func (l *loader) onFailure(s setting) said[failure] {
	none := said[failure]{}
	if !s.given() {
		return none
	}
	n := s.value
	share := n // the percentage
	switch {
	case n.kind == mapping && len(n.fields) == 1 && n.fields[0].key.text == "share":
		share = n.fields[0].value
	case n.kind != scalar:
		l.errorf(n.pos, "write deny, allow or {share: 10%}", "on_failure is %s", n.kind)
		return none
	case strings.HasPrefix(n.text, "share:"):
		share = &node{pos: n.pos, text: strings.TrimSpace(n.text[len("share:"):])}
	default:
		i, ok := l.word(s, fOnFailure, failureNames)
		if !ok {
			return none
		}
		if answer := rules.OnFailure(i); answer != rules.Share {
			return said[failure]{failure{answer: answer}, n}
		}
		l.errorf(n.pos, "write {share: 10%}", "on_failure: share without its size")
		return none
	}
	ppm, ok := l.percentage(share, "share", "10%")
	if ok && (ppm == 0 || ppm > 100*rules.Percent) {
		l.errorf(share.pos, "write more than 0% and at most 100%", "a share of %s", quote(share.text))
		ok = false
	}
	if !ok {
		return none
	}
	return said[failure]{failure{rules.Share, ppm}, n}
}
