package swarm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// streamDraw is the stream that swarm runs are drawn from.
const streamDraw = uint64(1) << 62

// draw draws one swarm run.
type draw struct {
	*rand.Rand
	cfg      sim.Config
	asks     [][]ask // by key of the limits
	features features
	rights   bool // rules have rights
	strict   bool // some are counted at owners
	tame     bool // and these are reached most of the time
	large    bool // there are many regions and daemons
	long     bool // the run has minutes to hours
	days     bool // or days
	readmits bool // see readmitted
	failures *rand.Rand
	shifting bool // its demand moves from region to region, and rights with it
}

// ask is entries of a descriptor, and the greatest capacity of the limits that
// they match.
type ask struct {
	entries []rules.Entry
	most    uint64
}

// maxKeys is the number of keys that limits have at most.
const maxKeys = 6

// Draw returns the swarm run of a seed: everything about it is drawn, and most
// of it wild. It is always valid, and the same for ever for one seed and one
// version of this package. With known it is a small run with faults that break
// promises in ways that are known.
func Draw(seed uint64, known bool) *sim.Config {
	d := draws(seed)
	if known {
		d.known()
	}
	return &d.cfg
}

// draws draws the run of a seed.
func draws(seed uint64) *draw {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, streamDraw)), cfg: sim.Default()}
	c := &d.cfg
	c.Name, c.Seed = "swarm", seed
	c.Title = fmt.Sprintf("Swarm run %d", seed)
	c.Duration = d.time(2*time.Second, 12*time.Second)
	d.long = d.chance(longRuns)
	d.days = d.long && d.chance(0.3)
	d.failures = rand.New(rand.NewPCG(seed, streamFailures))
	d.drawFeatures(seed)
	d.cluster()
	d.gossip()
	d.settings()
	d.clocks()
	d.network()
	d.budgets()
	d.owners()
	d.stretch()
	c.Rules, c.Limits = d.rules()
	d.workloads()
	d.press()
	attack(d, seed)
	d.operators()
	d.faults()
	d.rolling()
	d.strictFaults()
	d.rightsFaults()
	d.lasting()
	d.aimed()
	d.outside()
	if d.large {
		d.calm()
	}
	// All intervals that agreement may take, several times over:
	// acknowledgements, repairs, and resyncs.
	g := c.Node.Gossip.WithDefaults()
	// With no room for all cells there is no state to agree on.
	if c.Node.Gossip.MaxCells == 0 && !slices.ContainsFunc(c.Settings, func(s sim.Settings) bool { return s.MaxCells > 0 }) {
		c.Settle = 20*time.Second + 2*c.Members.Leave + rounds(&c.Network)*c.Lag() + 3*g.DigestEvery + 2*g.ReadyWithin
		// What is lost is sent again later, and idle links wait.
		c.Settle += 2*g.MaxHeartbeat(c.Daemons()) + rounds(&c.Network)*2*time.Second
		if n := c.Node.Gossip.FrameCells; n > 0 { // a resync takes many frames
			c.Settle += time.Duration(resyncCells/n) * c.Lag() / 8
		}
	} else {
		c.Settle = 0
	}
	d.control(seed)
	d.liveness()
	return d
}

// rounds is the number of lags that agreement may take. On links that lose
// frames most messages are sent several times until one and its answer arrive.
func rounds(n *sim.Network) time.Duration {
	arrives := 1.0
	for _, l := range []sim.Link{n.Region, n.Across} {
		arrives = min(arrives, (1-l.Loss.Ratio())*(1-l.Corrupt.Ratio())*(1-l.Truncate.Ratio()))
	}
	return time.Duration(15 / max(0.1, arrives*arrives))
}

// resyncCells is how many cells nearly all runs have at one time: logs have one
// for each millisecond with a hit.
const resyncCells = 5_000

// share returns a fraction of 1 in parts per million.
func share(f float64) rules.PPM {
	return rules.PPM(math.Round(min(max(f, 0), 1) * float64(100*rules.Percent)))
}

