package rules_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// drawLimit draws a limit, nil for none. Few values make equal ones likely.
func drawLimit(t *rapid.T) *rules.Limit {
	if rapid.IntRange(0, 5).Draw(t, "none") == 0 {
		return nil
	}
	l := &rules.Limit{
		Unit: rapid.SampledFrom([]rules.Unit{rules.Second, rules.Minute}).Draw(t, "unit"), Multiplier: 1,
		Requests: rapid.Uint32Range(0, 3).Draw(t, "requests"), Shadow: rapid.IntRange(0, 3).Draw(t, "shadow") == 0,
		Budget: rules.PPM(rapid.Uint32Range(0, 2).Draw(t, "budget")), HasBudget: true,
	}
	switch rapid.IntRange(0, 7).Draw(t, "shape") {
	case 0:
		l.Algorithm = rules.TokenBucket
		l.Burst = rapid.Uint32Range(0, 3).Draw(t, "burst")
	case 1:
		l.Placement = rules.Owner
	case 2:
		l.Unlimited = true
	}
	return l
}

func drawNodes(t *rapid.T, depth int) []rules.Node {
	var out []rules.Node
	values := []string{"", "a", "ab", "a*", "*b", "*"}
	for _, v := range rapid.Permutation(values).Draw(t, "values")[:rapid.IntRange(0, 4).Draw(t, "count")] {
		n := rules.Node{Key: "k", Value: v, Limit: drawLimit(t)}
		if depth > 1 && rapid.IntRange(0, 2).Draw(t, "deeper") == 0 {
			n.Children = drawNodes(t, depth-1)
		}
		out = append(out, n)
	}
	return out
}

func drawSet(t *rapid.T, depth int) *rules.Set {
	var domains []rules.DomainNode
	for _, name := range []string{"d", "e"} {
		if rapid.IntRange(0, 4).Draw(t, "domain") > 0 {
			domains = append(domains, rules.DomainNode{Name: name, Children: drawNodes(t, depth)})
		}
	}
	return compiled(t, domains)
}

func compiled(t interface{ Fatalf(string, ...any) }, domains []rules.DomainNode) *rules.Set {
	set, err := rules.NewSet(domains)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return set
}

// match returns the rule of a request, nil for none.
func match(s *rules.Set, domain string, values ...string) *rules.Rule {
	d := s.Domain(domain)
	if d == nil {
		return nil
	}
	var entries []rules.Entry
	for _, v := range values {
		entries = append(entries, rules.Entry{Key: "k", Value: v})
	}
	return d.Match(entries)
}

// same reports whether two sets match a request by one rule.
func sameRule(a, b *rules.Rule) bool { return (a == nil) == (b == nil) && (a == nil || a.ID == b.ID) }

// limitOf returns the limit of a rule that counts, nil for none.
func limitOf(r *rules.Rule) *rules.Limit {
	if r == nil || r.Limit == nil || r.Limit.Unlimited {
		return nil
	}
	return r.Limit
}

// atMost reports whether a limit admits no more than another one.
func atMost(a, b *rules.Limit) bool {
	if b == nil {
		return true
	}
	return a != nil && a.Requests <= b.Requests && a.Burst <= b.Burst && a.Total() <= b.Total() && (!a.Shadow || b.Shadow)
}

// TestTransitionBefore checks a set before the change is in force: each request
// meets the rule that it met before, which admits no more than in either set.
func TestTransitionBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawSet(t, 2), drawSet(t, 2)
		from := rapid.SampledFrom([]int64{0, 100_000}).Draw(t, "from")
		nodes, _ := rules.Transition{Before: before, After: after, From: from, Now: 99_999}.Nodes()
		now := compiled(t, nodes)
		for _, request := range requests() {
			is, was, will := match(now, request[0], request[1:]...), match(before, request[0], request[1:]...), match(after, request[0], request[1:]...)
			if !sameRule(is, was) {
				t.Fatalf("%v meets %v, before the change %v", request, is, was)
			}
			if !atMost(limitOf(is), limitOf(was)) {
				t.Fatalf("%v: %+v admits more than %+v", request, limitOf(is), limitOf(was))
			}
			if sameRule(is, will) && limitOf(is) != nil && limitOf(will) != nil && rules.SameShape(was.Limit, will.Limit) && !atMost(is.Limit, will.Limit) {
				t.Fatalf("%v: %+v admits more than the next %+v", request, is.Limit, will.Limit)
			}
		}
	})
}

