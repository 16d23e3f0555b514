//go:build e2e

package demo

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/georld/rld/sim"
)

// The tolerances between the demo and the simulator. The simulator runs with
// simSeeds seeds: chance alone changes the overage of a burst by a third. The
// demo must be within the results of all seeds, from the least to the greatest.
// Both ends are widened by a share of the end, and at least by overLeast or
// ageLeast, and by overHits, since the limits are small whole numbers.
const (
	simSeeds  = 9
	overShare = 0.30
	overLeast = 0.05
	overHits  = 2
	ageShare  = 0.20
	ageLeast  = 0.020 // seconds

	// A new link assumes that its views become old, and takes twenty messages
	// to learn otherwise. Real daemons exchange more of them before the clients
	// begin, so that the oldest views in a region are up to a third younger.
	oldestShare = 0.40
)

// figure is one number that both sides have.
type figure struct {
	what             string
	demo             float64
	least, mid, most float64 // of the simulator's
	low, high        float64 // the range for the demo
}

func (f *figure) agrees() bool { return f.low <= f.demo && f.demo <= f.high }

// compare compares the results of the demo with those of the simulator.
func (x *trial) compare(real *outcome, simulated []*outcome) []figure {
	all := x.rules()
	var out []figure
	add := func(what string, share, slack float64, of func(*outcome) float64) {
		f := figure{what: what, demo: of(real), least: of(simulated[0])}
		for _, s := range simulated {
			v := of(s)
			f.least, f.most = min(f.least, v), max(f.most, v)
			f.mid += v / float64(len(simulated))
		}
		f.low, f.high = f.least-max(slack, share*f.least), f.most+max(slack, share*f.most)
		out = append(out, f)
	}
	for i := range ruleCount {
		slack := max(overLeast, overHits/float64(all[i].Limit))
		for w := range real.worst[i] {
			what := fmt.Sprintf("%s: worst overage, window %d", all[i].Name, w+1)
			add(what, overShare, slack, func(o *outcome) float64 { return o.worst[i][w] })
		}
		add(all[i].Name+": mean overage", overShare, slack, func(o *outcome) float64 { return o.mean[i] })
	}
	add("age of views in a region, p50, s", ageShare, ageLeast, func(o *outcome) float64 { return o.near.P50 })
	add("age of views in a region, p99, s", oldestShare, ageLeast, func(o *outcome) float64 { return o.near.P99 })
	add("age of views across, p50, s", ageShare, ageLeast, func(o *outcome) float64 { return o.far.P50 })
	add("age of views across, p99, s", ageShare, ageLeast, func(o *outcome) float64 { return o.far.P99 })
	return out
}

// differ returns the figures that do not agree.
func differ(all []figure) []figure {
	var out []figure
	for _, f := range all {
		if !f.agrees() {
			out = append(out, f)
		}
	}
	return out
}

// table prints figures, one a line.
func table(all []figure) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tdemo\tsim\tof its seeds\tdemo may be\t\t")
	for _, f := range all {
		verdict := ""
		if !f.agrees() {
			verdict = "DIFFERS"
		}
		fmt.Fprintf(w, "%s\t%.3f\t%.3f\t%.3f to %.3f\t%.3f to %.3f\t%s\t\n",
			f.what, f.demo, f.mid, f.least, f.most, max(f.low, 0), f.high, verdict)
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return b.String()
}

// simulated runs the simulator with several seeds, ascending from one. change
// modifies the trial first.
func (x *trial) simulated(t *testing.T, began time.Time, seed uint64, seeds int, change func(*sim.Config)) []*outcome {
	t.Helper()
	var out []*outcome
	for i := range seeds {
		cfg := x.config(t, began, seed+uint64(i))
		change(cfg)
		out = append(out, x.foretell(t, cfg))
	}
	return out
}

func unchanged(*sim.Config) {}

// lie is a simulator that leaves out something which matters.
type lie struct {
	name   string
	change func(*sim.Config)
}

// lies are deviations that the comparison must detect.
func lies() []lie {
	return []lie{
		{"without delays", func(c *sim.Config) { c.Network.Links, c.Network.Across = nil, c.Network.Region }},
		{"with twice the delays", func(c *sim.Config) {
			for i := range c.Network.Links {
				c.Network.Links[i].Link.Delay *= 2
			}
		}},
		{"without the cut", func(c *sim.Config) { c.Faults = nil }},
		{"with half of the cut", func(c *sim.Config) { c.Faults[0].For /= 2 }},
		{"with a cut that does not heal", func(c *sim.Config) { c.Faults[0].For = 0 }},
		{"with half the clients", func(c *sim.Config) {
			kept := c.Trace.Entries[:0]
			for i, e := range c.Trace.Entries {
				if i%2 == 0 {
					kept = append(kept, e)
				}
			}
			c.Trace.Entries = kept
		}},
	}
}

// The comparison has to be able to fail, and must not because of chance. Here
// the simulator stands for the demo: another seed of it agrees, and one that
// lies does not.
func TestALyingSimulatorWouldBeFoundOut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	x := newTrial()
	began := x.next(time.Unix(1_800_000_000, 0))
	honest := x.simulated(t, began, 1, simSeeds, unchanged)
	for i, o := range x.simulated(t, began, 1000, 3, unchanged) {
		if d := differ(x.compare(o, honest)); len(d) > 0 {
			t.Errorf("seed %d does not agree with seeds 1 to %d:\n%s", 1000+i, simSeeds, table(d))
		}
	}
	for _, l := range lies() {
		d := differ(x.compare(x.simulated(t, began, 1000, 1, l.change)[0], honest))
		t.Logf("a simulator %s:\n%s", l.name, table(d))
		if len(d) == 0 {
			t.Errorf("a simulator %s agrees", l.name)
		}
	}
}