// fraction draws a share of 1, in parts per million.
func (d *draw) fraction() float64 { return float64(share(d.Float64())) / float64(rules.Whole) }

// chance is true with a probability.
func (d *draw) chance(p float64) bool { return d.Float64() < p }

// time draws a duration, uniformly.
func (d *draw) time(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64(high-low)+1))
}

// between draws a whole number, both ends included.
func (d *draw) between(low, high int) int { return low + d.IntN(high-low+1) }

// maybe sets a field with a probability, to a drawn value from low to high.
func maybe[T any](d *draw, p float64, out *T, draw func(low, high T) T, low, high T) {
	if d.chance(p) {
		*out = draw(low, high)
	}
}

// wild draws a duration over orders of magnitude: as likely between 1 and 10
// of a unit as between 10 and 100.
func (d *draw) wild(low, high time.Duration) time.Duration {
	f := float64(low)
	for f < float64(high) && d.chance(0.6) {
		f *= 1 + 4*d.Float64()
	}
	return min(time.Duration(f), high)
}

// mostDaemons is how many daemons all regions have at most.
const mostDaemons = 60

func (d *draw) cluster() {
	c := &d.cfg
	c.Regions = nil
	most := 4
	switch {
	case d.days:
		most = 2
	case d.long:
		most = 3
	}
	regions := d.between(1, most)
	if d.large = !d.long && d.chance(0.03); d.large {
		regions, most = d.between(5, 10), 12
	}
	for i := range regions {
		size := d.between(1, min(most, mostDaemons-c.Daemons()-(regions-1-i)))
		c.Regions = append(c.Regions, sim.Region{Name: string(rune('a' + i)), Daemons: size})
	}
	if d.chance(0.3) {
		for range c.Regions {
			c.Rights.Weights = append(c.Rights.Weights, uint64(d.between(0, 5)))
		}
	}
	c.Shards = 1 << d.IntN(3)
	c.Node.MaxKeys = 100_000
	maybe(d, 0.15, &c.Node.MaxKeys, d.between, 1, 50)
	c.Node.Naive = d.chance(0.25)
	c.Members = sim.Members{
		Join: d.wild(time.Millisecond, time.Second), Leave: d.wild(10*time.Millisecond, 3*time.Second),
		Spread: d.wild(time.Millisecond, time.Second),
	}
}

// calm lets little happen in a large cluster: each interval costs a message for
// each pair of daemons.
func (d *draw) calm() {
	c := &d.cfg
	c.Shards, c.Settings = 1, nil
	c.Duration = d.time(2*time.Second, 5*time.Second)
	g := &c.Node.Gossip
	g.Interval, g.WANInterval, g.MinGap = d.time(500*time.Millisecond, time.Second), d.time(time.Second, 2*time.Second), 100*time.Millisecond
	g.DigestEvery, g.ReadyWithin = 5*time.Second, 2*time.Second
	c.Rights.Interval, c.Rights.WANInterval = time.Second, 2*time.Second
	for i := range c.Workloads {
		c.Workloads[i].Rate = min(c.Workloads[i].Rate, 40)
	}
	d.Shuffle(len(c.Faults), func(i, j int) { c.Faults[i], c.Faults[j] = c.Faults[j], c.Faults[i] })
	c.Faults = c.Faults[:min(len(c.Faults), 6)]
	c.Faults = slices.DeleteFunc(c.Faults, func(f sim.Fault) bool { return f.At >= c.Duration })
}

// settings draws settings of single places that differ from those of all: now
// and then a number of shards, with which daemons refuse the others.
func (d *draw) settings() {
	c := &d.cfg
	if !d.chance(0.25) {
		return
	}
	places := c.Places()
	for _, i := range d.Perm(len(places))[:d.between(1, min(3, len(places)))] {
		s := sim.Settings{Place: places[i], Newer: d.chance(0.5)}
		maybe(d, 0.3, &s.MaxKeys, d.between, 1, 50)
		maybe(d, 0.2, &s.MaxCells, d.between, 1, 400)
		maybe(d, 0.5, &s.Interval, d.time, 10*time.Millisecond, time.Second)
		maybe(d, 0.5, &s.WANInterval, d.time, 20*time.Millisecond, 2*time.Second)
		if d.chance(0.1) {
			s.Shards = 1 << d.IntN(3)
		}
		s.Interval, s.WANInterval = s.Interval.Round(time.Millisecond), s.WANInterval.Round(time.Millisecond)
		if s != (sim.Settings{Place: places[i]}) {
			c.Settings = append(c.Settings, s)
		}
	}
}

