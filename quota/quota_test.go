package quota

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// epoch is where the tests' time starts: a whole hour, so that windows up to
// an hour long start with it.
const epoch = int64(1_767_225_600_000)

// key is a cell with its log, as a node holds it.
type key struct {
	cell Cell
	log  Log
}

func (k *key) fits(l *rules.Limit, now int64, n uint64) bool {
	return sat.Add(Of(l).Used(&k.cell, &k.log, now), n) <= Of(l).Capacity()
}

func (k *key) take(l *rules.Limit, now int64, n uint64) bool {
	ok := k.fits(l, now, n)
	if ok && n > 0 {
		Of(l).Charge(&k.cell, &k.log, now, n)
	}
	return ok
}

func (k *key) describe(l *rules.Limit, now int64, n uint64) Report {
	return Of(l).Describe(&k.cell, &k.log, now, 0, n)
}

// copy returns a key that can be charged without changing this one.
func (k *key) copy() *key {
	c := *k
	c.log.ring = append([]stamp(nil), k.log.ring...)
	return &c
}

func drawLimit(t *rapid.T, algorithms ...rules.Algorithm) *rules.Limit {
	l := &rules.Limit{
		Algorithm:  rapid.SampledFrom(algorithms).Draw(t, "algorithm"),
		Unit:       rapid.SampledFrom([]rules.Unit{rules.Second, rules.Minute, rules.Hour}).Draw(t, "unit"),
		Multiplier: rapid.Uint32Range(1, 3).Draw(t, "multiplier"),
		Requests:   rapid.Uint32Range(1, 30).Draw(t, "requests"),
	}
	l.Burst = l.Requests
	if l.Algorithm.Bucket() {
		l.Burst = rapid.Uint32Range(1, 60).Draw(t, "burst")
	}
	return l
}

var all = []rules.Algorithm{
	rules.FixedWindow, rules.SlidingWindow, rules.SlidingLog, rules.TokenBucket, rules.LeakyBucket,
}

// drive draws instants that never decrease, dense and sparse, and amounts,
// and calls step with each.
func drive(t *rapid.T, l *rules.Limit, step func(now int64, n uint64)) {
	now := epoch + rapid.Int64Range(0, l.Window()).Draw(t, "start")
	for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 4).Draw(t, fmt.Sprintf("gap%d", i)) {
		case 0: // the same instant
		case 1:
			now += rapid.Int64Range(1, 20).Draw(t, "ms")
		case 2, 3:
			now += rapid.Int64Range(1, l.Window()/4).Draw(t, "part")
		case 4:
			now += rapid.Int64Range(l.Window()/2, 4*l.Window()).Draw(t, "far")
		}
		step(now, rapid.Uint64Range(0, uint64(l.Burst)+2).Draw(t, "n"))
	}
}

// admitted is the memory of a model: every admitted hit and its time.
type admitted struct {
	at int64
	n  uint64
}

func sum(hits []admitted, from, to int64) uint64 {
	s := uint64(0)
	for _, h := range hits {
		if h.at >= from && h.at < to {
			s += h.n
		}
	}
	return s
}

// The window and log algorithms equal their textbook definitions, computed
// from the list of everything that ever passed.
func TestWindowsAndLogsEqualTheirDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.FixedWindow, rules.SlidingWindow, rules.SlidingLog)
		w, limit := l.Window(), uint64(l.Requests)
		var k key
		var hits []admitted
		drive(t, l, func(now int64, n uint64) {
			start := now - now%w
			var want bool
			switch l.Algorithm {
			case rules.FixedWindow:
				want = sum(hits, start, start+w)+n <= limit
			case rules.SlidingLog:
				want = sum(hits, now-w+1, now+1)+n <= limit
			default: // (1-f) x previous + current + n <= limit, in rationals
				weight := big.NewRat(start+w-now, w)
				weight.Mul(weight, new(big.Rat).SetInt64(int64(sum(hits, start-w, start))))
				total := new(big.Rat).SetInt64(int64(sum(hits, start, start+w) + n))
				want = total.Add(total, weight).Cmp(new(big.Rat).SetInt64(int64(limit))) <= 0
			}
			if got := k.take(l, now, n); got != want {
				t.Fatalf("%v at +%d ms: %d hits fit = %v, want %v", l.Algorithm, now-epoch, n, got, want)
			}
			if want {
				hits = append(hits, admitted{now, n})
			}
		})
	})
}

