package sim

import (
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// sharedRule returns the rule of a set that cells name by a number, nil for
// none.
func sharedRule(set *rules.Set, name uint64) *rules.Rule {
	for _, r := range set.Rules() {
		if r.Limit != nil && node.SharedRule(r) == name {
			return r
		}
	}
	return nil
}
