package crdt

import (
	"testing"

	"pgregory.net/rapid"
)

// elementwise is what Sum.Join must not be.
func elementwise(a, b Sum) Sum { return Sum{max(a.P, b.P), max(a.N, b.N)} }

func TestSumExample(t *testing.T) {
	// Slot a admitted 100, slot b admitted 50 and refunded them.
	const truth = 100
	onlyA, onlyB := Sum{100, 0}, Sum{50, 50}
	got := onlyB
	if changed := got.Join(onlyA); !changed || got.Net() != truth {
		t.Errorf("joined to %v, %d net, want %d", got, got.Net(), truth)
	}
	if wrong := elementwise(onlyA, onlyB).Net(); wrong != 50 {
		t.Errorf("element by element %d net, the comment of Sum says 50", wrong)
	}
}

// TestSumOfAggregators lets aggregators publish what they have heard of while
// slots admit and refund. The join is always a pair that one of them published,
// never a mixture of two, and it is the truth once one of them has heard all.
func TestSumOfAggregators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var truth PNCounter
		var views [2]PNCounter
		var joined Sum
		published := map[Sum]bool{{}: true}
		publish := func(v *PNCounter) {
			published[v.Sum()] = true
			joined.Join(v.Sum())
		}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			s, n := genIncarnation().Draw(t, "slot"), rapid.Uint64Range(1, 9).Draw(t, "n")
			switch rapid.SampledFrom([]string{"add", "refund", "hear", "publish"}).Draw(t, "event") {
			case "add":
				check(truth.Add(s, n))
			case "refund":
				check(truth.Refund(s, min(n, truth.Get(s).Net())))
			case "hear":
				must(views[n%2].JoinCell(s, truth.Get(s)))
			case "publish":
				publish(&views[n%2])
			}
			if !published[joined] {
				t.Fatalf("the join %v is none of the published %v", joined, published)
			}
		}
		must(views[0].Join(&truth))
		publish(&views[0])
		if joined != truth.Sum() || joined.Net() != truth.Value() {
			t.Fatalf("joined to %v when the truth %v was published", joined, truth.Sum())
		}
	})
}

// TestSumIsMonotone: what an aggregator publishes never goes back, or the join
// would hold on to what it said before.
func TestSumIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, more := genPNCounter().Draw(t, "counter"), genPNCounter().Draw(t, "more")
		before := p.Sum()
		changed := must(p.Join(&more))
		if got := p.Sum().Compare(before); got < 0 || (got > 0) != changed {
			t.Fatalf("sum %v after %v, counter changed %t", p.Sum(), before, changed)
		}
	})
}

func TestSumValid(t *testing.T) {
	if !(Sum{2, 2}).Valid() || (Sum{2, 3}).Valid() {
		t.Error("a sum is valid when it refunds no more than it admitted")
	}
	if got := (Sum{2, 3}).Net(); got != 0 {
		t.Errorf("net %d of a sum that refunds more than it admitted, want 0", got)
	}
	if got := (Sum{Max, 5}).Net(); got != Max {
		t.Errorf("net %d of a saturated sum, want the greatest count", got)
	}
}