// A bucket never admits more than the ideal bucket, computed in rationals, by
// more than a micro-token, and is never more than a millisecond later than it.
func TestBucketsFollowTheIdeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.TokenBucket, rules.LeakyBucket)
		rate := big.NewRat(int64(l.Requests), l.Window())
		full := new(big.Rat).SetInt64(int64(l.Burst))
		var k key
		level, last := new(big.Rat).Set(full), epoch
		drive(t, l, func(now int64, n uint64) {
			gain := new(big.Rat).SetInt64(now - last)
			level.Add(level, gain.Mul(gain, rate))
			if level.Cmp(full) > 0 {
				level.Set(full)
			}
			last = now
			need := new(big.Rat).SetInt64(int64(n))
			ideal := level.Cmp(need) >= 0
			soon := k.copy().fits(l, now+1, n)
			got := k.take(l, now, n)
			rounded := new(big.Rat).Add(level, big.NewRat(1, microPerToken))
			if got && rounded.Cmp(need) < 0 {
				t.Fatalf("passed %d at +%d ms with %s in the ideal bucket", n, now-epoch, level.FloatString(6))
			}
			if ideal && !soon && n <= uint64(l.Burst) {
				t.Fatalf("%d still refused a millisecond after +%d ms with %s in the ideal bucket",
					n, now-epoch, level.FloatString(6))
			}
			if got {
				level.Sub(level, need)
			}
		})
	})
}

// A bucket that gets another rate keeps its usage at that moment, which drains
// at the new rate from then on. The ideal usage is computed in rationals.
func TestBucketsDrainAtTheNewRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, rules.TokenBucket, rules.LeakyBucket)
		var k key
		level, last := new(big.Rat), epoch
		drive(t, l, func(now int64, n uint64) {
			gone := new(big.Rat).SetInt64(now - last)
			level.Sub(level, gone.Mul(gone, big.NewRat(int64(l.Requests), l.Window())))
			if last = now; level.Sign() < 0 {
				level.SetInt64(0)
			}
			if rapid.Bool().Draw(t, "reload") {
				l.Requests = rapid.Uint32Range(1, 60).Draw(t, "rate")
				Of(l).Adopt(&k.cell, now)
			}
			used := new(big.Rat).SetInt64(int64(Of(l).Used(&k.cell, &k.log, now)))
			if used.Sub(used, level); used.Sign() < 0 && new(big.Rat).Neg(used).Cmp(big.NewRat(1, 1_000)) > 0 ||
				used.Cmp(big.NewRat(1_001, 1_000)) > 0 {
				t.Fatalf("at +%d ms the usage is off by %s", now-epoch, used.FloatString(6))
			}
			if k.take(l, now, n) {
				level.Add(level, new(big.Rat).SetInt64(int64(n)))
			}
		})
	})
}

// The reported waits come true after any charges, fitting or not.
func TestReportsComeTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, all...)
		l.CarryDebt = l.Algorithm != rules.SlidingLog && rapid.Bool().Draw(t, "debt")
		var k key
		drive(t, l, func(now int64, n uint64) {
			if rapid.Bool().Draw(t, "force") {
				Of(l).Charge(&k.cell, &k.log, now, n)
			} else {
				k.take(l, now, n)
			}
			checkReport(t, l, &k, now, n)
		})
	})
}

func checkReport(t *rapid.T, l *rules.Limit, k *key, now int64, n uint64) {
	r := k.describe(l, now, n)
	if over := !k.fits(l, now, 0); over != (Of(l).Used(&k.cell, &k.log, now) > Of(l).Capacity()) {
		t.Fatalf("peek over = %v with %d of %d used", over, Of(l).Used(&k.cell, &k.log, now), Of(l).Capacity())
	}
	if r.Remaining > 0 && !k.fits(l, now, r.Remaining) {
		t.Fatalf("%d remaining do not fit", r.Remaining)
	}
	if k.fits(l, now, r.Remaining+1) {
		t.Fatalf("%d fit with %d remaining", r.Remaining+1, r.Remaining)
	}
	if full := k.copy().describe(l, now+r.Reset, 0); full.Remaining != Of(l).Capacity() {
		t.Fatalf("%v: %d of %d remain after the reset of %d ms", l.Algorithm, full.Remaining, Of(l).Capacity(), r.Reset)
	}
	if r.Reset > 0 && l.Algorithm != rules.FixedWindow {
		if full := k.copy().describe(l, now+r.Reset-1, 0); full.Remaining == Of(l).Capacity() {
			t.Fatalf("%v: all of %d remain before the reset of %d ms", l.Algorithm, Of(l).Capacity(), r.Reset)
		}
	}
	fits := k.fits(l, now, n)
	if r.Never != (n > Of(l).Capacity()) {
		t.Fatalf("%v: never = %v for %d of %d", l.Algorithm, r.Never, n, Of(l).Capacity())
	}
	if fits != (r.Retry == 0) && !r.Never {
		t.Fatalf("%v: %d fit = %v with a retry of %d ms", l.Algorithm, n, fits, r.Retry)
	}
	if fits || r.Never {
		return
	}
	if !k.copy().fits(l, now+r.Retry, n) {
		t.Fatalf("%v: %d do not fit after the retry of %d ms", l.Algorithm, n, r.Retry)
	}
	if k.copy().fits(l, now+r.Retry-1, n) {
		t.Fatalf("%v: %d fit before the retry of %d ms", l.Algorithm, n, r.Retry)
	}
}

