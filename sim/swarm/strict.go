package swarm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/sim"
)

// owners draws whether keys are counted at owners, which half of the runs do,
// and what goes wrong with them: beside all else, or in some alone, so that
// owners are reached most of the time and much is asked of few keys. Owners
// that die again and again, go on after all others took them for dead, or are
// taken for dead half of the time; replicas that lose their disks, one or most
// of them, or power; layouts that change.
func (d *draw) owners() {
	if d.readmits || !d.chance(0.5) {
		return
	}
	c := &d.cfg
	d.strict = true
	_ = d.IntN(6) // the voters of a region, once: the log chooses them, and seeds mean the same
	if d.chance(0.5) {
		c.Strict.Headroom = uint64(d.between(1, 40))
		if prefetch := d.between(-1, 40); prefetch != 0 { // 0 leaves the default
			c.Strict.Prefetch = uint64(max(prefetch, 0))
		}
	}
	maybe(d, 0.3, &c.Strict.Forward, d.wild, 5*time.Millisecond, time.Second)
	maybe(d, 0.3, &c.Strict.Margin, d.wild, 5*time.Millisecond, 3*time.Second)
	maybe(d, 0.3, &c.Strict.Sync, d.wild, 10*time.Microsecond, 300*time.Millisecond)
	if d.chance(0.5) {
		c.Strict.Breaker = breaker.Config{Open: d.wild(50*time.Millisecond, 5*time.Second), Calls: uint32(d.between(1, 20))}
	}
	// Rare branches: full queues and tables.
	maybe(d, 0.08, &c.Strict.Waiters, d.between, 1, 4)
	maybe(d, 0.08, &c.Strict.Queue, d.between, 1, 8)
	maybe(d, 0.05, &c.Strict.VoterKeys, d.between, 1, 20)
	if d.tame = d.chance(0.6); d.tame {
		c.Network.Region = sim.Link{Delay: d.wild(50*time.Microsecond, 2*time.Millisecond), Jitter: d.wild(10*time.Microsecond, time.Millisecond)}
		c.Network.Across = sim.Link{Delay: d.wild(time.Millisecond, 80*time.Millisecond), Jitter: d.wild(100*time.Microsecond, 10*time.Millisecond)}
	}
	if d.chance(0.5) { // links that lose, delay and duplicate requests and grants
		for _, l := range []*sim.Link{&c.Network.Region, &c.Network.Across} {
			l.Loss, l.Duplicate, l.Reorder = share(0.3*d.Float64()), share(0.5*d.Float64()), share(0.5*d.Float64())
		}
	}
}

// ownerOf draws how a limit of a scope is counted at owners. least is the
// smaller of its requests and its burst.
func (d *draw) ownerOf(scope string, least int) []string {
	var f []string
	if d.rights && scope == "global" && d.chance(0.4) {
		f = append(f, "placement: "+[]string{"region", "owner"}[d.IntN(2)])
		if d.chance(0.5) {
			return append(openly(d, f), "consistency: partition")
		}
		return append(openly(d, f), fmt.Sprintf("overage_budget: %d%%", []int{0, 1, 10, 50, 100}[d.IntN(5)]))
	}
	f = append(f, "consistency: strict")
	switch n := len(d.cfg.Regions); {
	case scope == "global" && n > 1 && least >= 2*n && d.chance(0.4):
		f = append(f, fmt.Sprintf("on_failure: {share: %d%%}", d.between((100*n+least-1)/least, 90)))
	case d.chance(0.2):
		f = append(f, "on_failure: allow")
	}
	if scope == "global" && d.chance(0.2) {
		f = append(f, "home: "+d.cfg.Regions[d.IntN(len(d.cfg.Regions))].Name)
	}
	return f
}

// press lets clients of owners ask for few keys and often.
func (d *draw) press() {
	if !d.tame {
		return
	}
	more := 4
	if d.long {
		more = 1
	}
	for i := range d.cfg.Workloads {
		l := &d.cfg.Workloads[i]
		l.Keys, l.NewKeys, l.Rate = min(l.Keys, d.between(1, 4)), false, l.Rate*float64(d.between(1, more))
	}
}

// strictFaults draws what goes wrong with owners.
func (d *draw) strictFaults() {
	if !d.strict {
		return
	}
	c := &d.cfg
	most := 4
	if d.tame {
		most = 8
	}
	d.wrongClocks()
	if d.chance(0.4) {
		d.storageFaults(c.Regions[d.IntN(len(c.Regions))], d.time(0, c.Duration-1))
	}
	for range d.IntN(most) {
		at := d.time(0, c.Duration-1)
		all := c.Places()
		region := c.Regions[d.IntN(len(c.Regions))]
		some := []string{region.Daemon(d.IntN(region.Daemons))}
		f := sim.Fault{At: at, From: some, For: d.wild(20*time.Millisecond, 5*time.Second)}
		switch d.IntN(7) {
		case 0:
			f.Kind = sim.Crash
		case 1:
			f.Kind = sim.Amnesia
		case 2: // most of a region loses its disks
			f.Kind, f.From = sim.Amnesia, nil
			for i := range max(1, region.Daemons-1) {
				f.From = append(f.From, region.Daemon(i))
			}
		case 3:
			f.Kind = sim.Zombie
		case 4:
			f.Kind, f.From, f.For = sim.Suspect, []string{all[d.IntN(len(all))]}, d.time(time.Second, c.Duration)
			if d.chance(0.5) {
				f.From = nil
			}
		case 5:
			f.Kind = sim.LayoutChange
		case 6: // cut off from others, but not from clients
			f.Kind, f.To = sim.MissMembers, some
			f.From = nil
		}
		for range d.between(1, 4) {
			if f.At < c.Duration {
				c.Faults = append(c.Faults, f)
			}
			f.At += d.time(f.For, f.For+3*time.Second)
		}
	}
}

// streamClocks is the stream of wrong clocks.
const streamClocks = streamFeatures + 2

// wrongClocks draws daemons that run with clocks which are off by up to two
// days, one of a region at a time, and changes of the layout after that.
func (d *draw) wrongClocks() {
	c := &d.cfg
	plain := d.Rand
	d.Rand = rand.New(rand.NewPCG(c.Seed, streamClocks))
	defer func() { d.Rand = plain }()
	if d.rights || !d.chance(0.25) {
		return
	}
	for _, r := range c.Regions {
		if r.Daemons < 3 || d.chance(0.5) {
			continue
		}
		f := sim.Fault{
			Kind: sim.WrongClock, At: d.time(0, c.Duration/2), For: d.wild(time.Second, c.Duration),
			From: []string{r.Daemon(d.IntN(r.Daemons))}, Offset: d.wild(time.Second, 48*time.Hour),
		}
		if d.chance(0.3) {
			f.Offset = -f.Offset
		}
		c.Faults = append(c.Faults, f)
		if at := f.At + f.For + d.time(0, 2*time.Second); at < c.Duration && d.chance(0.5) {
			c.Faults = append(c.Faults, sim.Fault{Kind: sim.LayoutChange, At: at})
		}
	}
}
