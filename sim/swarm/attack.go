package swarm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// streamAttack is the stream that attacks are drawn from: the rest of a run is
// the same without.
const streamAttack = streamFeatures + 3

// attacks is the part of runs without budgets and owners in which one key is
// offered many times its limit, in windows so short that priors are learnt.
const attacks = 0.2

// attack draws an attack in place of limits and loads.
func attack(d *draw, seed uint64) {
	c := &d.cfg
	rng := rand.New(rand.NewPCG(seed, streamAttack))
	if d.long || d.large || d.rights || d.strict || rng.Float64() >= attacks {
		return
	}
	drawn := d.Rand
	d.Rand = rng
	defer func() { d.Rand = drawn }()
	limit := d.between(10, 100)
	c.Rules, c.Limits = parsed(c, fmt.Sprintf(
		"domain: edge\ndescriptors:\n  - key: k0\n    rate_limit: {unit: second, requests_per_unit: %d}\n", limit))
	entries := []rules.Entry{{Key: "k0", Value: load.Drawn}}
	d.asks = [][]ask{{{entries: entries, most: uint64(limit)}}}
	l := load.Workload{
		Domain: "edge", Hits: 1, Keys: 1, Rate: float64(limit * d.between(2, 12)), Failover: d.chance(0.5),
		Descriptors: [][]rules.Entry{entries},
	}
	if d.chance(0.3) {
		for range c.Regions {
			l.Regions = append(l.Regions, d.Float64())
		}
	}
	if d.chance(0.2) {
		l.To = d.time(20*time.Second, 30*time.Second)
	}
	c.Workloads = []load.Workload{l}
	c.Duration = d.time(25*time.Second, 35*time.Second)
	g := &c.Node.Gossip
	g.Interval, g.WANInterval, g.MinGap, g.Quiet = 20*time.Millisecond, time.Duration(d.between(20, 60))*time.Millisecond, 10*time.Millisecond, 0
	n := &c.Network
	n.Region.Delay, n.Region.Jitter = min(n.Region.Delay, 2*time.Millisecond), min(n.Region.Jitter, time.Millisecond)
	n.Across.Delay, n.Across.Jitter = min(n.Across.Delay, 60*time.Millisecond), min(n.Across.Jitter, 10*time.Millisecond)
}