// TestTransitionAfter checks a set after the change came into force: each
// request meets the rule that it meets in one of the two sets. A limit is that
// of a set, or one with the smaller amounts of both. A rule never goes back,
// and in the end the set is the new one.
func TestTransitionAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawSet(t, 1), drawSet(t, 1)
		const from = 100_001
		at := int64(from)
		for step := 0; ; step++ {
			nodes, next := rules.Transition{Before: before, After: after, From: from, Now: at}.Nodes()
			now := compiled(t, nodes)
			for _, request := range requests() {
				is, was, will := match(now, request[0], request[1:]...), match(before, request[0], request[1:]...), match(after, request[0], request[1:]...)
				if !sameRule(is, was) && !sameRule(is, will) {
					t.Fatalf("at %d %v meets %v, which is neither %v nor %v", at, request, is, was, will)
				}
				o, n := before, after
				if is != nil && o.Find(is.ID) != nil && n.Find(is.ID) != nil {
					checkTaken(t, at, from, is.Limit, o.Find(is.ID).Limit, n.Find(is.ID).Limit)
				}
			}
			if next == 0 {
				if over := (rules.Transition{Before: before, After: after, From: from}).Over(); over != at || now.Hash() != after.Hash() {
					t.Fatalf("over at %d, said %d; hash %x, of the new set %x", at, over, now.Hash(), after.Hash())
				}
				return
			}
			if next <= at || step > 10 {
				t.Fatalf("after %d the next change is at %d", at, next)
			}
			at = next
		}
	})
}

// checkTaken checks the limit of a rule of both sets.
func checkTaken(t *rapid.T, at, from int64, is, was, will *rules.Limit) {
	ruling := will
	if ruling == nil || ruling.Unlimited {
		ruling = was
	}
	if at >= ruling.Takeover(from) {
		if is != will {
			t.Fatalf("at %d %+v is in force, want %+v", at, is, will)
		}
	} else if is != will && !rules.SameShape(is, was) {
		t.Fatalf("at %d %+v is in force of %+v and %+v", at, is, was, will)
	}
}

// TestTransitionUnaware checks a daemon that may have missed that the change is
// in force: a limit of another shape admits nothing, and no rule of the new set
// is missing unless the former set has another one for its requests.
func TestTransitionUnaware(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawSet(t, 1), drawSet(t, 1)
		nodes, _ := rules.Transition{Before: before, After: after, Unaware: true}.Nodes()
		now := compiled(t, nodes)
		for _, request := range requests() {
			is, was, will := match(now, request[0], request[1:]...), match(before, request[0], request[1:]...), match(after, request[0], request[1:]...)
			if sameRule(was, will) && limitOf(will) != nil && limitOf(was) != nil && !rules.SameShape(was.Limit, will.Limit) && is.Limit.Requests+is.Limit.Burst > 0 {
				t.Fatalf("%v: %+v admits calls, between %+v and %+v", request, is.Limit, was.Limit, will.Limit)
			}
			if was == nil && will != nil && is == nil {
				t.Fatalf("%v meets no rule, and %v in the new set", request, will)
			}
		}
	})
}

func requests() [][]string {
	var all [][]string
	for _, d := range []string{"d", "e"} {
		for _, v := range []string{"a", "ab", "b", "cb", "c", "abc", "*", "a*"} {
			all = append(all, []string{d, v}, []string{d, v, "ab"}, []string{d, "ab", v})
		}
	}
	return all
}

// TestLowerLaws checks that the smaller amounts of limits of one shape depend
// neither on their order nor on repetition.
func TestLowerLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawLimit(t), drawLimit(t), drawLimit(t)
		if low := rules.Lower(a, b); !atMost(low, limitOfLimit(a)) || !rules.SameShape(low, a) {
			t.Fatalf("%+v of %+v and %+v", low, a, b)
		}
		if !rules.SameShape(a, b) || !rules.SameShape(b, c) || a == nil {
			return
		}
		text := func(l *rules.Limit) string { return fmt.Sprintf("%+v", *l) }
		if ab, ba := rules.Lower(a, b), rules.Lower(b, a); !a.Unlimited && text(ab) != text(ba) {
			t.Fatalf("%+v, and the other way round %+v", ab, ba)
		}
		if x, y := rules.Lower(rules.Lower(a, b), c), rules.Lower(a, rules.Lower(b, c)); text(x) != text(y) {
			t.Fatalf("%+v and %+v", x, y)
		}
		if x := rules.Lower(a, a); text(x) != text(a) {
			t.Fatalf("%+v of %+v twice", x, a)
		}
		e := rules.EffectOf(a, b)
		if !a.Unlimited && (e.Lowers == atMost(a, b) || e.Raises == atMost(b, a)) && a.Total() == uint64(a.Requests) && b.Total() == uint64(b.Requests) && a.Budget == b.Budget {
			t.Fatalf("%+v to %+v: %+v", a, b, e)
		}
	})
}

