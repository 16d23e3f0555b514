package crdt

import (
	"testing"

	"pgregory.net/rapid"
)

// total returns the Sum that an aggregator publishes for its cells.
func total(c cells) (s Sum) {
	for _, v := range c {
		s.P, s.N = s.P+v.P, s.N+v.N
	}
	return s
}

func TestSumExample(t *testing.T) {
	// Writer a admitted 100, writer b admitted 50 and refunded them.
	const truth = 100
	onlyA, onlyB := Sum{100, 0}, Sum{50, 50}
	for _, got := range []Sum{onlyA.Join(onlyB), onlyB.Join(onlyA)} {
		if PN(got).Net() != truth {
			t.Errorf("joined to %v, %d net, want %d", got, PN(got).Net(), truth)
		}
	}
	if wrong := PN(onlyA).Join(PN(onlyB)).Net(); wrong != 50 {
		t.Errorf("element by element %d net, the comment of Sum has 50", wrong)
	}
}

// TestSumOfAggregators lets aggregators publish the cells they received while
// writers admit and refund. The join is always a pair that one of them
// published, never a mixture of two, and it is the truth as soon as one of them
// has every cell.
func TestSumOfAggregators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth := cells{}
		views := [2]cells{{}, {}}
		var joined Sum
		published := map[Sum]bool{{}: true}
		publish := func(v cells) {
			published[total(v)] = true
			joined = joined.Join(total(v))
		}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			i, n := genIncarnation().Draw(t, "writer"), rapid.Uint64Range(1, 9).Draw(t, "n")
			v := truth[i]
			switch rapid.SampledFrom([]string{"add", "refund", "receive", "publish"}).Draw(t, "event") {
			case "add":
				truth[i] = PN{v.P + n, v.N}
			case "refund":
				truth[i] = PN{v.P, v.N + min(n, v.Net())}
			case "receive":
				views[n%2][i] = views[n%2][i].Join(v)
			case "publish":
				publish(views[n%2])
			}
			if !published[joined] {
				t.Fatalf("the join %v is none of the published %v", joined, published)
			}
		}
		publish(truth)
		if joined != total(truth) {
			t.Fatalf("joined to %v when the truth %v was published", joined, total(truth))
		}
	})
}

// TestSumIsMonotone: the Sum of an aggregator grows if and only if a cell did.
// Otherwise the join would keep an earlier one.
func TestSumIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, more := genCells().Draw(t, "cells"), genCells().Draw(t, "more")
		before := total(c)
		l := replicas()
		changed := l.Join(&c, &more)
		if got := total(c).Compare(before); got < 0 || (got > 0) != changed {
			t.Fatalf("sum %v after %v, cells changed: %t", total(c), before, changed)
		}
	})
}
