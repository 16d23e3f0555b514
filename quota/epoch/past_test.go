package epoch

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPast: the shares of a table that prunes are those of a table that does
// not prune, or less.
func TestPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Epoch{Members: amounts(1, 500_000, 2, 500_000)}
		whole, err := New(1, g)
		if err != nil {
			t.Fatal(err)
		}
		pruned, _ := New(1, g)
		n := rapid.IntRange(1, MaxEpochs-2).Draw(t, "epochs")
		rounds := rapid.IntRange(1, 3).Draw(t, "rounds")
		last, x := ID{}, int64(0)
		var windows []int64
		for i := range n * rounds {
			x += rapid.Int64Range(1, 5).Draw(t, "gap")
			e := Epoch{ID: at(int64(i + 1)), Pred: last}
			part := rapid.Uint64Range(0, Whole).Draw(t, "part")
			row := rapid.Uint32Range(0, Whole).Draw(t, "row")
			e.Members = amounts(1, part, 2, Whole-part)
			if rapid.Bool().Draw(t, "with a row") {
				e.Rules = []RuleShares{{5, []uint32{row, Whole - row}}}
			}
			settle := rapid.IntRange(0, 4).Draw(t, "settled") > 0
			for j, tab := range []*Table{whole, pruned} {
				if j == 0 && i >= MaxEpochs-2 {
					continue // full: from here on only that it answers counts
				}
				tab.Stored(tab.Extend(1_000_000))
				if err := tab.Learn(e); err != nil {
					t.Fatal(err)
				}
				if !settle {
					continue
				}
				for _, by := range []uint64{1, 2} {
					tab.entries[tab.Len()-1].add(Ack{ID: e.ID, By: by, From: x})
				}
				tab.settle()
			}
			if settle {
				last = e.ID
				pruned.Prune(x - rapid.Int64Range(0, 20).Draw(t, "keep"))
			}
			windows = append(windows, x-1, x)
			if pruned.Len() > MaxEpochs-2 {
				return
			}
		}
		if len(pruned.past) > maxPast {
			t.Fatalf("%d kept of the pruned, want at most %d", len(pruned.past), maxPast)
		}
		if n*rounds >= MaxEpochs-2 {
			if _, why := pruned.Share(5, windows[0], 0); why != ReasonEpoch {
				t.Fatalf("label %d: %v", windows[0], why)
			}
			return
		}
		for _, x := range windows {
			for _, carry := range []int64{0, 3} {
				a, why := whole.Share(5, x, carry)
				b, whyB := pruned.Share(5, x, carry)
				if b > a || why != whyB || len(pruned.past) < maxPast && a != b {
					t.Fatalf("row of label %d, carry %d: %d (%v) pruned, %d (%v) whole", x, carry, b, whyB, a, why)
				}
				c, _ := whole.Part(1000, x, carry)
				if d, _ := pruned.Part(1000, x, carry); d > c || c-d > 1 {
					t.Fatalf("part of label %d, carry %d: %d pruned, %d whole", x, carry, d, c)
				}
			}
		}
	})
}

func TestMerged(t *testing.T) {
	a := Past{From: 1, Until: 9, Amount: 10, Weight: 1, Total: 3, Rules: []PastRule{{1, 5}, {3, 20}}}
	b := Past{From: 4, Until: 7, Amount: 12, Weight: 1, Total: 4, Rules: []PastRule{{1, 6}, {2, 8}}}
	m := merged(a, b)
	if m.From != 1 || m.Until != 7 || m.Amount != 10 || m.split(12) != 3 {
		t.Errorf("%+v", m)
	}
	for rule, want := range map[uint64]uint64{1: 5, 2: 8, 3: 12, 4: 10} {
		if got := m.amountOf(rule); got != want {
			t.Errorf("rule %d: %d, want %d", rule, got, want)
		}
	}
}
