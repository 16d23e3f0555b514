package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
)

// maxFullRules is the number of rules without room that a text names.
const maxFullRules = 3

// keysOfRule counts the keys of a rule, and its descriptors without room for
// one more.
type keysOfRule struct{ keys, full uint64 }

// countKeysFull returns the keys of each rule, and the descriptors without room
// so far.
func (r *Report) countKeysFull() map[ruleKey]keysOfRule {
	out := map[ruleKey]keysOfRule{}
	r.Engine.Tallies(func(domain, rule string, t quota.Tally) {
		k := ruleKey{domain, rule}
		out[k] = keysOfRule{out[k].keys + t.Keys, out[k].full + t.KeysFull}
	})
	return out
}

// keysFullText names the rules without room for one more key, those with most
// such descriptors first, and the remedy.
func (r *Report) keysFullText(s node.Stats) string {
	now := r.countKeysFull()
	grown := func(k ruleKey) uint64 { return now[k].full - min(now[k].full, r.keysFull[k].full) }
	full := slices.SortedFunc(maps.Keys(now), func(a, b ruleKey) int {
		return cmp.Or(cmp.Compare(grown(b), grown(a)), cmp.Compare(a.domain, b.domain), cmp.Compare(a.path, b.path))
	})
	full = slices.DeleteFunc(full, func(k ruleKey) bool { return grown(k) == 0 })
	var names []string
	for _, k := range full[:min(len(full), maxFullRules)] {
		name := "overrides without a rule"
		if k != (ruleKey{}) {
			name = fmt.Sprintf("%q of domain %q", k.path, k.domain)
		}
		names = append(names, fmt.Sprintf("%s (%d tracked)", name, now[k].keys))
	}
	if more := len(full) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	of := strings.Join(names, ", ")
	return fmt.Sprintf("no room for more keys of %s: new keys of these rules share overflow counters and may be denied falsely, and "+
		"on_failure decides new strict keys; %d of %d keys are tracked: look for a flood of random values, "+
		"or raise --max-keys", cmp.Or(of, "some rules"), s.LiveKeys, s.MaxKeys)
}
