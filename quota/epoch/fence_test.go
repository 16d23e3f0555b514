package epoch

import "testing"

// TestFence: windows that others may have used before the table began are held
// by nobody, in later runs and by those that join later neither.
func TestFence(t *testing.T) {
	const from = 10_000
	g := genesis(0, 1, 1)
	tb, err := New(1, g)
	if err != nil {
		t.Fatal(err)
	}
	if since := tb.Since(); since != 0 {
		t.Errorf("a new table holds rights since %d, want no bound", since)
	}
	tb.Fence(from)
	if since := tb.Since(); since != from {
		t.Errorf("it holds rights since %d, want %d", since, from)
	}
	tb.Stored(tb.Extend(1_000)) // the clock is behind the fence
	again, err := Restore(1, tb.Extend(1_000))
	if err != nil {
		t.Fatal(err)
	}
	again.Stored(again.Extend(1_000_000))
	tb.Stored(tb.Extend(1_000_000))
	for _, tb := range []*Table{tb, again} {
		for _, tc := range []struct {
			x, carry int64
			holds    bool
		}{{from - 1, 0, false}, {from, 0, true}, {from + 5, 6, false}, {from + 6, 6, true}} {
			if got, reason := tb.Share(1, tc.x, tc.carry); (got > 0) != tc.holds {
				t.Errorf("window %d with history of %d: share %d, %v", tc.x, tc.carry, got, reason)
			}
		}
	}
	e := Epoch{ID: ID{Stamp: 1, Proposer: 1}, Members: []Member{{ID: 1, Amount: 1}, {ID: 2, Amount: 1}}}
	if err := tb.Learn(e); err != nil {
		t.Fatal(err)
	}
	if a := acknowledge(t, tb, e.ID, 500); a.From < from {
		t.Errorf("the epoch counts from %d on for those that join: want %d", a.From, from)
	}
}
