package audit

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The meter of a bucket is as high as the worst time up to now exceeds its
// share of the rate.
func TestMeterFindsTheWorstTime(t *testing.T) {
	type admission struct {
		at   time.Duration
		hits uint64
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := meter{rate: rapid.Float64Range(0, 2).Draw(rt, "rate") / float64(time.Millisecond)}
		var all []admission
		at := time.Duration(0)
		for range rapid.IntRange(1, 30).Draw(rt, "admissions") {
			at += time.Duration(rapid.IntRange(0, 50).Draw(rt, "gap")) * time.Millisecond
			all = append(all, admission{at, uint64(rapid.IntRange(1, 20).Draw(rt, "hits"))})
			got, worst := m.add(at, all[len(all)-1].hits), 0.0
			for i := range all {
				sum := 0.0
				for _, a := range all[i:] {
					sum += float64(a.hits)
				}
				worst = max(worst, sum-m.rate*float64(at-all[i].at))
			}
			if math.Abs(got-worst) > 1e-6*(1+worst) {
				rt.Fatalf("level %g after %v, the worst time makes it %g", got, all, worst)
			}
		}
	})
}

// The densest interval of a log is found wherever in it the stamp lies.
func TestDensestInterval(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const window = 10
		c, t := &counter{}, &truth{}
		stamps := rapid.SliceOfN(rapid.Int64Range(0, 40), 1, 20).Draw(rt, "stamps")
		for _, s := range stamps {
			w := c.window(s)
			if w == nil {
				w = t.open(c, s, s+window)
			}
			w.admitted++
		}
		stamp, most := stamps[len(stamps)-1], 0
		for from := stamp - window + 1; from <= stamp; from++ {
			n := 0
			for _, s := range stamps {
				if s >= from && s < from+window {
					n++
				}
			}
			most = max(most, n)
		}
		if got := c.densest(stamp, window); got != float64(most) {
			rt.Fatalf("%g around %d of %v, want %d", got, stamp, stamps, most)
		}
	})
}
