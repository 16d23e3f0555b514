package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/grid"
	"github.com/georld/rld/sim/load"
)

// TestScripts reads scenarios and traces, and checks the messages for faulty
// ones.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scenario", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			// scenario: read a scenario and list its parts, or its faults.
			case "scenario":
				cfg, err := Parse("s.yaml", []byte(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				return describeConfig(cfg)
			// trace: read a trace and list it, or its first fault.
			case "trace":
				trace, err := load.ParseTrace("t.csv", []byte(d.Input))
				if err != nil {
					return err.Error() + "\n"
				}
				return describeTrace(trace)
			}
			t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

func describeConfig(c *sim.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s for %v, then at most %v: %v, %d shards\n", c.Name, c.Duration, c.Settle, c.Regions, c.Shards)
	for _, r := range c.Rules.Rules() {
		fmt.Fprintf(&b, "rule %s\n", sim.RuleName(r))
	}
	for _, l := range c.Network.Links {
		fmt.Fprintf(&b, "link %s to %s: %v + %v, lose %d\n", l.From, l.To, l.Link.Delay, l.Link.Jitter, l.Link.Loss)
	}
	for _, l := range c.Workloads {
		fmt.Fprintf(&b, "%s asks %v at %v/s, %d keys, weights %v\n", l.Name, l.Descriptors, l.Rate, l.Keys, l.Regions)
	}
	if r := &c.Rights; c.Policy != sim.Budgeted || r.Period != 0 || len(r.Weights) > 0 {
		fmt.Fprintf(&b, "policy %v, every %v, horizon %v, interval %v and %v, %v ahead, weights %v\n",
			c.Policy, r.Period, r.DaemonHorizon, r.Interval, r.WANInterval, r.Ahead, r.Weights)
	}
	if c.HasOwners() {
		fmt.Fprintf(&b, "homes %+v, layout %+v\n", c.Strict, c.FirstLayout())
	}
	if g, ok := c.Grid.(*grid.Grid); ok {
		fmt.Fprintf(&b, "grid of %v under %v at %v, %d windows\n", g.Policies, g.Patterns, g.Sizes, g.Windows)
	}
	for i := range c.Workloads {
		if p := c.Workloads[i].Pulse; p != nil || c.Workloads[i].Pinned {
			fmt.Fprintf(&b, "%s: pinned %t, pulse %+v\n", c.Workloads[i].Name, c.Workloads[i].Pinned, p)
		}
	}
	for i := range c.Faults {
		fmt.Fprintf(&b, "at %v for %v: %s\n", c.Faults[i].At, c.Faults[i].For, &c.Faults[i])
	}
	return b.String()
}

func describeTrace(t *load.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "from %d\n", t.Start)
	for _, e := range t.Entries {
		k := t.Keys[e.Key]
		fmt.Fprintf(&b, "%v %q %q %v x%d\n", e.At, t.Regions[e.Region], k.Domain, k.Descriptors, e.Hits)
	}
	return b.String()
}
