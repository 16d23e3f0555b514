package sim

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/node"
	epochs "github.com/georld/rld/quota/epoch"
)

// What is admitted beyond the rights is found under every algorithm. The runs
// are real; the gate of rights is taken out of the nodes behind the auditor's
// back.
func TestAdmittedAuditorCatches(t *testing.T) {
	for _, algorithm := range []string{
		"fixed_window", "sliding_window", "sliding_log", "token_bucket", "leaky_bucket",
	} {
		cfg := hard(t, "algorithm: "+algorithm+", "+fixed)
		cfg.Workloads[0].Keys = 1
		cfg.Workloads[0].Pulse = &Pulse{Every: 6 * time.Second, Within: 20 * time.Millisecond, Requests: 200}
		for _, gate := range []bool{true, false} {
			if !gate {
				cfg.mutation.rights = func(*World, *Daemon, node.Allotments) node.Allotments { return plenty{} }
			}
			r, err := Run(cfg, Options{Auditors: []string{"admitted"}})
			if err != nil {
				t.Fatal(err)
			}
			a := r.Auditors[0]
			if (a.Violations == 0) != gate || a.Checks == 0 {
				t.Errorf("%s, with the gate %t: %+v", algorithm, gate, a)
			}
			t.Log(a.First)
		}
	}
}

// plenty is rights without end.
type plenty struct{ node.Allotments }

func (plenty) Version() uint64 { return 1 }

func (plenty) Allotment(_, total uint64, _, _ int64, _ bool) (uint64, epochs.Reason) {
	return 100 * total, 0
}

func (plenty) PartOf(_ string, _, total uint64, _, _ int64, _ bool) uint64 { return total }

func (plenty) RegionPart(_ string, _, total uint64, _, _ int64) uint64 { return total }

// The meter of a bucket is as high as the worst time up to now exceeds its share
// of the rate.
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
		b, g := &book{}, &ledger{}
		stamps := rapid.SliceOfN(rapid.Int64Range(0, 40), 1, 20).Draw(rt, "stamps")
		for _, s := range stamps {
			p := b.page(s)
			if p == nil {
				p = g.open(b, s, s+window)
			}
			p.admitted++
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
		if got := b.densest(stamp, window); got != float64(most) {
			rt.Fatalf("%g around %d of %v, want %d", got, stamp, stamps, most)
		}
	})
}
