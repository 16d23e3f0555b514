package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/quota"
)

// busiestRig is two regions, two daemons in the first, with some rules.
func busiestRig(t testing.TB, rights bool) *cluster {
	c := &cluster{delay: time.Millisecond, wan: 40 * time.Millisecond, cuts: map[[2]string]bool{}, rights: rights}
	for _, d := range []daemon{{name: "a1", region: "a"}, {name: "a2", region: "a"}, {name: "b1", region: "b"}} {
		c.daemons = append(c.daemons, &d)
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 12, overage_budget: 50%}
  - key: bucket
    rate_limit: {unit: second, requests_per_unit: 1, algorithm: token_bucket, burst: 10}
  - key: log
    rate_limit: {unit: minute, requests_per_unit: 10, algorithm: sliding_log}
  - key: own
    rate_limit: {unit: minute, requests_per_unit: 10, scope: node}
`)
	c.pass(3 * time.Second)
	return c
}

// busiest describes the busiest keys that a daemon reports.
func (c *cluster) busiest(t testing.TB, name string) []string {
	t.Helper()
	d := c.find(t, name)
	var out []string
	d.node.Busiest(d.instant(c.now), func(b *Busy) {
		text := fmt.Sprintf("%s %d of %d over %d", b.Rule.Path, b.Count, b.Fits(), b.Count-min(b.Count, quota.Of(b.Rule.Limit).Capacity()))
		if b.Denied != (Denied{}) {
			text += fmt.Sprintf(" denied %+v", b.Denied)
		}
		for _, r := range d.node.Admitted(nil, b) {
			text += fmt.Sprintf(" %s=%d", r.Region, r.Hits)
		}
		out = append(out, text)
	})
	return out
}

func (c *cluster) askTimes(t testing.TB, name, text string, times int) {
	t.Helper()
	var call Call
	for range times {
		c.ask(t, c.find(t, name), &call, text)
	}
}

func wantBusiest(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestBusiestKeyIsTheOneWithMostHits(t *testing.T) {
	c := busiestRig(t, false)
	c.askTimes(t, "a1", "user=x", 3)
	c.askTimes(t, "a1", "user=y", 2)
	c.askTimes(t, "a2", "user=y", 4)
	c.askTimes(t, "b1", "user=y", 3)
	c.askTimes(t, "b1", "own=z", 3) // nobody else counts these
	c.askTimes(t, "b1", "bucket=z", 6)
	c.askTimes(t, "a1", "log=z", 2)
	c.pass(2 * time.Second)
	for _, name := range []string{"a1", "a2"} { // a2 learns of the bucket and the log, and was not asked for them
		got := c.busiest(t, name)
		if len(got) == 0 || got[0] != "user 9 of 12 over 0 a=6 b=3" {
			t.Errorf("%s: %q", name, got)
		}
	}
	c.askTimes(t, "b1", "bucket=z", 1)
	wantBusiest(t, c.busiest(t, "b1"), "user 9 of 12 over 0 b=3 a=6", "bucket 6 of 20 over 0 b=7 a=0")
	wantBusiest(t, c.busiest(t, "a1"), "user 9 of 12 over 0 a=6 b=3", "log 2 of 10 over 0")

	// A key that nobody asks for here is known too, and the window before for a
	// while.
	c.pass(time.Minute - c.now%time.Minute)
	c.askTimes(t, "b1", "user=far", 3)
	c.pass(time.Second)
	got := c.busiest(t, "a2")
	wantBusiest(t, got, "user 3 of 12 over 0 a=0 b=3", "user 9 of 12 over 0 a=6 b=3")
	c.pass(10 * time.Second)
	wantBusiest(t, c.busiest(t, "a2"), "user 3 of 12 over 0 a=0 b=3")
}

func TestBusiestKeyReportsWhatWentOver(t *testing.T) {
	c := busiestRig(t, false)
	c.cuts[[2]string{"a", "b"}], c.cuts[[2]string{"b", "a"}] = true, true
	c.askTimes(t, "a1", "user=x", 15)
	c.askTimes(t, "b1", "user=x", 12)
	wantBusiest(t, c.busiest(t, "a1"), "user 12 of 12 over 0 denied {Rights:0 Stranded:0 Estimate:3} a=12 b=0")
	clear(c.cuts)
	c.pass(5 * time.Second)
	wantBusiest(t, c.busiest(t, "a1"), "user 24 of 12 over 12 denied {Rights:0 Stranded:0 Estimate:3} a=12 b=12")
	wantBusiest(t, c.busiest(t, "a2"), "user 24 of 12 over 12 a=12 b=12")
}

func TestBusiestKeyReportsWhichGateDenied(t *testing.T) {
	c := busiestRig(t, true)
	for _, d := range c.daemons {
		d.node.cfg.Ablation.NoTransfers = true
	}
	c.askTimes(t, "a1", "user=x", 7) // of 18 rights 9 are in a, and 4 at each of its daemons
	wantBusiest(t, c.busiest(t, "a1"), "user 4 of 12 over 0 denied {Rights:3 Stranded:3 Estimate:0} a=4 b=0")
}

// TestBusiestCostsNoAllocation covers a charge that takes the lead and one that
// does not.
func TestBusiestCostsNoAllocation(t *testing.T) {
	c := busiestRig(t, false)
	c.askTimes(t, "a1", "user=x", 1)
	n := c.find(t, "a1").node
	var call Call
	c.resolve(t, &call, "user=x")
	e, l := n.keys.live.Find(call.Hits()[0].Key), c.set.Rules()[0].Limit
	got := testing.AllocsPerRun(100, func() {
		e.Cell.Count++
		n.busiest.charged(n.rules.set, e, l, e.Cell.Window, n.now)
		n.busiest.charged(n.rules.set, e, l, e.Cell.Window-l.Window(), n.now)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// BenchmarkBusiest measures the cost of a charge, by algorithm.
func BenchmarkBusiest(b *testing.B) {
	for _, name := range []string{"user", "bucket", "log"} {
		b.Run(name, func(b *testing.B) {
			c := busiestRig(b, false)
			c.askTimes(b, "a1", name+"=x", 1)
			n := c.find(b, "a1").node
			var call Call
			c.resolve(b, &call, name+"=x")
			h := &call.Hits()[0]
			e := n.keys.live.Find(h.Key)
			b.ReportAllocs()
			for b.Loop() {
				n.busiest.charged(n.rules.set, e, h.Limit, n.now, n.now)
			}
		})
	}
}