func (d *draw) gossip() {
	g := &d.cfg.Node.Gossip
	maybe(d, 0.7, &g.Interval, d.wild, 10*time.Millisecond, time.Second)
	maybe(d, 0.7, &g.WANInterval, d.wild, 20*time.Millisecond, 2*time.Second)
	g.Interval, g.WANInterval = g.Interval.Round(time.Millisecond), g.WANInterval.Round(time.Millisecond)
	if d.chance(0.3) {
		g.MinGap = min(d.wild(time.Millisecond, 100*time.Millisecond), g.WithDefaults().Interval)
	}
	maybe(d, 0.4, &g.Quiet, d.wild, 100*time.Millisecond, 5*time.Second)
	maybe(d, 0.2, &g.FrameCells, d.between, 1, 20)
	maybe(d, 0.2, &g.FrameBytes, d.between, 1<<10, 4<<10)
	maybe(d, 0.1, &g.MaxCells, d.between, 1, 400)
	maybe(d, 0.3, &g.ReadyWithin, d.wild, 10*time.Millisecond, 5*time.Second)
	maybe(d, 0.3, &g.Grace, d.time, 100*time.Millisecond, 20*time.Second)
	maybe(d, 0.3, &g.DigestEvery, d.time, time.Second, 5*time.Second)
}

func (d *draw) clocks() {
	c := &d.cfg.Node.Clock
	maybe(d, 0.3, &c.MaxOffset, d.wild, time.Millisecond, 10*time.Second)
	c.MaxOffset = c.MaxOffset.Truncate(time.Millisecond)
	if d.chance(0.2) {
		c.SlewDivisor = int64(d.between(2, 1_000))
	}
}

func (d *draw) network() {
	n := &d.cfg.Network
	n.Region.Delay = d.wild(50*time.Microsecond, 20*time.Millisecond)
	n.Region.Jitter = d.wild(10*time.Microsecond, 20*time.Millisecond)
	n.Across.Delay = d.wild(time.Millisecond, time.Second)
	n.Across.Jitter = d.wild(100*time.Microsecond, 300*time.Millisecond)
	d.spoil(&n.Region, 0.3)
	d.spoil(&n.Across, 0.4)
}

// spoil lets a link lose, repeat, reorder and damage frames, each as likely.
func (d *draw) spoil(l *sim.Link, p float64) {
	l.Uniform = d.chance(0.3)
	for _, s := range []*rules.PPM{&l.Loss, &l.Duplicate, &l.Reorder, &l.Corrupt, &l.Truncate} {
		if d.chance(p) {
			*s = share(0.4 * d.Float64() * d.Float64())
		}
	}
	if d.chance(p / 3) {
		l.Bandwidth = int64(d.between(2_000, 200_000))
	}
}

// rules draws 1 to 6 limits in the limits language, and returns their text too.
func (d *draw) rules() (*rules.Set, string) {
	d.asks = nil
	var b strings.Builder
	b.WriteString("domain: edge\ndescriptors:\n")
	for i := range d.between(1, maxKeys) {
		d.asks = append(d.asks, d.descriptors(&b, i))
	}
	return parsed(&d.cfg, b.String())
}

// parsed returns drawn limits and their text.
func parsed(c *sim.Config, text string) (*rules.Set, string) {
	set, diags := c.ParseLimits(limits.File{Name: "drawn", Data: []byte(text)})
	if err := diags.Err(); err != nil {
		panic(fmt.Sprintf("sim: drawn limits: %v", err)) // of our own making
	}
	return set, text
}