func limitOfLimit(l *rules.Limit) *rules.Limit {
	if l == nil || l.Unlimited {
		return nil
	}
	return l
}

// TestDifferences checks the effects of changes of a set.
func TestDifferences(t *testing.T) {
	base := rules.Limit{Unit: rules.Minute, Multiplier: 1, Requests: 10}
	set := func(edit func(*rules.Limit)) *rules.Set {
		l := base
		edit(&l)
		return compiled(t, []rules.DomainNode{{Name: "d", Children: []rules.Node{{Key: "k", Limit: &l}}}})
	}
	none := compiled(t, nil)
	for _, tc := range []struct {
		name          string
		before, after *rules.Set
		want          string
	}{
		{"same", set(func(*rules.Limit) {}), set(func(*rules.Limit) {}), "[]"},
		{"smaller", set(func(*rules.Limit) {}), set(func(l *rules.Limit) { l.Requests = 5 }), "[{d k {true false} false}]"},
		{"larger", set(func(*rules.Limit) {}), set(func(l *rules.Limit) { l.Requests = 15 }), "[{d k {false true} false}]"},
		{"enforced", set(func(l *rules.Limit) { l.Shadow = true }), set(func(*rules.Limit) {}), "[{d k {true false} false}]"},
		{"in shadow mode", set(func(*rules.Limit) {}), set(func(l *rules.Limit) { l.Shadow = true }), "[{d k {false true} false}]"},
		{"another unit", set(func(*rules.Limit) {}), set(func(l *rules.Limit) { l.Unit, l.Requests = rules.Hour, 5 }), "[{d k {false true} true}]"},
		{"another placement", set(func(*rules.Limit) {}), set(func(l *rules.Limit) { l.Placed, l.Requests = rules.Owner, 5 }), "[{d k {true true} true}]"},
		{"added", none, set(func(*rules.Limit) {}), "[{d k {false true} true}]"},
		{"removed", set(func(*rules.Limit) {}), none, "[{d k {false true} true}]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := []string{}
			for _, d := range rules.Differences(tc.before, tc.after) {
				id := tc.before.Rules()
				if len(id) == 0 {
					id = tc.after.Rules()
				}
				if d.Before != tc.before.Find(id[0].ID) || d.After != tc.after.Find(id[0].ID) {
					t.Errorf("rules %v and %v", d.Before, d.After)
				}
				all = append(all, fmt.Sprintf("{%s %s %v %v}", d.Domain, d.Path, d.Effect, d.Shape))
			}
			if got := fmt.Sprint(all); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestReplace checks that a set with other limits has them at the same rules,
// and that a set without others is the same one.
func TestReplace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := drawSet(t, 3)
		if is, err := set.Replace(func(r *rules.Rule) *rules.Limit { return r.Limit }); err != nil || is != set {
			t.Fatalf("another set, error %v", err)
		}
		is, err := set.Replace(func(r *rules.Rule) *rules.Limit {
			if r.Limit == nil {
				return nil
			}
			l := *r.Limit
			l.Requests = uint32(r.Index) + 100
			return &l
		})
		if err != nil || len(is.Rules()) != len(set.Rules()) {
			t.Fatalf("%d of %d rules, error %v", len(is.Rules()), len(set.Rules()), err)
		}
		for i, r := range set.Rules() {
			o := is.Rules()[i]
			if o.ID != r.ID || (o.Limit == nil) != (r.Limit == nil) || o.Limit != nil && o.Limit.Requests != uint32(i)+100 {
				t.Fatalf("rule %d is %+v, of %+v", i, o, r)
			}
		}
	})
}
