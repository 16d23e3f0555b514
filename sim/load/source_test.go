package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// arrivals returns when a workload's requests come in each of some regions,
// without asking anybody.
func arrivals(l Workload, regions int, until time.Duration) [][]time.Duration {
	out := make([][]time.Duration, regions)
	for r := range regions {
		s := Source{Work: &l, Region: r, regions: regions, share: l.weight(r, regions), rng: rand.New(rand.NewPCG(7, uint64(r))), on: l.Bursts == nil, pulse: l.From}
		now := l.From
		for {
			at, ok := s.Next(now)
			if !ok || at >= until {
				break
			}
			out[r] = append(out[r], at)
			now = at
		}
	}
	return out
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s is %v, want %v to %v", what, got, low, high)
	}
}

func TestSteadyLoad(t *testing.T) {
	at := arrivals(Workload{Rate: 300, Regions: []float64{2, 1}}, 2, 100*time.Second)
	within(t, "requests of the first region", float64(len(at[0])), 19_500, 20_500)
	within(t, "requests of the second region", float64(len(at[1])), 9_600, 10_400)
	// A Poisson process: the gaps spread as widely as they are long.
	var sum, squares float64
	for i := 1; i < len(at[0]); i++ {
		gap := (at[0][i] - at[0][i-1]).Seconds()
		sum, squares = sum+gap, squares+gap*gap
	}
	n := float64(len(at[0]) - 1)
	mean := sum / n
	within(t, "deviation of the gaps by their mean", math.Sqrt(squares/n-mean*mean)/mean, 0.95, 1.05)
}

func TestBurstsOfLoad(t *testing.T) {
	at := arrivals(Workload{Rate: 100, Bursts: &Bursts{On: time.Second, Off: 4 * time.Second}}, 1, 1000*time.Second)[0]
	within(t, "requests, on for a fifth of the time", float64(len(at)), 16_000, 24_000)
	pauses := 0
	for i := 1; i < len(at); i++ {
		if at[i]-at[i-1] > time.Second {
			pauses++
		}
	}
	within(t, "pauses", float64(pauses), 120, 220)
}

// TestPulses: all regions get calls at the same instants, as often as
// configured.
func TestPulses(t *testing.T) {
	l := Workload{From: 5 * time.Second, Pulse: &Pulse{Every: 10 * time.Second, Within: time.Second, Requests: 30}}
	at := arrivals(l, 3, 26*time.Second)
	for r := range at {
		if len(at[r]) != 90 || !slices.IsSorted(at[r]) {
			t.Fatalf("region %d: %d requests, in order %t", r, len(at[r]), slices.IsSorted(at[r]))
		}
		for i, one := range at[r] {
			if from := 5*time.Second + time.Duration(i/30)*10*time.Second; one < from || one > from+time.Second {
				t.Errorf("region %d: request %d at %v, want within 1s of %v", r, i, one, from)
			}
		}
	}
}

func TestMovingHotSpot(t *testing.T) {
	l := Workload{Rate: 100, Moving: &Moving{Every: 100 * time.Second, Share: 0.8}}
	at := arrivals(l, 3, 300*time.Second)
	for r := range at {
		for turn := range 3 {
			n := 0
			for _, one := range at[r] {
				if int(one/(100*time.Second)) == turn {
					n++
				}
			}
			if turn == r {
				within(t, "requests of the hot region", float64(n), 7_700, 8_300)
			} else {
				within(t, "requests of a cold region", float64(n), 850, 1_150)
			}
		}
	}
}

func TestKeysAreDrawnByZipf(t *testing.T) {
	k := newKeys(&Workload{Keys: 1000, Zipf: 1})
	rng := rand.New(rand.NewPCG(1, 1))
	counts := make([]int, 1000)
	for range 1_000_000 {
		counts[k.draw(rng)]++
	}
	harmonic := 0.0
	for i := range 1000 {
		harmonic += 1 / float64(i+1)
	}
	for _, i := range []int{0, 1, 9, 99} {
		want := 1_000_000 / float64(i+1) / harmonic
		within(t, "draws of a key by what Zipf's law says", float64(counts[i])/want, 0.9, 1.1)
	}
}

func TestNewAndHotKeys(t *testing.T) {
	k := newKeys(&Workload{NewKeys: true, Hot: 0.25})
	rng := rand.New(rand.NewPCG(1, 1))
	seen := make(map[string]int)
	for range 10_000 {
		seen[k.name(k.draw(rng))]++
	}
	within(t, "draws of the hot key", float64(seen["key-0"]), 2_350, 2_650)
	if n := len(seen) - 1 + seen["key-0"]; n != 10_000 {
		t.Errorf("%d new keys and hot draws of 10000", n)
	}
}

// TestWaitEndsWithTheLongestRun: a client whose retry_after is later than
// that does not come back, and its time does not wrap.
func TestWaitEndsWithTheLongestRun(t *testing.T) {
	s := Source{Work: &Workload{Retry: &Retry{Jitter: 2}}, rng: rand.New(rand.NewPCG(7, 0))}
	for _, c := range []struct {
		retry time.Duration
		comes bool
	}{{time.Second, true}, {MaxDuration, true}, {MaxDuration + 1, false}, {math.MaxInt64, false}} {
		wait, comes := s.Wait([]node.Status{{Limit: &rules.Limit{}, Over: true, Retry: c.retry}})
		if comes != c.comes || comes && (wait < c.retry || wait > 3*c.retry) {
			t.Errorf("told to wait for %v: comes %t after %v, want %t", c.retry, comes, wait, c.comes)
		}
	}
}
