package epoch

import (
	"testing"

	"pgregory.net/rapid"
)

// A run uses no window from its resignation on, and the next one none before:
// the former keeps the promises, under which the latter knows what others use.
func TestSucceed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := Genesis(0, []Member{{1, 1}, {2, 1}})
		if err != nil {
			t.Fatal(err)
		}
		one, err := New(1, g)
		if err != nil {
			t.Fatal(err)
		}
		one.Stored(one.Extend(1_000_000))
		used := rapid.Int64Range(0, 1000).Draw(t, "used")
		one.Part(10, used, 0)
		from := one.Resign(rapid.Int64Range(0, 1000).Draw(t, "now"))
		if from <= used || one.Resign(2000) != from {
			t.Fatalf("resigned from %d on after it used %d, and then again from %d", from, used, one.Resign(2000))
		}
		x := rapid.Int64Range(0, 3000).Draw(t, "window")
		if part, why := one.Part(10, x, 0); (part > 0) != (x < from) {
			t.Fatalf("window %d: %d (%v) after a resignation from %d on", x, part, why, from)
		}

		three, err := Succeed(3, one.Record(), from)
		if err != nil {
			t.Fatal(err)
		}
		if three.Former() != 1 || !three.Remembers(3, 1) || three.Remembers(3, 0) {
			t.Fatal("it does not continue the former run")
		}
		if part, _ := three.Part(10, x, 0); part > 0 {
			t.Fatalf("window %d: %d before an epoch names it", x, part)
		}
		e := Epoch{ID: ID{Stamp: 9}, Members: []Member{{2, 1}, {3, 1}}, Retired: []Retirement{{1, from}}}
		if err := three.Learn(e); err != nil {
			t.Fatal(err)
		}
		ack, _, err := three.Acknowledge(e.ID, from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := three.TakeAck(Ack{ID: e.ID, By: 2, From: from + 1}); err != nil {
			t.Fatal(err)
		}
		three.Stored(three.Extend(1_000_000))
		if part, why := three.Part(10, x, 0); (part > 0) != (x >= ack.From) || ack.From <= from-1 {
			t.Fatalf("window %d: %d (%v), acknowledged from %d on", x, part, why, ack.From)
		}
	})
}
