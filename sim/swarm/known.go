package swarm

import (
	"math/rand/v2"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// violation draws a small run with faults after which rld breaks a promise in a
// way that is known.
type violation struct {
	name string // of the kind of faults
	draw func(d *draw)
}

var violations = []violation{
	{"old_disk", func(d *draw) { stored(d, sim.OldDisk) }},
	{"truncated_file", func(d *draw) { stored(d, sim.TruncatedFile) }},
	{"cloned_disk", clonedDisk},
	{"mixed_limits", mixedLimits},
}

// streamKnown is the stream that violations are drawn from: what else a seed
// draws may change without them.
const streamKnown = streamFeatures + 1

// violationOf returns the violation that a seed draws.
func violationOf(seed uint64) *violation { return &violations[seed%uint64(len(violations))] }

// known draws the violation of the seed.
func (d *draw) known() {
	seed := d.cfg.Seed
	d.Rand = rand.New(rand.NewPCG(seed, streamKnown))
	violationOf(seed).draw(d)
}

// stored draws faults of a kind that changes disks. The control log detects
// what a cut or former record of rights lost.
func stored(d *draw, kind sim.FaultKind) {
	d.small(d.between(2, 4), "consistency: strict")
	for range d.between(2, 6) {
		d.cfg.Faults = append(d.cfg.Faults, d.fault(kind))
	}
}

// small makes a run with a control log and without other faults: two regions,
// a and b, whose clients ask for twice as much of a few keys as a limit admits.
func (d *draw) small(daemons int, limit string) {
	c := sim.Default()
	c.Name, c.Title, c.Seed, c.Liveness = d.cfg.Name, d.cfg.Title, d.cfg.Seed, time.Minute
	c.Regions = []sim.Region{{Name: "a", Daemons: daemons}, {Name: "b", Daemons: d.between(2, 3)}}
	c.Control = &control.Config{
		Heartbeat: 100 * time.Millisecond, Stable: 100 * time.Millisecond, ReplaceAfter: 2 * time.Second, RemoveAfter: 2 * time.Second,
	}
	d.cfg = c
	keys := d.between(1, 6)
	d.cfg.Rules, d.cfg.Limits = d.only(limit)
	d.cfg.Workloads = []load.Workload{{
		Domain: "edge", Descriptors: [][]rules.Entry{{{Key: "p", Value: "*"}}}, Hits: 1, Keys: keys, Rate: float64(d.between(20, 25) * keys),
	}}
}

// only returns a set of one limit, of 10 requests a second.
func (d *draw) only(limit string) (*rules.Set, string) {
	return parsed(&d.cfg, "domain: edge\ndescriptors:\n- key: p\n"+
		"  rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: 100, "+limit+"}\n")
}

// clonedDisk draws a machine that is started as another one, while a network
// partition keeps both apart, each with some of the other daemons. The
// partition begins first: a voter that has received a later store number would
// refuse the copy.
func clonedDisk(d *draw) {
	d.small(4, "consistency: strict")
	c, own := &d.cfg, d.Perm(3)
	name := func(i int) string { return c.Regions[0].Daemon(own[i]) }
	clone := c.Regions[0].Daemon(3)
	f := sim.Fault{Kind: sim.ClonedDisk, At: d.time(time.Second, 6*time.Second), For: d.time(time.Minute, 90*time.Second)}
	f.From, f.To = []string{name(0)}, []string{clone}
	cut := sim.Fault{Kind: sim.Cut, At: f.At - 10*time.Millisecond, For: f.For - d.time(time.Second, 10*time.Second)}
	cut.From, cut.To = []string{name(0), name(1)}, []string{clone, name(2), "b"}
	c.Faults, c.Duration = []sim.Fault{f, cut}, f.At+f.For+20*time.Second
}

// mixedLimits draws another placement of a limit at some of the daemons.
func mixedLimits(d *draw) {
	d.small(d.between(2, 4), "consistency: partition")
	f := sim.Fault{Kind: sim.MixedLimits, At: d.time(0, 10*time.Second), For: d.time(time.Millisecond, time.Second), From: []string{"b"}}
	f.Rules, f.Limits = d.only("consistency: partition, placement: " + []string{"owner", "region"}[d.IntN(2)])
	d.cfg.Faults = []sim.Fault{f}
}
