package rules

import (
	"slices"
	"strings"
)

// Difference is a rule that two sets differ in.
type Difference struct {
	Domain, Path string
	// Before and After are its rules, nil for a set that lacks it.
	Before, After *Rule
	Effect
	// Shape: the rule counts or holds rights in another way, or it is in one of
	// the sets only.
	Shape bool
}

// Differences returns the rules that two sets differ in: those of the set after
// in its order, then those that it lacks.
func Differences(before, after *Set) []Difference {
	var all []Difference
	moved := reordered(before, after)
	for _, r := range after.rules {
		o := before.byID[r.ID]
		d := Difference{Domain: r.Domain, Path: r.Path, Before: o, After: r}
		switch {
		case o == nil:
			d.Raises, d.Shape = true, true
		case moved[r.ID] || !samePatterns(o, r):
			d.Effect = EffectOf(o.Limit, r.Limit)
			d.Raises, d.Shape = true, true
		default:
			d.Effect, d.Shape = EffectOf(o.Limit, r.Limit), !SameShape(o.Limit, r.Limit)
		}
		if d.Lowers || d.Raises {
			all = append(all, d)
		}
	}
	for _, r := range before.rules {
		if after.byID[r.ID] == nil {
			all = append(all, Difference{Domain: r.Domain, Path: r.Path, Before: r, Effect: Effect{Raises: true}, Shape: true})
		}
	}
	return all
}

// samePatterns compares the patterns of share_threshold of two rules.
func samePatterns(a, b *Rule) bool {
	if len(a.Patterns) != len(b.Patterns) {
		return false
	}
	for i := range a.Patterns {
		if a.Patterns[i] != b.Patterns[i] {
			return false
		}
	}
	return true
}

// reordered returns the rules with wildcards that have another place among
// those of both sets: the first wildcard that matches wins.
func reordered(before, after *Set) map[ID]bool {
	wild := func(s, other *Set) []ID {
		var all []ID
		for _, r := range s.rules {
			if strings.Contains(r.Path, "*") && other.byID[r.ID] != nil {
				all = append(all, r.ID)
			}
		}
		return all
	}
	moved := make(map[ID]bool)
	was, is := wild(before, after), wild(after, before)
	for i := range was {
		if was[i] != is[i] {
			moved[is[i]] = true
		}
	}
	return moved
}

// Replace returns a set with other limits: limit returns that of each rule, and
// is called in the order of Rules. It returns the set itself if none differs.
func (s *Set) Replace(limit func(*Rule) *Limit) (*Set, error) {
	r := replacer{rules: s.rules, limit: limit}
	nodes := make([]DomainNode, len(s.nodes))
	for i, d := range s.nodes {
		nodes[i] = DomainNode{Name: d.Name, Children: r.level(d.Children)}
	}
	if !r.changed {
		return s, nil
	}
	return NewSet(nodes)
}

// replacer copies a tree in the order of the rules of its set.
type replacer struct {
	rules   []*Rule // that follow
	limit   func(*Rule) *Limit
	changed bool
}

func (r *replacer) level(nodes []Node) []Node {
	out := make([]Node, len(nodes))
	for i := range nodes {
		n := nodes[i]
		n.Limit = r.limit(r.rules[0])
		r.changed = r.changed || n.Limit != nodes[i].Limit
		r.rules = r.rules[1:]
		n.Children = r.level(n.Children)
		out[i] = n
	}
	return out
}

// Union returns the domains of a set, and those of another one that it lacks.
// It returns one of the two if that has all of them.
func Union(over, under *Set) (*Set, error) {
	missing := func(s, of *Set) []DomainNode {
		var all []DomainNode
		for _, d := range of.nodes {
			if s.Domain(d.Name) == nil {
				all = append(all, d)
			}
		}
		return all
	}
	more := missing(over, under)
	switch {
	case len(more) == 0:
		return over, nil
	case len(over.nodes) == 0:
		return under, nil
	}
	return NewSet(append(slices.Clone(over.nodes), more...))
}
