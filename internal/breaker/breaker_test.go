package breaker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/internal/breaker"

	"pgregory.net/rapid"
)

// TestBreaker follows one breaker step by step: the second, the event, and the
// state after it.
func TestBreaker(t *testing.T) {
	b := breaker.New(breaker.Config{})
	for i, step := range []struct {
		at   float64
		do   string // "pass" or "refused": Allow; "ok", "bad": Done
		n    int
		want string
	}{
		{0, "pass", 9, "closed"},
		{0, "bad", 9, "closed"}, // all failed, but they are too few
		{1, "ok", 10, "closed"},
		{2, "bad", 1, "open"}, // 10 of 20
		{2, "refused", 3, "open"},
		{3, "bad", 1, "open"}, // of before
		{3, "ok", 5, "open"},
		{61.9, "refused", 1, "open"},
		{62, "pass", 1, "half_open"},
		{62, "refused", 1, "half_open"},
		{62.1, "bad", 1, "open"},
		{122, "refused", 1, "open"},
		{122.1, "pass", 1, "half_open"},
		{132, "refused", 1, "half_open"}, // the probe is still out
		{132.1, "pass", 1, "half_open"},  // it is forgotten: another one
		{132.2, "refused", 1, "half_open"},
		{132.3, "ok", 1, "closed"},
		{132.3, "bad", 9, "closed"}, // all of before is forgotten, too
		{133, "pass", 1, "closed"},
		{133, "bad", 1, "open"},
		{100, "refused", 1, "open"}, // time does not go back
		{192.9, "refused", 1, "open"},
		{193, "ok", 1, "half_open"}, // of before: there is no probe yet
		{193, "pass", 1, "half_open"},
		{193.2, "ok", 1, "closed"},
		{194, "bad", 9, "closed"},
		{204, "bad", 9, "closed"}, // those before are out of the window
		{150, "bad", 1, "open"},   // now, for all it knows
		{263.9, "refused", 1, "open"},
	} {
		at := time.Duration(step.at * float64(time.Second))
		for range step.n {
			switch step.do {
			case "pass", "refused":
				want := step.do == "pass"
				if got := b.Passes(at); got != want {
					t.Errorf("step %d, %v: passes %v, want %v", i, at, got, want)
				}
				if got := b.Allow(at); got != want {
					t.Errorf("step %d, %v: allowed %v, want %v", i, at, got, want)
				}
			default:
				b.Done(at, step.do == "ok")
			}
		}
		if got, _ := b.State(at); got.String() != step.want {
			t.Fatalf("step %d, %v: %v, want %v", i, at, got, step.want)
		}
	}
	var told []string
	for tr, ok := b.Poll(); ok; tr, ok = b.Poll() {
		told = append(told, fmt.Sprintf("%v %v>%v %d/%d", tr.At, tr.From, tr.To, tr.Failures, tr.Calls))
	}
	// The first three are gone: nobody polled.
	want := strings.Join([]string{
		"2m2.1s open>half_open 0/0", "2m12.3s half_open>closed 0/1",
		"2m13s closed>open 10/10", "3m13s open>half_open 0/0", "3m13.2s half_open>closed 0/1", "3m24s closed>open 10/10",
	}, "\n")
	if got := strings.Join(told[len(told)-6:], "\n"); got != want || len(told) != 8 {
		t.Errorf("%d changes told:\n%s\nwant 8, the last of them:\n%s", len(told), got, want)
	}
}

// TestBreakerOpens draws outcomes of a breaker that is closed, and compares
// when it opens with the outcomes of the window, counted one by one.
func TestBreakerOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := breaker.Config{
			Errors: rapid.SampledFrom([]uint32{1, 333_333, 500_000, 1_000_000}).Draw(t, "errors"),
			Window: time.Second, Calls: rapid.Uint32Range(1, 12).Draw(t, "calls"), Open: time.Hour,
		}
		b := breaker.New(cfg)
		type outcome struct {
			bucket int64
			ok     bool
		}
		var all []outcome
		at := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "outcomes") {
			at += time.Duration(rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 2_000), rapid.IntRange(0, 50_000)).Draw(t, "ms")) * time.Millisecond
			ok := rapid.Bool().Draw(t, "ok")
			if !b.Allow(at) {
				t.Fatal("refused while closed")
			}
			b.Done(at, ok)
			now := int64(at / (100 * time.Millisecond))
			all = append(all, outcome{now, ok})
			calls, failures := uint32(0), uint32(0)
			for _, o := range all {
				if o.bucket > now-10 {
					if calls++; !o.ok {
						failures++
					}
				}
			}
			open := !ok && calls >= cfg.Calls && uint64(failures)*1_000_000 >= uint64(calls)*uint64(cfg.Errors)
			state, since := b.State(at)
			if open != (state == breaker.Open) {
				t.Fatalf("at %v: %v with %d of %d failed", at, state, failures, calls)
			}
			if open {
				if tr, told := b.Poll(); !told || tr.Calls != calls || tr.Failures != failures || since != at {
					t.Fatalf("opened since %v: %+v, want %d of %d", since, tr, failures, calls)
				}
				return
			}
			if c, f := b.Counts(at); c != calls || f != failures {
				t.Fatalf("at %v: %d of %d failed, want %d of %d", at, f, c, failures, calls)
			}
		}
	})
}

// TestBreakerGenerations draws any history, and holds what passes to what may:
// of a breaker that is open nothing, of one half open one call per probe's
// time.
func TestBreakerGenerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := breaker.Config{Window: time.Second, Calls: 3, Open: 5 * time.Second, Probe: 2 * time.Second}
		b := breaker.New(cfg)
		at, probed := time.Duration(0), -cfg.Probe
		last := breaker.Closed
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 1_500).Draw(t, "ms")) * time.Millisecond
			state, since := b.State(at)
			if state == breaker.Open && at-since >= cfg.Open {
				t.Fatalf("at %v: open since %v", at, since)
			}
			passes := b.Passes(at)
			if rapid.Bool().Draw(t, "done") {
				b.Done(at, rapid.Bool().Draw(t, "ok"))
			} else if got := b.Allow(at); got != passes {
				t.Fatalf("at %v: allowed %v, was to be %v", at, got, passes)
			} else {
				due := max(probed+cfg.Probe, since) <= at
				if want := state == breaker.Closed || state == breaker.HalfOpen && due; got != want {
					t.Fatalf("at %v: %v since %v, last probe at %v: allowed %v", at, state, since, probed, got)
				}
				if got && state == breaker.HalfOpen {
					probed = at
				}
			}
			if now, _ := b.State(at); now != breaker.HalfOpen {
				probed = -cfg.Probe
			}
			for tr, ok := b.Poll(); ok; tr, ok = b.Poll() {
				if tr.From != last || tr.To == last {
					t.Fatalf("at %v: %+v after %v", at, tr, last)
				}
				last = tr.To
			}
			if now, _ := b.State(at); now != last {
				t.Fatalf("at %v: %v, and told of %v", at, now, last)
			}
		}
	})
}

func TestBreakerAllocatesNothing(t *testing.T) {
	b := breaker.New(breaker.Config{Open: time.Second})
	at := time.Duration(0)
	if n := testing.AllocsPerRun(1_000, func() {
		at += 100 * time.Millisecond
		if b.Allow(at) {
			b.Done(at, false)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if _, ok := b.Poll(); !ok {
		t.Error("it never opened")
	}
	if got := breaker.State(9).String(); got != "unknown" {
		t.Errorf("state 9 is %q", got)
	}
}
