package e2e

import (
	"testing"
	"time"
)

var (
	us0 = Replica{"us", "us-0", 1}
	us1 = Replica{"us", "us-1", 1}
	eu0 = Replica{"eu", "eu-0", 1}
	eu1 = Replica{"eu", "eu-1", 1}
)

// second returns the time s seconds into a test.
func second(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// at is a hit that took 10 ms, counted by then.
func at(by Replica, s float64) Hit { return Hit{by, second(s - 0.01), second(s)} }

func ledgerOf(w Window, hits ...Hit) *Ledger {
	l := &Ledger{}
	for _, h := range hits {
		l.Add(w, h)
	}
	return l
}

func TestUnseenIsWhatOthersAdmittedWithinTheAgeOfTheView(t *testing.T) {
	w := Window{Rule: "day", Value: "a"}
	v := &Views{Near: 200 * time.Millisecond, Far: time.Second}
	for _, c := range []struct {
		name string
		hits []Hit
		want int
	}{
		{"nobody else", []Hit{at(us0, 1), at(us0, 2)}, 0},
		{"far and young", []Hit{at(eu0, 9.5), at(us0, 10)}, 1},
		{"far and old", []Hit{at(eu0, 8.5), at(us0, 10)}, 0},
		{"near and young", []Hit{at(us1, 9.9), at(us0, 10)}, 1},
		{"near and old", []Hit{at(us1, 9.5), at(us0, 10)}, 0},
		{"a former life is another replica", []Hit{at(Replica{"us", "us-0", 2}, 9.9), at(us0, 10)}, 1},
		{"the last hit counts, not the one before", []Hit{at(eu0, 8.9), at(us0, 9), at(us0, 12)}, 0},
		{"which was last is not known: the worse", []Hit{
			at(eu0, 8), {us0, second(8.9), second(9.1)}, {us1, second(8.8), second(9.05)}, at(us1, 8.7),
		}, 2},
	} {
		if got := ledgerOf(w, c.hits...).Unseen(w, Replica{}, v); got != c.want {
			t.Errorf("%s: %d unseen, want %d", c.name, got, c.want)
		}
	}
}

func TestUnseenCountsWhatGapsHide(t *testing.T) {
	w := Window{Rule: "day", Value: "a"}
	dead := Views{Near: 0, Far: time.Second, Gaps: []Gap{{Of: eu0, Since: second(5)}}}
	l := ledgerOf(w, at(eu0, 4), at(eu0, 4.9), at(eu0, 5.1), at(us0, 60))
	if got := l.Unseen(w, Replica{}, &dead); got != 1 {
		t.Errorf("a daemon died after one hit that nobody heard of: %d unseen, want 1", got)
	}

	cut := Views{Near: 0, Far: time.Second, Gaps: []Gap{{Of: Replica{Region: "eu"}, Since: second(5), Until: second(20)}}}
	hits := []Hit{at(eu0, 4), at(eu0, 6), at(eu1, 7), at(us1, 8), at(us0, 10)}
	if got := ledgerOf(w, hits...).Unseen(w, Replica{}, &cut); got != 2 {
		t.Errorf("in a cut: %d unseen, want the 2 of the other side", got)
	}
	if got := ledgerOf(w, hits...).Unseen(w, Replica{Region: "us"}, &cut); got != 0 {
		t.Errorf("of one side of a cut: %d unseen, want 0", got)
	}
	if got := ledgerOf(w, append(hits, at(us0, 30))...).Unseen(w, Replica{}, &cut); got != 0 {
		t.Errorf("after the cut healed: %d unseen, want 0", got)
	}
	if got := ledgerOf(w, append(hits, at(eu1, 6.5))...).Unseen(w, Replica{}, &cut); got != 3 {
		t.Errorf("hits are entered in any order: %d unseen, want 3", got)
	}
}

func TestAdmittedAndLatestGoByReplica(t *testing.T) {
	w := Window{Rule: "day", Value: "a"}
	l := ledgerOf(w, at(us0, 1), at(us1, 2), at(eu0, 3), at(us0, 4))
	for _, c := range []struct {
		by     Replica
		want   int
		latest float64
	}{
		{Replica{}, 4, 4},
		{Replica{Region: "us"}, 3, 4},
		{Replica{Region: "eu"}, 1, 3},
		{us0, 2, 4},
		{Replica{Name: "us-1"}, 1, 2},
	} {
		if got := l.Admitted(w, c.by); got != c.want {
			t.Errorf("admitted by %+v: %d, want %d", c.by, got, c.want)
		}
		if got := l.Latest(w, c.by); !got.Equal(second(c.latest)) {
			t.Errorf("last by %+v: %v, want %v", c.by, got, second(c.latest))
		}
	}
	if got := l.Latest(w, eu1); !got.IsZero() {
		t.Errorf("last by one who admitted nothing: %v, want the zero time", got)
	}
}

func TestWindowsAreSorted(t *testing.T) {
	l := &Ledger{}
	want := []Window{{"day", "a", second(1)}, {"day", "b", second(0)}, {"window", "a", second(0)}, {"window", "a", second(1)}}
	for _, i := range []int{2, 0, 3, 1} {
		l.Add(want[i], at(us0, 1))
	}
	for i, w := range l.Windows() {
		if w != want[i] {
			t.Errorf("window %d is %v, want %v", i, w, want[i])
		}
	}
}
