package overage

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/internal/sat"
)

// event is n arrivals at an instant.
type event struct {
	at int64
	n  uint64
}

// busiest is the most arrivals in any interval [t, t+ms), by brute force.
func busiest(events []event, ms int64) uint64 {
	most := uint64(0)
	for _, first := range events {
		sum := uint64(0)
		for _, e := range events {
			if e.at >= first.at && e.at < first.at+ms {
				sum += e.n
			}
		}
		most = max(most, sum)
	}
	return most
}

// envelopeHolds reports whether a peak is never too low, and not above the
// peak of a slightly longer interval.
func envelopeHolds(events []event, ms int64, peak uint64) bool {
	slot := (ms + envelopeSteps - 1) / envelopeSteps
	return peak >= busiest(events, ms) && peak <= busiest(events, (envelopeSteps+1)*slot)
}

// someEvents draws arrivals with bursts and silences, in order.
func someEvents(n func(lo, hi int) int) []event {
	events := make([]event, n(1, 60))
	at := int64(n(-2000, 2000))
	for k := range events {
		at += int64(n(0, 1) * n(0, 300) << (n(0, 1) * n(0, 20)))
		events[k] = event{at, uint64(n(0, 50))}
	}
	return events
}

func TestEnvelope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, "n") }
		ms := int64(n(1, 1000))
		events := someEvents(n)
		e := NewEnvelope(ms)
		for _, x := range events {
			e.Add(x.at, x.n)
		}
		end := events[len(events)-1].at
		if recent, exact := e.Recent(end), since(events, end-ms); recent < exact {
			t.Fatalf("%d in the last %d ms, the envelope says %d", exact, ms, recent)
		}
		p := e.Roll(end + 1)
		if !envelopeHolds(events, ms, p.Max) {
			t.Fatalf("peak %d over %d ms, exact %d: %v", p.Max, ms, busiest(events, ms), events)
		}
		if exact := surge(events, ms); p.Surge != exact {
			t.Fatalf("the surge is %d, exact %d: %v", p.Surge, exact, events)
		}
		if again := e.Roll(end + 2); again != (Peaks{}) {
			t.Fatalf("after a roll the peaks are %v, want none", again)
		}
	})
}

// since sums what arrived after an instant.
func since(events []event, at int64) uint64 {
	sum := uint64(0)
	for _, e := range events {
		if e.at > at {
			sum += e.n
		}
	}
	return sum
}

// surge works out Peaks.Surge slot by slot.
func surge(events []event, ms int64) uint64 {
	slot := (ms + envelopeSteps - 1) / envelopeSteps
	of := func(e event) int64 { return int64(math.Floor(float64(e.at) / float64(slot))) }
	sum, arrived := 0.0, 0.0
	for _, x := range events {
		before, after := uint64(0), uint64(0)
		for _, e := range events {
			switch d := of(e) - of(x); {
			case d > 0 && d <= envelopeSteps:
				after += e.n
			case d < 0 && d >= -envelopeSteps:
				before += e.n
			}
		}
		sum += float64(x.n) * float64(sat.Sub(after, before))
		arrived += float64(x.n)
	}
	if arrived == 0 {
		return 0
	}
	return uint64(math.Ceil(sum / arrived))
}

// TestEnvelopeMutations: counting by whole intervals instead of sliding ones,
// or by sixteen slots instead of the seventeen that an interval touches, is too
// low, and the law detects it.
func TestEnvelopeMutations(t *testing.T) {
	slots := func(events []event, slot int64, wide int) uint64 {
		sums := make(map[int64]uint64)
		most := uint64(0)
		for _, e := range events {
			to := int64(math.Floor(float64(e.at) / float64(slot)))
			for k := range int64(wide) {
				sums[to+k] += e.n
				most = max(most, sums[to+k])
			}
		}
		return most
	}
	for _, mutation := range []struct {
		name   string
		peak   func(events []event, ms int64) uint64
		caught bool
	}{
		{"seventeen slots", func(ev []event, ms int64) uint64 { return slots(ev, ms/16, 17) }, false},
		{"sixteen slots", func(ev []event, ms int64) uint64 { return slots(ev, ms/16, 16) }, true},
		{"whole intervals", func(ev []event, ms int64) uint64 { return slots(ev, ms, 1) }, true},
	} {
		rng := rand.New(rand.NewPCG(4, 4))
		n := func(lo, hi int) int { return lo + rng.IntN(hi-lo+1) }
		caught := 0
		for range 500 {
			events := someEvents(n)
			if ms := int64(16 * n(1, 60)); !envelopeHolds(events, ms, mutation.peak(events, ms)) {
				caught++
			}
		}
		if (caught > 0) != mutation.caught {
			t.Errorf("%s: caught in %d cases", mutation.name, caught)
		}
	}
}

// TestEnvelopeExtremes: no input makes it loop, overflow or panic.
func TestEnvelopeExtremes(t *testing.T) {
	e := NewEnvelope(1)
	for _, at := range []int64{math.MinInt64, -1, math.MaxInt64, 0, math.MinInt64} {
		e.Add(at, math.MaxUint64)
	}
	if p := e.Roll(math.MaxInt64); p.Max < maxSlot {
		t.Errorf("the peak is %d, want at least %d", p.Max, uint64(maxSlot))
	}
}

func BenchmarkEnvelope(b *testing.B) {
	e := NewEnvelope(500)
	at := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		e.Add(at/100, 1)
		at++
	}
}
