package main

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/internal/load"
)

func TestAlternateTurnsTheOrderEachRound(t *testing.T) {
	var order string
	say := func(s string, v float64) side {
		return func() float64 {
			order += s
			return v
		}
	}
	got := alternate(t.Context(), 3, say("a", 1), say("b", 2))
	if order != "abbaab" {
		t.Errorf("order %q, want abbaab", order)
	}
	if d := cmp.Diff([][]float64{{1, 1, 1}, {2, 2, 2}}, got); d != "" {
		t.Errorf("readings (-want +got):\n%s", d)
	}
}

func TestInterleaveTakesTheMeanOfTheTurns(t *testing.T) {
	var order string
	count := func(s string, v float64) side {
		return func() float64 {
			order += s
			v++
			return v
		}
	}
	got := interleave(t.Context(), 2, 2, count("a", 0), count("b", 10))
	if order != "abbaabba" {
		t.Errorf("order %q, want abbaabba", order)
	}
	if d := cmp.Diff([][]float64{{1.5, 3.5}, {11.5, 13.5}}, got); d != "" {
		t.Errorf("readings (-want +got):\n%s", d)
	}
}

func TestAlternateStops(t *testing.T) {
	fault := errors.New("broken")
	calls := 0
	measure := func(ctx context.Context, after func()) error {
		return catch(func() {
			alternate(ctx, 3, func() float64 {
				calls++
				after()
				return 0
			})
		})
	}
	err := measure(t.Context(), func() { check(fault) })
	if !errors.Is(err, fault) || calls != 1 {
		t.Errorf("error %v after %d calls, want %v after one", err, calls, fault)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls = 0
	err = measure(ctx, cancel)
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("error %v after %d calls, want it to stop with its context after one", err, calls)
	}
}

func TestCompare(t *testing.T) {
	readings := [][]float64{{30, 10, 20}, {5, 4, 8}}
	for _, c := range []struct {
		name   string
		figure func([]float64) float64
		want   outcome
	}{
		{"least", least, outcome{Measured: 10, Beside: 4, Ratio: 2.5, BesideWhat: "b", Unit: perSecond}},
		{"most", most, outcome{Measured: 30, Beside: 8, Ratio: 3.75, BesideWhat: "b", Unit: perSecond}},
		{"median", load.Median, outcome{Measured: 20, Beside: 5, Ratio: 4, BesideWhat: "b", Unit: perSecond}},
	} {
		c.want.Readings = readings
		if d := cmp.Diff(c.want, compare(perSecond, c.figure, readings, "b")); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	if o := compare(allocations, least, [][]float64{{3}, {0}}, "nothing"); o.Ratio != 0 {
		t.Errorf("the ratio to nothing is %v, want 0, which JSON can carry", o.Ratio)
	}
	want := outcome{
		Measured: 20, Beside: 5, Ratio: 2.5, BesideWhat: "b; median of ratios", Unit: perSecond, Readings: readings,
	}
	if d := cmp.Diff(want, compareRatios(readings, "b")); d != "" {
		t.Errorf("median of the ratios 6, 2.5 and 2.5 (-want +got):\n%s", d)
	}
}

func TestFinishKeepsBothErrors(t *testing.T) {
	first, second := errors.New("measuring"), errors.New("stopping")
	stop := func() error { return second }
	err := catch(func() {
		defer finish(stop)
		check(first)
	})
	if !errors.Is(err, first) || !errors.Is(err, second) {
		t.Errorf("error %v, want both", err)
	}
	if err := catch(func() { defer finish(stop) }); err != second {
		t.Errorf("error %v, want that of stopping", err)
	}
	if err := catch(func() { defer finish(func() error { return nil }) }); err != nil {
		t.Errorf("error %v, want none", err)
	}
}
