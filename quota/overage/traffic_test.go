package overage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// poisson draws how many arrive when mean do.
func poisson(rng *rand.Rand, mean float64) uint64 {
	if mean <= 0 {
		return 0
	}
	if mean > 50 { // The normal distribution is close enough.
		return uint64(max(0, math.Round(mean+math.Sqrt(mean)*rng.NormFloat64())))
	}
	n, p, floor := uint64(0), rng.Float64(), math.Exp(-mean)
	for p > floor {
		p *= rng.Float64()
		n++
	}
	return n
}

// shape is a pattern of load: the rate of region i at a time, in limits a
// window.
type shape func(rng *rand.Rand, regions, windows, ticks int) func(window, tick, region int) float64

// steady offers k limits a window, split by weights (equal without).
func steady(k float64, weights ...float64) shape {
	return func(_ *rand.Rand, regions, _, _ int) func(int, int, int) float64 {
		return func(_, _, i int) float64 {
			if len(weights) == 0 {
				return k / float64(regions)
			}
			return k * weights[i]
		}
	}
}

// bursty switches each region on for a sixth of the time; on averages
// onWindows windows.
func bursty(k, onWindows float64, weights ...float64) shape {
	return func(rng *rand.Rand, regions, windows, ticks int) func(int, int, int) float64 {
		on := make([][]bool, regions)
		for i := range on {
			on[i] = make([]bool, windows*ticks)
			state := rng.Float64() < 1.0/6
			for t := 0; t < len(on[i]); {
				mean := onWindows * float64(ticks)
				if !state {
					mean *= 5
				}
				for range int(math.Ceil(rng.ExpFloat64() * mean)) {
					if t < len(on[i]) {
						on[i][t] = state
						t++
					}
				}
				state = !state
			}
		}
		return func(w, t, i int) float64 {
			if on[i][w*ticks+t] {
				return 6 * k * weights[i]
			}
			return 0
		}
	}
}

// solo bursts 0.9 of the limit in 3 % of the window in one region, another
// every window; each region has 0.01 of the limit besides.
func solo() shape {
	return func(rng *rand.Rand, regions, windows, ticks int) func(int, int, int) float64 {
		who, when := make([]int, windows), make([]int, windows)
		length := max(1, ticks*3/100)
		for w := range who {
			who[w], when[w] = rng.IntN(regions), rng.IntN(ticks-length)
		}
		return func(w, t, i int) float64 {
			rate := 0.01
			if i == who[w] && t >= when[w] && t < when[w]+length {
				rate += 0.9 * float64(ticks) / float64(length)
			}
			return rate
		}
	}
}

// moving offers 0.8 limits, 80 % of it in one region, the next every three
// windows.
func moving() shape {
	return func(*rand.Rand, int, int, int) func(int, int, int) float64 {
		return func(w, _, i int) float64 {
			if (w/3)%3 == i {
				return 0.8 * 0.8
			}
			return 0.8 * 0.1
		}
	}
}

// world is one key in several regions under the estimate gate alone: each
// region admits while the counts that it has seen of all stay below the limit.
type world struct {
	regions  int
	windowMs int64
	lagMs    int64
	limit    uint64
	tickMs   int64
}

// run offers a shape for some windows and returns their history, as the
// regions would measure it, and the overage of each window.
func (x world) run(t *testing.T, seed uint64, windows int, s shape) (*History, []float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	h := NewHistory(x.regions, windows)
	// Views are published every fifth of the lag and take the rest of it.
	for i := range x.regions {
		for j := range x.regions {
			if i != j {
				age := Link{AgeP50Ms: x.lagMs * 9 / 10, AgeP99Ms: x.lagMs, AgeMaxMs: x.lagMs, AgeNowMs: x.lagMs * 9 / 10, RTTMs: 2 * x.lagMs}
				h.SetLink(i, j, age)
			}
		}
	}
	ticks := int(x.windowMs / x.tickMs)
	rate := s(rng, x.regions, windows, ticks)
	overage := make([]float64, windows)
	for w := range windows {
		overage[w] = x.window(t, rng, h, w, ticks, rate)
	}
	return h, overage
}

// window simulates one window and adds it to the history.
func (x world) window(t *testing.T, rng *rand.Rand, h *History, w, ticks int, rate func(int, int, int) float64) float64 {
	t.Helper()
	win := Window{StartMs: int64(w) * x.windowMs, Limit: x.limit, Regions: make([]Traffic, x.regions), AgeMs: x.lagMs, RTTMs: 2 * x.lagMs}
	ages, rtts := make([]*Envelope, x.regions), make([]*Envelope, x.regions)
	for i := range x.regions {
		ages[i], rtts[i] = NewEnvelope(win.AgeMs), NewEnvelope(win.RTTMs)
	}
	period, delay := max(1, int(x.lagMs/x.tickMs)/5), int(x.lagMs/x.tickMs)*4/5
	past := make([][]uint64, 0, ticks) // admitted by region at the end of each tick
	own := make([]uint64, x.regions)
	total := uint64(0)
	for tick := range ticks {
		at := win.StartMs + int64(tick)*x.tickMs
		view := make([]uint64, x.regions)
		if known := (tick-delay)/period*period - 1; tick >= delay && known >= 0 {
			copy(view, past[known])
		}
		seen := uint64(0)
		for _, v := range view {
			seen += v
		}
		for i := range x.regions {
			n := poisson(rng, rate(w, tick, i)*float64(x.limit)/float64(ticks))
			ages[i].Add(at, n)
			rtts[i].Add(at, n)
			others := seen - view[i]
			fits := min(n, x.limit-min(x.limit, others+own[i]))
			own[i] += fits
			total += n
			win.Regions[i].Admitted += fits
			win.Regions[i].DeniedEstimate += n - fits
		}
		if total > x.limit && !win.Crossed {
			win.Crossed = true
			for i := range win.Regions {
				win.Regions[i].AtCrossing = ages[i].Recent(at)
			}
		}
		past = append(past, append([]uint64(nil), own...))
	}
	admitted := uint64(0)
	for i := range win.Regions {
		win.Regions[i].PeakAge = ages[i].Roll(win.StartMs + x.windowMs)
		win.Regions[i].SurgeRTT = rtts[i].Roll(win.StartMs + x.windowMs).Surge
		admitted += own[i]
	}
	if !h.Add(win) {
		t.Fatalf("a window is not consistent: %+v", win)
	}
	return max(0, float64(admitted)/float64(x.limit)-1)
}

// regionNames returns n names.
func regionNames(n int) []string {
	names := []string{"us-east", "eu-west", "ap-south"}
	for i := len(names); i < n; i++ {
		names = append(names, fmt.Sprintf("region-%d", i))
	}
	return names[:n]
}
