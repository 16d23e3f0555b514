package limits

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// maxWeights bounds the regions of weights.
const maxWeights = 64

// weights reads a map of regions and their percentages.
func (l *loader) weights(out *[]rules.Weight) yamlpos.Reader {
	return func(n *yamlpos.Node, _ string) bool {
		switch {
		case n.Kind != yamlpos.Map:
			return l.Errorf(n.Pos, "write {us-east: 60%, eu-west: 40%}", "weights is %s", n.Describe())
		case len(n.Pairs) == 0:
			return l.Errorf(n.Pos, "write {us-east: 60%, eu-west: 40%}", "weights is an empty map")
		case len(n.Pairs) > maxWeights:
			return l.Errorf(n.Pos, "at most "+strconv.Itoa(maxWeights), "weights of %d regions", len(n.Pairs))
		}
		good := true
		for _, p := range n.Pairs {
			w, ok := l.weight(p)
			if ok && slices.ContainsFunc(*out, func(o rules.Weight) bool { return o.Region == w.Region }) {
				l.Errorf(p.Key.Pos, "keep one", "the region %s is in weights twice", yamlpos.Quote(w.Region))
				ok = false
			}
			good = good && ok
			*out = append(*out, w)
		}
		slices.SortFunc(*out, func(a, b rules.Weight) int { return cmp.Compare(a.Region, b.Region) })
		return good && l.complete(n, *out)
	}
}

// weight reads the share of one region.
func (l *loader) weight(p yamlpos.Pair) (w rules.Weight, ok bool) {
	if p.Key.IsMerge() {
		l.Errorf(p.Key.Pos, "name the regions here", "<< in weights")
		return w, false
	}
	w.Region, ok = l.text(setting{p.Key, p.Key}, "a region")
	if ok && w.Region == "" {
		l.Errorf(p.Key.Pos, "name the region", "a weight without a region")
		return w, false
	}
	if ok && !l.options.knows(w.Region) {
		l.Errorf(p.Key.Pos, l.options.regionHint(w.Region), "weights of %s, which is no region of the cluster",
			yamlpos.Quote(w.Region))
		ok = false
	}
	read := yamlpos.Percent(&l.Collector, &w.Share, "40%")(p.Value, "the weight of "+yamlpos.Quote(w.Region))
	return w, ok && read
}

// complete reports whether weights name every region and sum to exactly 100%.
// With less, nobody could use the rest; with more, the bound would not hold.
func (l *loader) complete(n *yamlpos.Node, weights []rules.Weight) bool {
	var missing []string
	for _, region := range l.options.Regions {
		if !slices.ContainsFunc(weights, func(w rules.Weight) bool { return w.Region == region }) {
			missing = append(missing, region)
		}
	}
	if len(missing) > 0 {
		return l.Errorf(n.Pos, "name all regions, 0% for one that starts each window with none",
			"weights without %s", suggest.List(missing))
	}
	sum := uint64(0)
	for _, w := range weights {
		sum += uint64(w.Share)
	}
	if sum != uint64(rules.Whole) {
		return l.Errorf(n.Pos, "make them sum to exactly 100%", "weights that sum to %s",
			rules.PPM(min(sum, uint64(^rules.PPM(0)))).String())
	}
	return true
}

// knows reports whether a region is one of the cluster, or may be one because
// the regions are not known.
func (o *Options) knows(region string) bool {
	return o.Regions == nil || slices.Contains(o.Regions, region)
}

// regionHint returns the region that was likely meant, or else all regions.
func (o *Options) regionHint(name string) string {
	return suggest.Hint(name, o.Regions, "the regions are "+suggest.List(o.Regions))
}

// setWeights sets the shares of the regions.
func (b *builder) setWeights() {
	out := b.out
	split := out.HasRights() && out.Scope == rules.Global
	if split && out.Placement != rules.Owner {
		out.Weights = b.own.weights.or(b.defaults.weights).v
		return
	}
	n := b.own.weights.at
	switch {
	case n == nil:
	case out.Scope != rules.Global:
		b.Errorf(n.Pos, "drop one of the two"+b.scopeOrigin(),
			"weights with scope %s, under which the regions share nothing", scopeNames[out.Scope])
	case out.Consistency == rules.Strict:
		b.Errorf(n.Pos, "drop one of the two"+b.consistencyOrigin(),
			"weights with consistency strict, where one daemon holds all rights of a key")
	case split:
		b.Errorf(n.Pos, "drop one of the two"+b.placementOrigin(),
			"weights with placement owner, where one daemon holds all rights of a key")
	default:
		b.Errorf(n.Pos, "add overage_budget or consistency: partition, or drop them",
			"weights share out rights, and a limit that is only estimated has none")
	}
}
