package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFigures(t *testing.T) {
	for _, c := range []struct {
		unit unit
		v    float64
		want string
	}{
		{nanoseconds, 0, "0.00 ns"},
		{nanoseconds, 92.14, "92.1 ns"},
		{nanoseconds, 9.996, "10.0 ns"},
		{nanoseconds, 999.4, "999 ns"},
		{nanoseconds, 999.6, "1.00 µs"},
		{nanoseconds, 333_400, "333 µs"},
		{nanoseconds, 1.234e6, "1.23 ms"},
		{nanoseconds, 5e12, "5000 s"},
		{memory, 81.36, "81.4 B"},
		{memory, 28.2e6, "28.2 MB"},
		{perSecond, 999, "999/s"},
		{perSecond, 1_043_954.4, "1,043,954/s"},
		{allocations, 6, "6 allocs"},
		{times, 0.934, "0.93 x"},
		{percent, 0.0213, "2.13 %"},
	} {
		if got := c.unit.figure(c.v); got != c.want {
			t.Errorf("%v in %s is %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestBoundsJudgeTheirSubject(t *testing.T) {
	o := outcome{Measured: 100, Beside: 50, Ratio: 2}
	for _, c := range []struct {
		bound bound
		text  string
		want  bool
	}{
		{bound{measured, atMost, 100, nanoseconds}, "<= 100 ns", true},
		{bound{measured, below, 100, nanoseconds}, "< 100 ns", false},
		{bound{measured, atMost, 99, memory}, "<= 99 B", false},
		{bound{measured, below, 50e6, memory}, "< 50 MB", true},
		{bound{measured, below, 1e9, nanoseconds}, "< 1 s", true},
		{bound{measured, atMost, 0, allocations}, "<= 0 allocs", false},
		{bound{ratio, atLeast, 2, times}, ">= 2 x", true},
		{bound{ratio, atLeast, 3.5, times}, ">= 3.5 x", false},
		{bound{ratio, atMost, 1.25, times}, "<= 1.25 x", false},
	} {
		r := newRow(&line{bound: c.bound}, o, nil)
		if r.OK != c.want || r.Bound != c.text {
			t.Errorf("%v: %q keeps %v, want %q %v", c.bound, r.Bound, r.OK, c.text, c.want)
		}
	}
}

// someRows is a line of each kind of verdict.
func someRows() []row {
	take := line{Name: "take", What: "a decision", bound: bound{measured, atMost, 200, nanoseconds}}
	unary := line{Name: "unary-64", What: "calls", bound: bound{ratio, atLeast, 0.93, times}}
	return []row{
		newRow(&take, outcome{
			Measured: 92, Beside: 41, BesideWhat: "hash", Unit: nanoseconds, Ratio: 92. / 41,
		}, nil),
		newRow(&unary, outcome{
			Measured: 900, Beside: 1_000, BesideWhat: "no-op", Unit: perSecond, Ratio: 0.9,
		}, nil),
		newRow(&take, outcome{Measured: 1_500, BesideWhat: "nothing", Unit: nanoseconds}, nil),
		newRow(&unary, outcome{}, errors.New("rld did not start")),
	}
}

func TestTable(t *testing.T) {
	const want = `line                  measured   beside            ratio      bound
take      a decision   92.0 ns  41.0 ns  hash     2.24 x  <= 200 ns  ok
unary-64  calls          900/s  1,000/s  no-op    0.90 x  >= 0.93 x  MISSED
take      a decision   1.50 µs  0.00 ns  nothing          <= 200 ns  MISSED
unary-64  calls              -        -  -             -  >= 0.93 x  FAILED

unary-64 failed: rld did not start
`
	if d := cmp.Diff(want, table(someRows())); d != "" {
		t.Errorf("table (-want +got):\n%s", d)
	}
}

func TestExitCode(t *testing.T) {
	rows := someRows()
	for _, c := range []struct {
		what  string
		rows  []row
		quick bool
		want  int
	}{
		{"all met", rows[:1], false, exitOK},
		{"one missed", rows[:2], false, exitMissed},
		{"one missed in a quick run", rows[:2], true, exitOK},
		{"one failed in a quick run", rows, true, exitMissed},
	} {
		r := report{Rows: c.rows, Quick: c.quick}
		if got := r.exit(); got != c.want {
			t.Errorf("%s: exit %d, want %d", c.what, got, c.want)
		}
	}
}
