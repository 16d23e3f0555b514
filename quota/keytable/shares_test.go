package keytable

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// TestSharesHoldForEachRule: for any keys of other rules, a rule with fewer
// keys than its part of the reserve finds room, and the room is never exceeded.
func TestSharesHoldForEachRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 5).Draw(t, "rules")
		limited := rapid.SliceOfN(rapid.Bool(), count, count).Draw(t, "limited")
		all := make([]*rules.Rule, count)
		for i := range all {
			all[i] = &rules.Rule{Index: i}
		}
		room := rapid.IntRange(1, 40).Draw(t, "room")
		s := NewShares(room, rapid.SampledFrom([]rules.PPM{0, 25, 50, 90, 100}).Draw(t, "reserve")*rules.Percent)
		s.SetRules(all, func(r *rules.Rule) bool { return limited[r.Index] })
		sharers := 1
		for _, l := range limited {
			if l {
				sharers++
			}
		}
		part := int(int64(room) * int64(s.rate) / int64(rules.Whole) / int64(sharers))
		model := make([]int, count+1) // the keys of each rule
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			rule, sum, lacking := int32(rapid.IntRange(-1, count-1).Draw(t, "rule")), 0, 0
			for i, n := range model {
				sum += n
				if i == 0 || limited[i-1] {
					lacking += max(0, part-n)
				}
			}
			own, shares := model[rule+1], rule < 0 || limited[rule]
			fits := s.Fits(rule, 0)
			switch {
			case sum > room || sum != s.Len() || own != s.Keys(rule):
				t.Fatalf("%d keys of %d (%d), %d of the rule (%d)", s.Len(), room, sum, s.Keys(rule), own)
			case shares && own < part && !fits:
				t.Fatalf("no room for a rule with %d keys of its part of %d", own, part)
			case fits && (!shares || own >= part) && sum+lacking >= room:
				t.Fatalf("room for a rule with %d keys, while others lack %d of %d free ones", own, lacking, room-sum)
			case !fits && sum+lacking < room:
				t.Fatalf("no room, with %d of %d keys and %d lacking", sum, room, lacking)
			}
			if fits && rapid.IntRange(0, 3).Draw(t, "step") > 0 {
				s.Add(rule)
				model[rule+1]++
			} else if own > 0 {
				s.Remove(rule)
				model[rule+1]--
			}
		}
	})
}

// TestSharesOfOneCall: the keys that a call was promised count, whatever their
// rules are.
func TestSharesOfOneCall(t *testing.T) {
	s := NewShares(4, 0)
	s.Add(-1)
	for promised, want := range []bool{true, true, true, false} {
		if got := s.Fits(-1, promised); got != want {
			t.Errorf("after %d promised keys: room %v, want %v", promised, got, want)
		}
	}
}
