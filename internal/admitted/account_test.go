package admitted

import (
	"maps"
	"slices"
	"testing"
	"time"
)

const length = 10 * time.Second

// instant returns a time s seconds after the start of a window.
func instant(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// window returns the n-th window of a key.
func window(key string, n int) Window {
	return WindowOf("rule", key, length, instant(0), time.Duration(n+1)*length)
}

func add(a *Account, n int, w Window, by Daemon) (c *Count) {
	for range n {
		c = a.Add(w, 10, Hit{By: by})
	}
	return c
}

var (
	us0 = Daemon{"us", "us-0", 1}
	us1 = Daemon{"us", "us-1", 1}
	eu0 = Daemon{"eu", "eu-0", 2}
)

func TestOverageIsOfOneKeyAndWindowOverAllDaemons(t *testing.T) {
	var a Account
	add(&a, 6, window("a", 7), us0)
	add(&a, 9, window("b", 7), us0)
	add(&a, 9, window("a", 8), us0)
	if c := add(&a, 4, window("a", 7), eu0); c.Total != 10 || c.Overage() != 0 {
		t.Errorf("%d of %d admitted: overage %v, want 0", c.Total, c.Limit, c.Overage())
	}
	if c := add(&a, 2, window("a", 7), us1); c.Total != 12 || c.Overage() != 0.2 {
		t.Errorf("%d of %d admitted: overage %v, want 0.2", c.Total, c.Limit, c.Overage())
	}
}

func TestALimitIsThatOfTheFirstHitUntilItIsRaised(t *testing.T) {
	var a Account
	c := a.Add(window("a", 0), 1, Hit{})
	if a.Add(window("a", 0), 5, Hit{}); c.Limit != 1 || c.Overage() != 1 {
		t.Errorf("limit %d, overage %v, want 1 and 1", c.Limit, c.Overage())
	}
	if c.Limit = 2; c.Overage() != 0 {
		t.Errorf("overage %v of a raised limit, want 0", c.Overage())
	}
	if c.Limit = 0; c.Overage() != 0 {
		t.Errorf("overage %v of no limit, want 0", c.Overage())
	}
}

func TestAdmittedGoesByDaemon(t *testing.T) {
	var a Account
	add(&a, 1, window("a", 0), us0)
	add(&a, 2, window("a", 0), us1)
	c := add(&a, 4, window("a", 0), eu0)
	for by, want := range map[Daemon]int{
		{}: 7, {Region: "us"}: 3, {Region: "eu"}: 4, us0: 1, {Name: "us-1"}: 2, {Run: 2}: 4, {Name: "eu-0", Run: 1}: 0,
	} {
		if got := c.Admitted(by); got != want {
			t.Errorf("%d hits of %+v, want %d", got, by, want)
		}
	}
}

func TestEqualHitsAreOneEntry(t *testing.T) {
	var a Account
	c := add(&a, 1_000, window("a", 0), us0)
	late := Hit{us0, instant(1), instant(2)}
	a.Add(window("a", 0), 10, late)
	want := map[Hit]int{{By: us0}: 1_000, late: 1}
	if got := maps.Collect(c.Hits(Daemon{})); !maps.Equal(got, want) {
		t.Errorf("hits %v, want %v", got, want)
	}
}

func TestTheLatestWindowsOfAKeyAreKept(t *testing.T) {
	a := Account{Keep: 2}
	add(&a, 1, window("b", 1), us0)
	add(&a, 1, window("a", 5), us0)
	add(&a, 1, window("a", 3), us0)
	if c := add(&a, 1, window("a", 2), us0); c != nil {
		t.Errorf("%v is kept beside two later windows", c.Window)
	}
	if c := add(&a, 1, window("a", 3), us0); c == nil || c.Total != 2 {
		t.Errorf("window 3 has %+v, want 2 hits", c)
	}
	if c := add(&a, 1, window("a", 4), us0); c == nil || c.Total != 1 {
		t.Errorf("window 4 has %+v, want 1 hit", c)
	}
	var got []Window
	for _, c := range a.Counts() {
		got = append(got, c.Window)
	}
	if want := []Window{window("a", 4), window("a", 5), window("b", 1)}; !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
}

func TestWindowOfIsTheNearest(t *testing.T) {
	for _, tt := range []struct{ at, left, want float64 }{
		{50, 10, 50},
		{51, 9, 50},
		{59.99, 0.01, 50},
		{60.02, 0.01, 50}, // answered late
		{59.98, 10, 60},   // by a clock that is ahead
	} {
		left := time.Duration(tt.left * float64(time.Second))
		w := WindowOf("rule", "a", length, instant(tt.at), left)
		if !w.Start.Equal(instant(tt.want)) || !w.End().Equal(instant(tt.want+10)) {
			t.Errorf("at %v with %v s left: %v", tt.at, tt.left, w)
		}
		if local := instant(tt.at).In(time.FixedZone("east", 3600)); WindowOf("rule", "a", length, local, left) != w {
			t.Errorf("%v: another window in another time zone", local)
		}
	}
}

func TestAWindowContainsItsStartAndNotItsEnd(t *testing.T) {
	w := window("a", 0)
	for s, want := range map[float64]bool{-0.001: false, 0: true, 9.999: true, 10: false} {
		if w.Contains(instant(s)) != want {
			t.Errorf("%v s after the start: contained %v, want %v", s, !want, want)
		}
	}
}
