package rules_test

import (
	"testing"
	"time"

	"github.com/georld/rld/rules"
)

// TestUnits checks the lengths that upstream gives its units.
func TestUnits(t *testing.T) {
	lengths := map[rules.Unit]time.Duration{
		rules.NoUnit: 0, rules.Second: time.Second, rules.Minute: time.Minute, rules.Hour: time.Hour,
		rules.Day: 24 * time.Hour, rules.Week: 7 * 24 * time.Hour, rules.Month: 30 * 24 * time.Hour,
		rules.Year: 365 * 24 * time.Hour, rules.Year + 1: 0, 255: 0,
	}
	for u, want := range lengths {
		if got := time.Duration(u.Millis()) * time.Millisecond; got != want {
			t.Errorf("%s is %v, want %v", u, got, want)
		}
	}
	for i, name := range rules.Units() {
		if u := rules.Second + rules.Unit(i); u.String() != name {
			t.Errorf("unit %d is named %q and %q", u, u, name)
		}
	}
	if got := rules.Unit(200).String(); got != "unknown" {
		t.Errorf("a unit that is none is named %q", got)
	}
}

func TestAlgorithms(t *testing.T) {
	buckets := map[string]bool{"token_bucket": true, "leaky_bucket": true}
	for i, name := range rules.Algorithms() {
		a := rules.Algorithm(i)
		if a.String() != name || a.Bucket() != buckets[name] {
			t.Errorf("algorithm %d is %q, a bucket: %v", i, a, a.Bucket())
		}
	}
	if len(rules.Algorithms()) != 5 || rules.Algorithm(9).String() != "unknown" {
		t.Error("not the five algorithms")
	}
}

func TestConsistencyNames(t *testing.T) {
	for c, want := range map[rules.Consistency]string{
		rules.Eventual: "eventual", rules.Partition: "partition", rules.Strict: "strict", 9: "unknown",
	} {
		if c.String() != want {
			t.Errorf("%d is named %q, want %q", c, c, want)
		}
	}
}

// TestGrid checks which changes of a limit keep its counters: all but those of
// the window and of the kind of fold.
func TestGrid(t *testing.T) {
	shape := map[rules.Algorithm]int{
		rules.FixedWindow: 1, rules.SlidingWindow: 1, rules.SlidingLog: 2,
		rules.TokenBucket: 3, rules.LeakyBucket: 3,
	}
	var limits []*rules.Limit
	for a := range shape {
		for _, multiplier := range []uint32{1, 2, 60} {
			for u := rules.Second; u <= rules.Minute; u++ {
				limits = append(limits,
					&rules.Limit{Algorithm: a, Unit: u, Multiplier: multiplier},
					&rules.Limit{
						Algorithm: a, Unit: u, Multiplier: multiplier,
						Requests: 5, Burst: 7, Name: "n", Shadow: true, HasBudget: true, Budget: rules.Percent,
					})
			}
		}
	}
	for _, a := range limits {
		if a.Grid() == 0 {
			t.Errorf("%+v has the grid 0", a)
		}
		for _, b := range limits {
			same := a.Window() == b.Window() && shape[a.Algorithm] == shape[b.Algorithm]
			if got := a.Grid() == b.Grid(); got != same {
				t.Errorf("%+v and %+v share a grid: %v, want %v", a, b, got, same)
			}
		}
	}
}

func TestPosition(t *testing.T) {
	if got := (rules.Position{File: "f.yaml", Line: 3, Column: 14}).String(); got != "f.yaml:3:14" {
		t.Errorf("got %q", got)
	}
}