// From Expires on, a cell is answered like a key that was never charged, so
// that dropping it changes nothing.
func TestExpiredCellsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, all...)
		l.CarryDebt = l.Algorithm != rules.SlidingLog && rapid.Bool().Draw(t, "debt")
		var k key
		drive(t, l, func(now int64, n uint64) { Of(l).Charge(&k.cell, &k.log, now, n) })
		at := Of(l).Expires(&k.cell)
		if k.cell.Count == 0 {
			return
		}
		var fresh key
		for range 20 {
			at += rapid.Int64Range(0, l.Window()/3).Draw(t, "gap")
			n := rapid.Uint64Range(0, uint64(l.Burst)+2).Draw(t, "n")
			if old, want := k.take(l, at, n), fresh.take(l, at, n); old != want {
				t.Fatalf("%v: expired cell says %v, a new one %v", l.Algorithm, old, want)
			}
			if old, want := k.describe(l, at, n).Remaining, fresh.describe(l, at, n).Remaining; old != want {
				t.Fatalf("%v: expired cell has %d remaining, a new one %d", l.Algorithm, old, want)
			}
		}
	})
}

// No amount and no instant, however hostile, panics or lets one hit too many
// pass.
func TestHostileAmounts(t *testing.T) {
	amounts := []uint64{0, 1, math.MaxUint32, math.MaxInt64, math.MaxUint64}
	rapid.Check(t, func(t *rapid.T) {
		l := drawLimit(t, all...)
		l.Unit = rapid.SampledFrom([]rules.Unit{rules.Second, rules.Year}).Draw(t, "unit")
		l.Requests = rapid.SampledFrom([]uint32{0, 1, math.MaxUint32}).Draw(t, "requests")
		l.Burst = l.Requests
		l.CarryDebt = rapid.Bool().Draw(t, "debt")
		var k key
		now := int64(0)
		for range 20 {
			now += rapid.SampledFrom([]int64{0, 1, 1 << 20, 1 << 40}).Draw(t, "gap")
			n := rapid.SampledFrom(amounts).Draw(t, "n")
			if k.fits(l, now, n) && n > uint64(l.Requests) {
				t.Fatalf("%d hits fit a limit of %d", n, l.Requests)
			}
			Of(l).Charge(&k.cell, &k.log, now, n)
			r := k.describe(l, now, n)
			if r.Reset < 0 || r.Retry < 0 || Of(l).Expires(&k.cell) < 0 {
				t.Fatalf("negative times: %+v, expires %d", r, Of(l).Expires(&k.cell))
			}
			if Of(l).Delay(&k.cell, now, n) < 0 {
				t.Fatal("negative delay")
			}
		}
	})
}

// A full log folds further hits into its newest stamp and reports it; it never
// forgets one and never grows.
func TestFullLogForgetsNothing(t *testing.T) {
	l := &rules.Limit{Algorithm: rules.SlidingLog, Unit: rules.Hour, Multiplier: 1, Requests: MaxLogCells}
	var k key
	for i := range int64(MaxLogCells) {
		if !Of(l).Charge(&k.cell, &k.log, epoch+i, 1) {
			t.Fatalf("stamp %d was not kept", i)
		}
	}
	if Of(l).Charge(&k.cell, &k.log, epoch+MaxLogCells, 1) {
		t.Fatal("a full log kept another stamp")
	}
	if k.log.size != MaxLogCells || k.cell.Count != MaxLogCells+1 {
		t.Fatalf("%d stamps of %d hits", k.log.size, k.cell.Count)
	}
	if got := Of(l).Used(&k.cell, &k.log, epoch+l.Window()); got != MaxLogCells {
		t.Fatalf("%d hits count when the first stamp has left, want %d", got, MaxLogCells)
	}
}

// A leaky bucket hands out turns at a constant rate: the delays of one
// instant are evenly spaced, and the queue is full after burst of them.
func TestLeakyBucketSpacesTurns(t *testing.T) {
	l := &rules.Limit{Algorithm: rules.LeakyBucket, Unit: rules.Second, Multiplier: 1, Requests: 4, Burst: 10}
	var k key
	for i := range int64(10) {
		if got, want := Of(l).Delay(&k.cell, epoch, 0), 250*i; got != want {
			t.Fatalf("turn %d after %d ms, want %d", i, got, want)
		}
		if !k.take(l, epoch, 1) {
			t.Fatalf("turn %d refused", i)
		}
	}
	if k.take(l, epoch, 1) {
		t.Fatal("the queue took an eleventh")
	}
}

// Buckets slower than a token a step do not starve, and charging often does
// not wear them down by rounding.
func TestSlowBucketsDoNotStarve(t *testing.T) {
	l := &rules.Limit{Algorithm: rules.TokenBucket, Unit: rules.Day, Multiplier: 1, Requests: 5, Burst: 1}
	var k key
	passed := 0
	for now := epoch; now < epoch+10*l.Window(); now += 10_000 {
		if k.take(l, now, 1) {
			passed++
		}
	}
	if passed < 50 || passed > 51 {
		t.Fatalf("%d passed in ten days of 5 a day, want 50 or 51", passed)
	}
}
