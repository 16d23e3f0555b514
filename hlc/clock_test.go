package hlc

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// noon is a wall reading to start from.
const noon = int64(1_795_176_000) * int64(time.Second)

// bent is a machine whose two clocks can be bent apart.
type bent struct {
	mono  time.Duration
	wall  int64 // without jitter
	drift int64 // parts in a million by which the wall is faster than mono
}

func (b *bent) pass(d time.Duration) {
	b.mono += d
	b.wall += int64(d) + int64(d)/1_000_000*b.drift
}

func (b *bent) at() Instant { return Instant{Mono: b.mono, Wall: b.wall} }

// drawPass draws how long nothing happens: mostly nanoseconds to milliseconds,
// at times a pause of the process.
func drawPass(t *rapid.T) time.Duration {
	scale := rapid.SampledFrom([]time.Duration{
		time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Hour,
	}).Draw(t, "scale")
	return scale * time.Duration(rapid.IntRange(0, 2_000).Draw(t, "pass"))
}

// TestClockLaws drives a clock through steps, drift, jitter, pauses, late
// Instants and peers good and bad, and holds the promises of the package
// comment after every input.
func TestClockLaws(t *testing.T) {
	inputs := rapid.SampledFrom([]string{"now", "millis", "step", "jitter", "late", "peer"})
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			MaxOffset:   time.Duration(rapid.IntRange(1, 1_000).Draw(t, "max offset")) * time.Millisecond,
			SlewDivisor: rapid.Int64Range(MinSlewDivisor, 100).Draw(t, "slew"),
		}
		c := NewClock(cfg)
		b := &bent{wall: noon, drift: rapid.Int64Range(-500, 500).Draw(t, "drift")}
		w := watch{clock: c, cfg: cfg}
		for range rapid.IntRange(1, 60).Draw(t, "inputs") {
			b.pass(drawPass(t))
			at := b.at()
			switch inputs.Draw(t, "input") {
			case "now":
				w.stamp(t, c.Now(at))
			case "step":
				b.wall += rapid.Int64Range(-int64(2*time.Hour), int64(2*time.Hour)).Draw(t, "step")
				at = b.at()
			case "jitter":
				at.Wall += rapid.Int64Range(-20_000, 20_000).Draw(t, "jitter")
			case "late":
				w.late(t)
			case "peer":
				w.peer(t, at)
			}
			w.check(t, at)
		}
	})
}

// watch holds the readings of a clock so far.
type watch struct {
	clock   *Clock
	cfg     Config
	stamped Timestamp // greatest stamp made or taken in
	millis  int64     // latest Millis
	seen    bool
	mono    time.Duration // of the latest check
	reading int64         // physical reading then, ns
	carried int64         // counters that ran full
}

func (w *watch) stamp(t *rapid.T, s Timestamp) {
	t.Helper()
	if s <= w.stamped {
		t.Fatalf("stamp %v after %v", s, w.stamped)
	}
	if w.stamped.Counter() == math.MaxUint16 {
		w.carried++
	}
	w.stamped = s
}

// late hands in an Instant from before the latest check: it moves nothing.
func (w *watch) late(t *rapid.T) {
	if w.mono == 0 {
		return
	}
	before := *w.clock
	w.clock.Millis(Instant{
		Mono: w.mono - time.Duration(rapid.Int64Range(1, int64(w.mono)).Draw(t, "late")),
		Wall: w.reading - rapid.Int64Range(0, int64(time.Hour)).Draw(t, "late wall"),
	})
	if *w.clock != before {
		t.Fatalf("a late Instant changed the clock\nfrom %+v\nto   %+v", &before, w.clock)
	}
}