// limit draws a limit, and returns how much of it fits at once.
func (d *draw) limit() (text string, most uint64) {
	algorithm := rules.Algorithms()[d.IntN(len(rules.Algorithms()))]
	requests := d.between(1, 200)
	bucket := strings.HasSuffix(algorithm, "_bucket")
	if !bucket && d.chance(0.1) {
		requests = 0
	}
	large := d.factor()
	switch { // as much as the language allows, with the largest budget
	case bucket:
		large = min(large, 25_000)
	case algorithm == "sliding_log":
		large = min(large, 50)
	}
	requests *= large
	f := []string{
		"unit: second", "algorithm: " + algorithm, fmt.Sprintf("requests_per_unit: %d", requests),
		fmt.Sprintf("unit_multiplier: %d", d.between(1, 6)),
	}
	if d.long {
		requests = d.longLimit(f)
	} else if !d.readmits && d.chance(0.4) { // windows in which all of a run falls
		f[0] = "unit: " + []string{"minute", "minute", "hour", "day"}[d.IntN(4)]
	}
	least := requests
	if bucket {
		burst := d.between(1, 100) * large
		least = min(least, burst)
		f = append(f, fmt.Sprintf("burst: %d", burst))
	}
	scope := "global"
	if d.chance(0.3) {
		scope = []string{"region", "node"}[d.IntN(2)]
		f = append(f, "scope: "+scope)
	}
	homed := d.strict && scope != "node" && d.chance(0.6)
	switch {
	case homed:
		return strings.Join(append(f, d.ownerOf(scope, least)...), ", "), uint64(least)
	case d.rights && scope != "node":
		f = append(f, d.rightsOf(scope)...)
	}
	if strings.HasSuffix(algorithm, "_window") && d.chance(0.2) {
		f = append(f, "carry_debt: true")
	}
	if d.chance(0.1) {
		f = append(f, "charge_denied: true")
	}
	return strings.Join(f, ", "), uint64(least)
}

func (d *draw) workloads() {
	for range d.between(1, 3) {
		d.cfg.Workloads = append(d.cfg.Workloads, d.workload())
	}
}

func (d *draw) workload() load.Workload {
	l := load.Workload{
		Domain: "edge", Hits: 1, Keys: d.between(1, 20), Zipf: 2 * d.Float64(),
		Rate: float64(d.between(5, 120)), Failover: d.chance(0.5),
	}
	most := uint64(0)
	for _, i := range d.Perm(len(d.asks))[:d.between(1, min(3, len(d.asks)))] {
		a := d.asks[i][0]
		d.extra(func() { a = d.asks[i][d.IntN(len(d.asks[i]))] })
		l.Descriptors, most = append(l.Descriptors, a.entries), max(most, a.most)
	}
	if d.chance(0.2) {
		l.Hits = uint64(d.between(1, 10))
	}
	if d.chance(0.3) {
		for range d.cfg.Regions {
			l.Regions = append(l.Regions, d.Float64())
		}
	}
	if d.chance(0.2) {
		l.Hot = d.fraction()
	}
	l.NewKeys = d.chance(0.1)
	switch d.IntN(5) {
	case 0:
		l.Bursts = &load.Bursts{On: d.time(50*time.Millisecond, 2*time.Second), Off: d.time(0, 3*time.Second)}
	case 1:
		l.Pulse = &load.Pulse{
			Every: d.time(500*time.Millisecond, 4*time.Second), Within: d.wild(time.Millisecond, time.Second),
			Requests: d.between(1, 60),
		}
	case 2:
		l.Moving = &load.Moving{Every: d.time(300*time.Millisecond, 4*time.Second), Share: d.fraction()}
	}
	if d.chance(0.3) {
		l.Retry = &load.Retry{Attempts: d.between(1, 4), Jitter: 2 * d.fraction()}
		maybe(d, 0.5, &l.Retry.Backoff, d.time, time.Millisecond, time.Second)
	}
	if d.long {
		d.seldom(&l)
	}
	d.client(&l, most)
	return l
}
