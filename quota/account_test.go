package quota

import (
	"testing"

	"github.com/georld/rld/rules"
)

// tenSeconds is a limit of 100 per 10 s.
func tenSeconds(a rules.Algorithm) *rules.Limit {
	return &rules.Limit{Algorithm: a, Unit: rules.Second, Multiplier: 10, Requests: 100, Burst: 100}
}

func wantLeft(t *testing.T, what string, a *Account, l *rules.Limit, b Allotment, now int64, want uint64) {
	t.Helper()
	if got := a.Left(l, b, now); got != want {
		t.Errorf("%s: %d left, want %d", what, got, want)
	}
}

// TestAccountOfWindows moves an account from window to window.
func TestAccountOfWindows(t *testing.T) {
	b := Allotment{Amount: 100}
	for _, tt := range []struct {
		algorithm                  rules.Algorithm
		begins, returned, halfLeft uint64
	}{
		{rules.FixedWindow, 100, 100, 100},
		{rules.SlidingWindow, 40, 70, 85},
	} {
		l, a := tenSeconds(tt.algorithm), &Account{}
		a.Spend(l, b, 100_000, 60)
		wantLeft(t, "spent", a, l, b, 109_999, 40)
		wantLeft(t, "the next window begins", a, l, b, 110_000, tt.begins)
		a.Return(l, 100_000, 30) // late
		wantLeft(t, "returned late", a, l, b, 110_000, tt.returned)
		wantLeft(t, "half of the window", a, l, b, 115_000, tt.halfLeft)
		wantLeft(t, "two windows later", a, l, b, 130_000, 100)
	}
}

// TestAccountOfRaisedBucket: a raised rate counts from when it is known.
func TestAccountOfRaisedBucket(t *testing.T) {
	l, a := tenSeconds(rules.TokenBucket), &Account{}
	slow, fast := Allotment{Amount: micro(50), Rate: micro(10)}, Allotment{Amount: micro(50), Rate: micro(100)}
	a.Spend(l, slow, 100_000, 50)
	wantLeft(t, "raised", a, l, fast, 105_000, 5)
	wantLeft(t, "at the new rate", a, l, fast, 106_000, 15)
	wantLeft(t, "lowered", a, l, slow, 107_000, 16)
}

// TestCarryDebtOfBucket: hits beyond an empty bucket are paid back.
func TestCarryDebtOfBucket(t *testing.T) {
	l := tenSeconds(rules.TokenBucket)
	for debt, want := range map[bool]uint64{false: 100, true: 130} {
		l.CarryDebt = debt
		var c Cell
		Of(l).Charge(&c, nil, 100_000, 130)
		if got := Of(l).Used(&c, nil, 100_000); got != want {
			t.Errorf("carry_debt %v: %d in use, want %d", debt, got, want)
		}
	}
}

// TestWatermarkEnds: consumption of a sliding window is known for as long as it
// weighs.
func TestWatermarkEnds(t *testing.T) {
	for algorithm, want := range map[rules.Algorithm]int64{rules.FixedWindow: 110_000, rules.SlidingWindow: 120_000} {
		var a Account
		if got := a.Watermark(tenSeconds(algorithm), 101_000, 101_000, 5); got != (Watermark{100_000, 5, want}) {
			t.Errorf("%v: %+v, want its end at %d", algorithm, got, want)
		}
	}
}
