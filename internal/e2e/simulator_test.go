//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
	"github.com/georld/rld/sim/scenario"
)

// The load of the comparison with the simulator.
const (
	costDaemons = 10
	costRate    = 100 * costDaemons // calls a second
	costKeys    = 3_000 * costDaemons
	costTime    = 30 * time.Second
	// costSettled is how long the simulator plays before the load begins.
	costSettled = 20 * time.Second
	// costShare is how far bytes and frames may differ from those of the
	// simulator, as a share of these.
	costShare = 0.20
	// costLost is the share of calls that may be left out.
	costLost = 0.005
	// costShards is the number of shards of a daemon.
	costShards = 1
)

// costLimits is the file of limits. Daemons have rights agents in any case, the
// simulator only if a rule has rights.
const costLimits = "domain: " + domain + `
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 60}}
  - {key: unused, rate_limit: {unit: minute, requests_per_unit: 60, overage_budget: 10%}}
`

// cost is what daemons sent to each other while a load was on.
type cost struct{ calls, bytes, frames float64 }

// String returns the cost of a call.
func (c cost) String() string {
	return fmt.Sprintf("%.1f bytes and %.2f frames a decision", c.bytes/c.calls, c.frames/c.calls)
}

// TestCostIsThatOfTheSimulator plays the same calls in a region of ten daemons
// and in the simulator: a decision costs as many bytes and frames.
func TestCostIsThatOfTheSimulator(t *testing.T) {
	c := startCluster(t, loopback{}, plan{
		daemons: []int{costDaemons}, later: []int{0}, founding: 1, limits: costLimits,
		settings: fmt.Sprintf("shards: %d\n", costShards),
	}, "us")
	trace := costTrace()
	time.Sleep(costSettled) // until the control log has its voters
	real, began := c.play(trace)
	simulated := simulate(t, trace, began)
	t.Logf("%d daemons: %v; the simulator: %v", costDaemons, real, simulated)
	for what, ratio := range map[string]float64{
		"bytes":  real.bytes / real.calls / (simulated.bytes / simulated.calls),
		"frames": real.frames / real.calls / (simulated.frames / simulated.calls),
	} {
		if math.Abs(ratio-1) > costShare {
			t.Errorf("daemons send %.2f times the %s of the simulator, want %.2f to %.2f", ratio, what, 1-costShare, 1+costShare)
		}
	}
}

// costTrace returns the calls: a Poisson process, with keys by Zipf's law.
func costTrace() *load.Trace {
	rng := rand.New(rand.NewPCG(1, 2))
	out, sums := &load.Trace{Regions: []string{"us"}}, make([]float64, costKeys)
	sum := 0.0
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
		out.Keys = append(out.Keys, load.TraceKey{Descriptors: [][]rules.Entry{{{Key: "user", Value: fmt.Sprint(i)}}}})
	}
	for at := time.Duration(0); ; {
		if at += time.Duration(rng.ExpFloat64() * float64(time.Second/costRate)); at >= costTime {
			return out
		}
		key := sort.SearchFloat64s(sums, rng.Float64()*sum)
		out.Entries = append(out.Entries, load.TraceEntry{At: at, Key: int32(min(key, costKeys-1)), Hits: 1})
	}
}

// play sends the calls to the daemons and returns what these sent meanwhile,
// and when the load began.
func (c *cluster) play(trace *load.Trace) (cost, time.Time) {
	c.t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	var failed atomic.Int64
	var calls sync.WaitGroup
	before, began := c.sent(), time.Now()
	slots := make(chan struct{}, maxInFlight)
	for _, e := range trace.Entries {
		time.Sleep(time.Until(began.Add(e.At)))
		d := c.daemons[rng.IntN(len(c.daemons))]
		q := question{rule: "user", value: trace.Keys[e.Key].Descriptors[0][0].Value, hits: 1}
		slots <- struct{}{}
		calls.Go(func() {
			if _, err := d.client.check(callTimeout, q); err != nil {
				failed.Add(1)
			}
			<-slots
		})
	}
	calls.Wait()
	late, after := time.Since(began)-costTime, c.sent()
	if n := len(trace.Entries); late > time.Second || float64(failed.Load()) > costLost*float64(n) {
		c.t.Fatalf("%d of %d calls failed, the last one was %s late: this machine is too slow to tell", failed.Load(), n, seconds(late))
	}
	return cost{float64(len(trace.Entries)), after.bytes - before.bytes, after.frames - before.frames}, began
}

// sent returns what all daemons sent to each other so far.
func (c *cluster) sent() (all cost) {
	for _, d := range c.daemons {
		for name, sum := range map[string]*float64{"rld_frame_bytes_total": &all.bytes, "rld_frames_total": &all.frames} {
			n, err := d.metric(name, `direction="sent"`)
			if err != nil {
				c.t.Fatal(err)
			}
			*sum += n
		}
	}
	return all
}

// simulate plays the calls in the simulator, in the windows in which the
// daemons had them, and returns what daemons sent meanwhile.
func simulate(t *testing.T, trace *load.Trace, began time.Time) cost {
	t.Helper()
	set, found := limits.Parse([]limits.File{{Name: "cost.yaml", Data: []byte(costLimits)}}, limits.Options{})
	if set == nil {
		t.Fatal(found)
	}
	later := *trace
	later.Start = began.Add(-costSettled).UnixNano()
	later.Entries = nil
	for _, e := range trace.Entries {
		e.At += costSettled
		later.Entries = append(later.Entries, e)
	}
	play := func(length time.Duration) *sim.Result {
		cfg, err := scenario.Replay(&later, set, later.Regions, costDaemons)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Duration, cfg.Control, cfg.Shards = length, &control.Config{}, costShards
		r, err := sim.Run(cfg, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, all := play(costSettled), play(costSettled+costTime)
	return cost{
		float64(all.Decisions - first.Decisions),
		float64(all.Traffic.Bytes - first.Traffic.Bytes), float64(all.Traffic.Frames - first.Traffic.Frames),
	}
}
