package limits

import (
	"cmp"
	"slices"

	"github.com/georld/rld/rules"
)

// maxWeights bounds the regions of weights.
const maxWeights = 64

// weights reads a map of regions and their percentages.
func (l *loader) weights(s setting) said[[]rules.Weight] {
	none := said[[]rules.Weight]{}
	if !s.given() {
		return none
	}
	n := s.value
	const example = "write {us-east: 60%, eu-west: 40%}"
	switch {
	case n.kind != mapping || len(n.fields) == 0:
		l.errorf(n.pos, example, "weights is %s", orEmpty(n))
		return none
	case len(n.fields) > maxWeights:
		l.errorf(n.pos, "at most "+itoa(maxWeights), "weights of %d regions", len(n.fields))
		return none
	}
	var out []rules.Weight
	good := true
	for _, f := range n.fields {
		w, ok := l.weight(f)
		if ok && slices.ContainsFunc(out, func(o rules.Weight) bool { return o.Region == w.Region }) {
			l.errorf(f.key.pos, "keep one", "the region %s is in weights twice", quote(w.Region))
			ok = false
		}
		good = good && ok
		out = append(out, w)
	}
	if !good || !l.wholeWeights(n, out) {
		return none
	}
	slices.SortFunc(out, func(a, b rules.Weight) int { return cmp.Compare(a.Region, b.Region) })
	return said[[]rules.Weight]{out, n}
}

// orEmpty is describe that tells an empty map from a full one.
func orEmpty(n *node) string {
	if n.kind == mapping {
		return "an empty map"
	}
	return describe(n)
}

// weight reads the share of one region.
func (l *loader) weight(f field) (w rules.Weight, ok bool) {
	if f.key.isMerge() {
		l.errorf(f.key.pos, "name the regions here", "<< in weights")
		return w, false
	}
	w.Region, ok = l.text(setting{f.key, f.key}, "a region")
	if ok && w.Region == "" {
		l.errorf(f.key.pos, "name the region", "a weight without a region")
		return w, false
	}
	if ok && !l.options.knows(w.Region) {
		l.errorf(f.key.pos, l.regionHint(w.Region), "weights of %s, which is no region of the cluster", quote(w.Region))
		ok = false
	}
	share, read := l.percentage(f.value, "the weight of "+quote(w.Region), "40%")
	w.Share = share
	return w, ok && read
}

// wholeWeights checks that weights name every region and share out everything,
// no more and no less: what is missing nobody could use, what is too much
// would break the bound.
func (l *loader) wholeWeights(n *node, weights []rules.Weight) bool {
	var missing []string
	for _, region := range l.options.Regions {
		if !slices.ContainsFunc(weights, func(w rules.Weight) bool { return w.Region == region }) {
			missing = append(missing, region)
		}
	}
	if len(missing) > 0 {
		l.errorf(n.pos, "name all regions, 0% for one that starts each window with none",
			"weights without %s", join(missing))
		return false
	}
	sum := uint64(0)
	for _, w := range weights {
		sum += uint64(w.Share)
	}
	if sum != uint64(rules.Whole) {
		l.errorf(n.pos, "make them sum to exactly 100%", "weights that sum to %s",
			percent(rules.PPM(min(sum, uint64(^rules.PPM(0))))))
		return false
	}
	return true
}

// setWeights pins the regions' shares where there are any.
func (l *loader) setWeights(out *rules.Limit, own, defaults *added) {
	split := out.HasRights() && out.Scope == rules.Global
	if split && out.Placement != rules.Owner {
		out.Weights = own.weights.or(defaults.weights).v
		return
	}
	n := own.weights.at
	switch {
	case n == nil:
	case out.Scope != rules.Global:
		l.errorf(n.pos, "drop one of the two"+origin(own.scope.at, defaults.scope.at),
			"weights with scope %s, under which the regions share nothing", word(scopeNames, int(out.Scope)))
	case out.Consistency == rules.Strict:
		l.errorf(n.pos, "drop one of the two"+origin(own.consistency.at, defaults.consistency.at),
			"weights with consistency strict, where one daemon holds all rights of a key")
	case split:
		l.errorf(n.pos, "drop one of the two"+origin(own.placement.at, defaults.placement.at),
			"weights with placement owner, where one daemon holds all rights of a key")
	default:
		l.errorf(n.pos, "add overage_budget or consistency: partition, or drop them",
			"weights share out rights, and a limit that is only estimated has none")
	}
}