// peer observes a stamp drawn around the limit of adoption.
func (w *watch) peer(t *rapid.T, at Instant) {
	c := w.clock
	c.Millis(at)
	local := (at.Wall + int64(c.Offset())) / int64(time.Millisecond)
	ahead := rapid.Int64Range(-2_000, 2_000).Draw(t, "ahead")
	remote := New(local+ahead, rapid.SampledFrom([]uint16{0, 1, math.MaxUint16}).Draw(t, "counter"))
	before := *c
	err := c.Observe(at, remote)
	if ahead <= w.cfg.MaxOffset.Milliseconds() {
		if err != nil {
			t.Fatalf("a peer %d ms ahead, allowed %v: %v", ahead, w.cfg.MaxOffset, err)
		}
		w.stamped = max(w.stamped, remote)
		return
	}
	if remote <= w.stamped {
		return // the counter's carry reached it before: nothing to adopt
	}
	var drift *DriftError
	if !errors.As(err, &drift) {
		t.Fatalf("a peer %d ms ahead, allowed %v: error %v, want a *DriftError", ahead, w.cfg.MaxOffset, err)
	}
	if *c != before {
		t.Fatalf("a refused peer changed the clock\nfrom %+v\nto   %+v", &before, c)
	}
	if want := (DriftError{Remote: remote, Local: New(local, 0), Max: w.cfg.MaxOffset}); *drift != want {
		t.Fatalf("drift error %+v, want %+v", *drift, want)
	}
}

func (w *watch) check(t *rapid.T, at Instant) {
	t.Helper()
	c := w.clock
	ms := c.Millis(at)
	reading := at.Wall + int64(c.Offset())
	if ms < w.millis {
		t.Fatalf("Millis went back from %d to %d", w.millis, ms)
	}
	if c.Offset() < 0 {
		t.Fatalf("offset %v: the reading is behind the wall", c.Offset())
	}
	low := reading / int64(time.Millisecond)
	if high := low + w.cfg.MaxOffset.Milliseconds() + w.carried; ms < low || ms > high {
		t.Fatalf("Millis %d, want %d to %d", ms, low, high)
	}
	if last := c.last; last != w.stamped || last.Millis() > ms {
		t.Fatalf("last stamp %v, Millis %d, want %v and no less", last, ms, w.stamped)
	}
	if w.seen {
		ran := int64(at.Mono - w.mono)
		if slowest := w.reading + ran - ran/w.cfg.SlewDivisor - 1; reading < slowest {
			t.Fatalf("reading %d after %d, %d ns later: slower than the slew", reading, w.reading, ran)
		}
		if fastest := max(w.reading+ran, at.Wall); reading > fastest {
			t.Fatalf("reading %d after %d, %d ns later: faster than both clocks", reading, w.reading, ran)
		}
	}
	w.seen, w.millis, w.mono, w.reading = true, ms, at.Mono, reading
}

// TestSlewBack holds the reading to its closed form after a step back, however
// often it is read in between.
func TestSlewBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slew := rapid.Int64Range(MinSlewDivisor, MaxSlewDivisor).Draw(t, "slew")
		back := rapid.Int64Range(1, int64(2*time.Hour)).Draw(t, "back")
		c := NewClock(Config{SlewDivisor: slew})
		b := &bent{wall: noon}
		c.Millis(b.at())
		b.wall -= back
		const parts = 40
		part := 2*back*slew/parts + 1 // in twice the time it takes to meet the wall
		for i := range int64(parts) {
			if rapid.Bool().Draw(t, "read") {
				c.Millis(Instant{Mono: b.mono + time.Duration(part/3), Wall: b.wall + part/3})
			}
			b.pass(time.Duration(part))
			passed := (i + 1) * part
			want := max(noon+passed-passed/slew, noon-back+passed)
			if got := c.Millis(b.at()); got != want/int64(time.Millisecond) {
				t.Fatalf("%v after a step back of %v: Millis %d, want %d",
					time.Duration(passed), time.Duration(back), got, want/int64(time.Millisecond))
			}
			if got := int64(c.Offset()); got != want-b.wall {
				t.Fatalf("%v after a step back of %v: offset %d, want %d",
					time.Duration(passed), time.Duration(back), got, want-b.wall)
			}
			if i >= parts/2 && c.Offset() != 0 {
				t.Fatalf("offset %v left after %v", c.Offset(), time.Duration(passed))
			}
		}
	})
}

