package epoch

import "testing"

// stopped returns the record of participant 3 of 3 that held 2 of 6 in window
// 10, was left out from window 21 on, and stopped at 25.
func stopped(t *testing.T) Record {
	t.Helper()
	table, err := New(3, genesis(9, 1, 2, 2, 2, 3, 2))
	if err != nil {
		t.Fatal(err)
	}
	table.Stored(table.Extend(30))
	for by := range uint64(2) {
		if err := table.TakeExtension(Extension{By: by + 1, To: 3, Until: 22}); err != nil {
			t.Fatal(err)
		}
	}
	if got, why := table.Part(6, 10, 0); got != 2 {
		t.Fatalf("%d in window 10, %v: want 2", got, why)
	}
	if err := table.TakeClaim(Claim{Base: Epoch{ID: at(1), Horizon: 9, Members: amounts(1, 3, 2, 3)}, From: 23}); err != nil {
		t.Fatal(err)
	}
	table.Prune(24)
	table.Stop(25)
	return table.Extend(30)
}

func TestResumeContinuesWindows(t *testing.T) {
	r := stopped(t)
	table, err := Resume(3, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		x, carry int64
		want     uint64
		why      Reason
	}{
		{10, 0, 2, ReasonEpoch},
		{22, 12, 2, ReasonEpoch},
		{23, 0, 0, ReasonLeftOut},
		{25, 0, 0, ReasonLeftOut},
		{26, 0, 0, ReasonAhead},
	} {
		if got, why := table.FormerPart(6, tt.x, tt.carry); got != tt.want || why != tt.why {
			t.Errorf("window %d, carry %d: %d, %v: want %d, %v", tt.x, tt.carry, got, why, tt.want, tt.why)
		}
		if got, why := table.Part(6, tt.x, tt.carry); tt.x <= 25 && (got != 0 || why != ReasonFenced) {
			t.Errorf("window %d, carry %d without accounts: %d, %v: want it fenced", tt.x, tt.carry, got, why)
		}
	}
}

// A run that knows only its own use hands on no more.
func TestResumeAfterARunOfUnknownUse(t *testing.T) {
	r := stopped(t)
	table, err := Restore(3, r)
	if err != nil {
		t.Fatal(err)
	}
	if got, why := table.FormerPart(6, 10, 0); got != 0 || why != ReasonFenced {
		t.Errorf("restored without accounts: %d, %v: want it fenced", got, why)
	}
	table.Stop(40)
	if table, err = Resume(3, table.Extend(40)); err != nil {
		t.Fatal(err)
	}
	if got, why := table.FormerPart(6, 10, 0); got != 0 || why != ReasonFenced {
		t.Errorf("the run before the last: %d, %v: want it fenced", got, why)
	}
}

func TestResumeRefuses(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"a run that did not stop":     func(r *Record) { r.Stopped = false },
		"too few horizons":            func(r *Record) { r.Extended = nil },
		"unknown use after the last":  func(r *Record) { r.Unknown = r.Bounds.Window + 1 },
		"a part of nothing":           func(r *Record) { r.Past[0].Total = 0 },
		"a pruned epoch not settled":  func(r *Record) { r.Past[0].From = never },
		"rules of a pruned epoch":     func(r *Record) { r.Past[0].Rules = []PastRule{{2, 1}, {1, 1}} },
		"more pruned epochs than fit": func(r *Record) { r.Past = make([]Past, maxPast+1) },
	} {
		r := stopped(t)
		if change(&r); len(r.Past) == 0 {
			t.Fatalf("%s: nothing is pruned", name)
		}
		if _, err := Resume(3, r); err == nil {
			t.Errorf("%s: resumed", name)
		}
	}
}
