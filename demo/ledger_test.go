package demo

import (
	"testing"
	"time"
)

// at returns a time of a window of 10 seconds.
func at(window int64, into time.Duration) time.Time {
	return time.UnixMilli(window * 10_000).Add(into)
}

func testLedger(limit uint32) *Ledger {
	all := []Rule{{Name: "a", Limit: limit, Window: 10}, {Name: "b", Limit: 1, Window: 10}}
	return NewLedger(all, []string{"us", "eu"})
}

func admit(l *Ledger, n int, a Ask, window int64) {
	for range n {
		l.Admit(a, at(window, 0), 10*time.Second)
	}
}

func TestOverageIsOfOneKeyAndWindowOverAllRegions(t *testing.T) {
	l := testLedger(100)
	admit(l, 60, Ask{Rule: 0, Key: 0, Region: 0}, 7)
	admit(l, 65, Ask{Rule: 0, Key: 0, Region: 1}, 7)
	admit(l, 90, Ask{Rule: 0, Key: 1, Region: 1}, 7)
	admit(l, 30, Ask{Rule: 0, Key: 0, Region: 1}, 8)
	l.Deny(Ask{Rule: 0})

	r := l.Rows(at(7, time.Second))[0]
	if r.Key != crowds[0].key(0) || r.Total != 125 || r.Admitted["us"] != 60 || r.Admitted["eu"] != 65 || r.Limit != 100 {
		t.Errorf("the fullest key is %+v", r)
	}
	if r.Over != 0.25 || r.Worst != 0.25 || r.Passed != 245 || r.Denied != 1 {
		t.Errorf("got %+v, want an overage of 0.25", r)
	}
	r = l.Rows(at(8, 0))[0]
	if r.Total != 30 || r.Over != 0 || r.Worst != 0.25 {
		t.Errorf("in the next window: %+v", r)
	}
	if r := l.Rows(at(9, 0))[0]; r.Total != 0 || r.Limit != 100 {
		t.Errorf("in an empty window: %+v", r)
	}
	if r := l.Rows(at(7, 0))[1]; r.Total != 0 || r.Worst != 0 {
		t.Errorf("the other rule: %+v", r)
	}
}

func TestLateAnswersCountInTheirWindow(t *testing.T) {
	l := testLedger(10)
	a := Ask{}
	admit(l, 9, a, 7)
	admit(l, 5, a, 8)
	admit(l, 5, a, 9)
	admit(l, 2, a, 7) // 11 of 10
	if w := l.Rows(at(8, 0))[0].Worst; w != 0.1 {
		t.Errorf("worst %v, want 0.1", w)
	}
	admit(l, 1, a, 10) // 7 goes
	admit(l, 50, a, 7) // too late for anything but the sum
	r := l.Rows(at(10, 0))[0]
	if r.Worst != 0.1 || r.Passed != 72 {
		t.Errorf("got %+v", r)
	}
}

func TestAWindowIsHeldAgainstItsGreatestLimit(t *testing.T) {
	l := testLedger(100)
	admit(l, 100, Ask{}, 7)
	l.SetLimit(0, 50, at(7, time.Second))
	admit(l, 10, Ask{}, 7)
	admit(l, 60, Ask{}, 8)
	if r := l.Rows(at(7, 0))[0]; r.Over != 0.1 || r.Limit != 100 {
		t.Errorf("in the window of the change: %+v", r)
	}
	if r := l.Rows(at(8, 0))[0]; r.Over != 0.2 || r.Limit != 50 {
		t.Errorf("in the next: %+v", r)
	}
	l.SetLimit(0, 200, at(8, time.Second))
	admit(l, 100, Ask{}, 8)
	if r := l.Rows(at(8, 0))[0]; r.Over != 0 || r.Limit != 200 || r.Worst != 0.2 {
		t.Errorf("after it grew: %+v", r)
	}
}

func TestTheWorstSinceABudgetIsOfWindowsThatBeganUnderIt(t *testing.T) {
	l := testLedger(100)
	admit(l, 150, Ask{}, 7)
	l.SetBudget(0, true, at(7, time.Second))
	admit(l, 10, Ask{}, 7) // the window in which it came does not count
	if r := l.Rows(at(7, 2*time.Second))[0]; r.SinceBudget != 0 || r.Worst != 0.6 {
		t.Errorf("got %+v", r)
	}
	admit(l, 102, Ask{}, 8)
	if r := l.Rows(at(8, 0))[0]; r.SinceBudget != 0.02 || r.Worst != 0.6 {
		t.Errorf("got %+v", r)
	}
	l.SetBudget(0, false, at(8, time.Second))
	admit(l, 10, Ask{}, 9)
	if r := l.Rows(at(9, 0))[0]; r.SinceBudget != 0 {
		t.Errorf("without a budget: %+v", r)
	}
}

func TestTheFullestWindowIsOfAnyKeyAndKept(t *testing.T) {
	l := testLedger(5)
	admit(l, 4, Ask{Key: 0, Region: 0}, 7)
	admit(l, 3, Ask{Key: 1, Region: 1}, 7)
	if r := l.Rows(at(7, 0))[0]; r.Most != 4 || r.MostOf != 5 || r.Full != 0 {
		t.Errorf("with 4 and 3 of 5: %+v", r)
	}
	admit(l, 2, Ask{Key: 1, Region: 0}, 7)
	admit(l, 1, Ask{Key: 0, Region: 0}, 8)
	if r := l.Rows(at(9, 0))[0]; r.Most != 5 || r.MostOf != 5 || r.Full != 1 {
		t.Errorf("with 5 of 5, two windows later: %+v", r)
	}
	l.SetLimit(0, 10, at(9, 0))
	admit(l, 10, Ask{Key: 1, Region: 0}, 9) // as full, and not fuller
	if r := l.Rows(at(9, 0))[0]; r.Most != 5 || r.MostOf != 5 || r.Full != 2 {
		t.Errorf("with 10 of 10: %+v", r)
	}
	admit(l, 1, Ask{Key: 1, Region: 1}, 9)
	if r := l.Rows(at(9, 0))[0]; r.Most != 11 || r.MostOf != 10 || r.Full != 2 {
		t.Errorf("with 11 of 10: %+v", r)
	}
}