// TestJitterIsNoStep reads a wall clock that jitters and loses on the
// monotonic one as often as a busy daemon does: the reading must stay within
// the jitter, for good.
func TestJitterIsNoStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const jitter = 20 * time.Microsecond
		c := NewClock(Config{})
		b := &bent{wall: noon, drift: rapid.Int64Range(-500, 500).Draw(t, "drift")}
		every := time.Duration(rapid.Int64Range(1, 5_000_000).Draw(t, "every"))
		state := rapid.Uint64().Draw(t, "seed")
		for range 5_000 {
			b.pass(every)
			at := b.at()
			state = state*6364136223846793005 + 1442695040888963407
			at.Wall += int64(state>>33) % (2*int64(jitter) + 1)
			c.Millis(at)
			if c.Offset() > 2*jitter {
				t.Fatalf("offset %v out of a jitter of %v", c.Offset(), 2*jitter)
			}
		}
		if s := c.Steps(); s != (Steps{}) {
			t.Fatalf("jitter counted as %v", s)
		}
	})
}

// TestHostileInstants feeds any numbers at all.
func TestHostileInstants(t *testing.T) {
	edge := rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64})
	any64 := rapid.OneOf(edge, rapid.Int64())
	rapid.Check(t, func(t *rapid.T) {
		c := NewClock(Config{
			MaxOffset:   time.Duration(any64.Draw(t, "max offset")),
			SlewDivisor: any64.Draw(t, "slew"),
		})
		var stamp Timestamp
		var millis int64
		for range rapid.IntRange(1, 50).Draw(t, "inputs") {
			at := Instant{Mono: time.Duration(any64.Draw(t, "mono")), Wall: any64.Draw(t, "wall")}
			if rapid.Bool().Draw(t, "peer") {
				remote := Timestamp(rapid.Uint64().Draw(t, "remote"))
				if err := c.Observe(at, remote); err != nil && !strings.Contains(err.Error(), remote.String()) {
					t.Fatalf("error %q does not name the stamp %v", err, remote)
				}
			}
			if rapid.Bool().Draw(t, "now") {
				next := c.Now(at)
				if next <= stamp {
					t.Fatalf("stamp %v after %v", next, stamp)
				}
				stamp = next
			}
			if ms := c.Millis(at); ms < millis || ms < 0 || ms > MaxMillis {
				t.Fatalf("Millis %d after %d", ms, millis)
			} else {
				millis = ms
			}
			if c.Offset() < 0 {
				t.Fatalf("offset %v", c.Offset())
			}
		}
	})
}

// TestExchange lets two daemons with clocks of their own send each other
// stamps: whatever is received was sent before.
func TestExchange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clocks := [2]*Clock{NewClock(Config{}), NewClock(Config{})}
		skew := rapid.Int64Range(-int64(time.Second), int64(time.Second)).Draw(t, "skew")
		machines := [2]*bent{{wall: noon}, {wall: noon + skew, drift: 200}}
		var flying [2][]Timestamp // by receiver
		for range rapid.IntRange(1, 80).Draw(t, "inputs") {
			pass := drawPass(t)
			machines[0].pass(pass)
			machines[1].pass(pass)
			i := rapid.IntRange(0, 1).Draw(t, "who")
			at := machines[i].at()
			if len(flying[i]) == 0 || rapid.Bool().Draw(t, "send") {
				flying[1-i] = append(flying[1-i], clocks[i].Now(at))
				continue
			}
			k := rapid.IntRange(0, len(flying[i])-1).Draw(t, "message")
			sent := flying[i][k]
			flying[i] = append(flying[i][:k], flying[i][k+1:]...)
			err := clocks[i].Observe(at, sent)
			if received := clocks[i].Now(at); err == nil && received <= sent {
				t.Fatalf("sent at %v, received at %v", sent, received)
			}
			var drift *DriftError
			if errors.As(err, &drift) && drift.Ahead() <= DefaultMaxOffset {
				t.Fatalf("refused though only %v ahead: %v", drift.Ahead(), err)
			}
		}
	})
}

