package e2e

import (
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
)

var (
	us0 = admitted.Daemon{Region: "us", Name: "us-0", Run: 1}
	us1 = admitted.Daemon{Region: "us", Name: "us-1", Run: 1}
	eu0 = admitted.Daemon{Region: "eu", Name: "eu-0", Run: 1}
	eu1 = admitted.Daemon{Region: "eu", Name: "eu-1", Run: 1}
)

// second returns the time s seconds into a test.
func second(s float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
}

// at is a hit that took 10 ms, counted by then.
func at(by admitted.Daemon, s float64) admitted.Hit {
	return admitted.Hit{By: by, Sent: second(s - 0.01), Answered: second(s)}
}

// countOf returns the count of a window with some hits.
func countOf(hits ...admitted.Hit) (c *admitted.Count) {
	var a admitted.Account
	w := admitted.WindowOf("day", "a", 24*time.Hour, second(0), 0)
	for _, h := range hits {
		c = a.Add(w, 1, h)
	}
	return c
}

func TestUnseenHitsAreThoseOfOthersWithinTheAgeOfTheView(t *testing.T) {
	v := &Views{Near: 200 * time.Millisecond, Far: time.Second}
	for _, c := range []struct {
		name string
		hits []admitted.Hit
		want int
	}{
		{"nobody else", []admitted.Hit{at(us0, 1), at(us0, 2)}, 0},
		{"far and young", []admitted.Hit{at(eu0, 9.5), at(us0, 10)}, 1},
		{"far and old", []admitted.Hit{at(eu0, 8.5), at(us0, 10)}, 0},
		{"near and young", []admitted.Hit{at(us1, 9.9), at(us0, 10)}, 1},
		{"near and old", []admitted.Hit{at(us1, 9.5), at(us0, 10)}, 0},
		{"a former run is another daemon", []admitted.Hit{at(admitted.Daemon{Region: "us", Name: "us-0", Run: 2}, 9.9), at(us0, 10)}, 1},
		{"the last hit counts, not the one before", []admitted.Hit{at(eu0, 8.9), at(us0, 9), at(us0, 12)}, 0},
		{"which was last is not known: the worse", []admitted.Hit{
			at(eu0, 8),
			{By: us0, Sent: second(8.9), Answered: second(9.1)},
			{By: us1, Sent: second(8.8), Answered: second(9.05)},
			at(us1, 8.7),
		}, 2},
	} {
		if got := v.Unseen(countOf(c.hits...), admitted.Daemon{}); got != c.want {
			t.Errorf("%s: %d unseen, want %d", c.name, got, c.want)
		}
	}
}

func TestUnseenCountsWhatGapsHide(t *testing.T) {
	dead := Views{Near: 0, Far: time.Second, Gaps: []Gap{{Of: eu0, Since: second(5)}}}
	c := countOf(at(eu0, 4), at(eu0, 4.9), at(eu0, 5.1), at(us0, 60))
	if got := dead.Unseen(c, admitted.Daemon{}); got != 1 {
		t.Errorf("a daemon died after one hit that no other received: %d unseen, want 1", got)
	}

	dead.Daemons = 9
	if got := dead.Unseen(c, admitted.Daemon{}); got != 2 {
		t.Errorf("a daemon died that had kept a single hit back: %d unseen, want 2", got)
	}

	cut := Views{Near: 0, Far: time.Second, Gaps: []Gap{{Of: admitted.Daemon{Region: "eu"}, Since: second(5), Until: second(20)}}}
	hits := []admitted.Hit{at(eu0, 4), at(eu0, 6), at(eu1, 7), at(us1, 8), at(us0, 10)}
	if got := cut.Unseen(countOf(hits...), admitted.Daemon{}); got != 2 {
		t.Errorf("in a cut: %d unseen, want the 2 of the other side", got)
	}
	if got := cut.Unseen(countOf(hits...), admitted.Daemon{Region: "us"}); got != 0 {
		t.Errorf("of one side of a cut: %d unseen, want 0", got)
	}
	if got := cut.Unseen(countOf(append(hits, at(us0, 30))...), admitted.Daemon{}); got != 0 {
		t.Errorf("after the cut healed: %d unseen, want 0", got)
	}
	if got := cut.Unseen(countOf(append(hits, at(eu1, 6.5))...), admitted.Daemon{}); got != 3 {
		t.Errorf("hits are entered in any order: %d unseen, want 3", got)
	}
}

func TestTheLatestHitIsTheOneAnsweredLast(t *testing.T) {
	for _, hits := range [][]admitted.Hit{
		{at(us0, 4), at(us1, 2), at(eu0, 3)},
		{{By: us0, Sent: second(1), Answered: second(4)}, at(eu1, 3)},
	} {
		if got := latestOf(countOf(hits...)); !got.Equal(second(4)) {
			t.Errorf("the last of %v: %v, want %v", hits, got, second(4))
		}
	}
	if got := latestOf(&admitted.Count{}); !got.IsZero() {
		t.Errorf("the last of none: %v, want the zero time", got)
	}
}
