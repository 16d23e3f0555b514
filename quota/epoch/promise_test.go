package epoch

import (
	"slices"
	"testing"
)

// TestStoredBound: no window beyond the stored bound is used.
func TestStoredBound(t *testing.T) {
	a := mustNew(t, 1, genesis(0, 1, 10, 2, 10))
	wantShare(t, a, 1_000_000, 0, 10, ReasonEpoch)
	wantShare(t, a, 1_000_001, 0, 0, ReasonAhead)
	a.Stored(a.Extend(1_000_001))
	wantShare(t, a, 1_000_001, 0, 10, ReasonEpoch)
}

// TestAcknowledgedBefore: an acknowledgement lists the earlier ones that
// another table may have settled.
func TestAcknowledgedBefore(t *testing.T) {
	a := mustNew(t, 1, genesis(0, 1, 10, 2, 10))
	for i := range int64(3) {
		if err := a.Learn(Epoch{ID: at(i + 1), Members: amounts(1, 4, 2, 16)}); err != nil {
			t.Fatal(err)
		}
	}
	acknowledge(t, a, at(1), 5)
	if ack := acknowledge(t, a, at(3), 5); !slices.Equal(ack.Before, []ID{at(1)}) {
		t.Errorf("acknowledged before: %v, want the first epoch", ack.Before)
	}
}

// TestHorizonsOfFormerRun: a restarted table states the farthest horizon that
// it may have granted before.
func TestHorizonsOfFormerRun(t *testing.T) {
	a := mustNew(t, 1, genesis(30_000, 1, 10, 2, 10, 3, 10))
	x, ok := a.ExtendHorizon(2, 900)
	if !ok {
		t.Fatal("no horizon was extended")
	}
	again, err := Restore(1, a.Record())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Learn(Epoch{ID: at(1), Horizon: 30_000, Members: amounts(1, 20, 3, 10)}); err != nil {
		t.Fatal(err)
	}
	if ack := acknowledge(t, again, at(1), 5); ack.horizon(2) < x.Until {
		t.Errorf("horizon %d of the participant that is left out, granted until %d", ack.horizon(2), x.Until)
	}
}

// TestSettlingChangesTheRevision: callers keep shares until the revision
// changes.
func TestSettlingChangesTheRevision(t *testing.T) {
	a, b := mustNew(t, 1, genesis(0, 1, 10, 2, 10)), mustNew(t, 2, genesis(0, 1, 10, 2, 10))
	e := Epoch{ID: at(1), Members: amounts(1, 4, 2, 16)}
	for _, tb := range []*Table{a, b} {
		if err := tb.Learn(e); err != nil {
			t.Fatal(err)
		}
	}
	acknowledge(t, a, e.ID, 5)
	before := a.Revision()
	if err := a.TakeAck(acknowledge(t, b, e.ID, 5)); err != nil {
		t.Fatal(err)
	}
	if s, _ := a.Settled(); s.ID != e.ID || a.Revision() == before {
		t.Errorf("settled %s, revision %d after %d", s.ID, a.Revision(), before)
	}
}