func TestCounterOverflow(t *testing.T) {
	c := NewClock(Config{})
	at := Instant{Wall: noon}
	start := noon / int64(time.Millisecond)
	if got := c.Now(at); got != New(start, 0) {
		t.Fatalf("first stamp %v, want %v", got, New(start, 0))
	}
	last := c.last
	for i := range 70_000 {
		next := c.Now(at)
		if next <= last {
			t.Fatalf("stamp %d: %v after %v", i, next, last)
		}
		last = next
	}
	if want := New(start+1, 70_000-1<<16); last != want {
		t.Fatalf("after 70,000 stamps within a millisecond %v, want %v", last, want)
	}
	if got := c.Millis(at); got != start+1 {
		t.Fatalf("Millis %d behind the stamp %v", got, last)
	}
}

func TestLateInstant(t *testing.T) {
	c := NewClock(Config{})
	c.Millis(Instant{Mono: time.Minute, Wall: noon})
	before := *c
	if got := c.Millis(Instant{Mono: time.Minute - 1, Wall: noon - 1}); got != noon/int64(time.Millisecond) {
		t.Errorf("a late Instant moved Millis to %d", got)
	}
	if *c != before {
		t.Errorf("a late Instant changed the clock\nfrom %+v\nto   %+v", &before, c)
	}
	// A monotonic clock that starts over: the wall keeps the windows rolling.
	for i := range int64(10) {
		wall := noon + i*int64(time.Second)
		if got := c.Millis(Instant{Mono: time.Duration(i), Wall: wall}); got != wall/int64(time.Millisecond) {
			t.Errorf("%d s after the monotonic clock started over: Millis %d at wall %d", i, got, wall)
		}
	}
	if c.Offset() != 0 || c.Steps() != (Steps{}) {
		t.Errorf("offset %v, %v; want none", c.Offset(), c.Steps())
	}
}

func TestSteps(t *testing.T) {
	tests := []struct {
		name        string
		passed, off time.Duration
		want        Steps
	}{
		{"none", time.Second, 0, Steps{}},
		{"at the floor", 0, 10 * time.Millisecond, Steps{}},
		{"above the floor", 0, 11 * time.Millisecond, Steps{Forward: 1, LargestForward: 11 * time.Millisecond}},
		{"back at the floor", 0, -10 * time.Millisecond, Steps{}},
		{"back above it", 0, -11 * time.Millisecond, Steps{Backward: 1, LargestBackward: 11 * time.Millisecond}},
		{"drift of a pause", time.Hour, time.Second, Steps{}},
		{"drift of a pause, back", time.Hour, -time.Second, Steps{}},
		{"more than drift", time.Hour, 4 * time.Second, Steps{Forward: 1, LargestForward: 4 * time.Second}},
		{"an hour back", time.Second, -time.Hour, Steps{Backward: 1, LargestBackward: time.Hour}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewClock(Config{})
			c.Millis(Instant{Wall: noon})
			c.Millis(Instant{Mono: tt.passed, Wall: noon + int64(tt.passed+tt.off)})
			if got := c.Steps(); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	tests := []struct {
		cfg     Config
		wantErr string // "" for none
	}{
		{Config{}, ""},
		{Config{MaxOffset: time.Millisecond, SlewDivisor: 2}, ""},
		{Config{MaxOffset: time.Hour, SlewDivisor: 10_000}, ""},
		{Config{MaxOffset: -1}, "want 1ms to 1h0m0s"},
		{Config{MaxOffset: time.Hour + time.Millisecond}, "want 1ms to 1h0m0s"},
		{Config{MaxOffset: 1500 * time.Microsecond}, "want whole milliseconds"},
		{Config{SlewDivisor: 1}, "want 2 to 10000"},
		{Config{SlewDivisor: -20}, "want 2 to 10000"},
	}
	for _, tt := range tests {
		err := tt.cfg.Validate()
		if (err != nil) != (tt.wantErr != "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%+v: error %v, want %q", tt.cfg, err, tt.wantErr)
		}
		if err := tt.cfg.clamp().Validate(); err != nil {
			t.Errorf("%+v clamped: %v", tt.cfg, err)
		}
	}
}
