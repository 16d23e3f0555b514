package agent

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// chaos is a random cluster with random faults for a while; heal ends the
// faults and starts stopped daemons.
type chaos struct {
	*rig
	cuts []string // "a>b": nothing goes from a region or daemon to another
	// lapses: daemons may lose their memory, after which not all need be well.
	lapses bool
}

func newChaos(t *testing.T, seed uint64, broken mutation) *chaos {
	r := newRig(t, seed)
	c := &chaos{rig: r, lapses: true}
	sizes := []int{1 + r.rng.IntN(3), 1 + r.rng.IntN(3), 1 + r.rng.IntN(3)}
	*r = *newRig(t, seed, sizes...)
	r.mutation = broken
	if broken&mutationAmnesiac != 0 {
		r.forget = func(*proc) {} // the disk alone
	}
	r.loss, r.twice = []int{0, 5, 20, 40}[r.rng.IntN(4)], []int{0, 10}[r.rng.IntN(2)]
	r.slowDisk, r.broken = []int{0, 30}[r.rng.IntN(2)], []int{0, 3}[r.rng.IntN(2)]
	r.cfg.DaemonHorizon = []time.Duration{0, 6 * time.Second, 10 * time.Second}[r.rng.IntN(3)]
	r.cfg.Period = 5 * time.Second
	for _, p := range r.daemons {
		p.skew = r.rng.Int64N(401) - 200
	}
	r.cut = func(from, to *proc) bool {
		return slices.ContainsFunc(c.cuts, func(s string) bool {
			return s == from.region+">"+to.region || s == from.name+">"+to.name
		})
	}
	r.off = func(p *proc) bool {
		return slices.ContainsFunc(c.cuts, func(s string) bool {
			return strings.HasPrefix(s, p.region+">") || strings.HasSuffix(s, ">"+p.region) ||
				strings.HasPrefix(s, p.name+">") || strings.HasSuffix(s, ">"+p.name)
		})
	}
	hot := "a"
	r.demand = func(p *proc, rule uint64) uint64 {
		if at := r.at / (11 * time.Second) % 3; string(rune('a'+at)) == p.region || hot == p.name {
			return 2000
		}
		return 100
	}
	r.boot()
	return c
}

// harm does one thing at random.
func (c *chaos) harm() string {
	p := c.daemons[c.rng.IntN(len(c.daemons))]
	q := c.daemons[c.rng.IntN(len(c.daemons))]
	switch n := c.rng.IntN(24); {
	case n >= 20 && p.up:
		c.leave(p, time.Duration(c.rng.IntN(3))*time.Second)
		return "leave " + p.name
	case n < 1 && p.up: // the whole region
		for _, q := range c.daemons {
			if q.region == p.region && q.up {
				c.crash(q)
			}
		}
		return "crash region " + p.region
	case n < 5 && p.up:
		c.crash(p)
		return "crash " + p.name
	case n < 9 && !p.up:
		lost := c.lapses && c.rng.IntN(3) == 0
		c.restart(p, lost)
		return fmt.Sprint("restart ", p.name, " lost ", lost)
	case n < 12 && p != q:
		s := p.name + ">" + q.name
		if p.region != q.region {
			s = p.region + ">" + q.region
		}
		c.cuts = append(c.cuts, s)
		return "cut " + s
	case n < 15:
		c.cuts = nil
		return "mend"
	case n < 16 && len(c.daemons) < 12:
		diskless := c.cfg.DaemonHorizon > 0 && c.rng.IntN(2) == 0
		return fmt.Sprint("join ", c.add(p.region, diskless).name, " diskless ", diskless)
	case n < 18 && !q.up:
		c.removeDaemon(q)
		return "remove " + q.name
	case n < 19 && p.up && c.down(q.region):
		if err := c.removeRegion(p, q.region); err == nil {
			return "remove region " + q.region
		}
	case p.up:
		if err := c.addRegion(p, q.region, 300_000); err == nil {
			return "add region " + q.region
		}
	}
	return ""
}

// down reports whether all daemons of a region are.
func (c *chaos) down(region string) bool {
	return !slices.ContainsFunc(c.daemons, func(p *proc) bool { return p.region == region && p.up })
}

func (c *chaos) play(d time.Duration) {
	for end := c.at + d; c.at < end; {
		if what := c.harm(); what != "" {
			c.history = append(c.history, fmt.Sprintf("%v %s", c.at, what))
		}
		c.run(time.Duration(1+c.rng.IntN(30)) * 100 * time.Millisecond)
	}
}

// heal ends the faults and starts stopped daemons. A region that was removed is
// added again.
func (c *chaos) heal() {
	c.cuts, c.loss, c.slowDisk, c.broken = nil, 0, 0, 0
	c.history = append(c.history, fmt.Sprintf("%v heal", c.at))
	for slices.ContainsFunc(c.daemons, func(p *proc) bool { return p.leaving != 0 }) {
		c.run(step) // they may be the last ones that remember
	}
	for _, p := range c.daemons {
		if !p.up {
			c.restart(p, false)
		}
	}
	c.run(time.Second)
	for _, g := range c.cfg.Genesis {
		_ = c.addRegion(c.daemons[0], g.Name, 300_000) // or it is there
	}
}

// removeFormer states that the former ids of daemons without a disk are
// stopped. Where a daemon with a disk was removed, too few may be left to
// reclaim the shares of those.
func (c *chaos) removeFormer() {
	for _, p := range c.daemons {
		for i := 1; p.diskless && i <= p.ids; i++ {
			c.removeID(p.id() - uint64(i))
		}
	}
}

// replace removes the regions that hold nothing, since the ids of all daemons
// that remember something are dead, and adds them again.
func (c *chaos) replace() {
	for _, g := range c.cfg.Genesis {
		held, other := uint64(0), (*proc)(nil)
		for _, p := range c.daemons {
			if p.region == g.Name {
				held += c.base(p, 0)
			} else {
				other = p
			}
		}
		if held > 0 {
			continue
		}
		for _, p := range c.daemons {
			if p.region == g.Name {
				c.crash(p)
			}
		}
		c.history = append(c.history, fmt.Sprintf("%v replace region %s: %v", c.at, g.Name, c.removeRegion(other, g.Name)))
		for _, p := range c.daemons {
			if p.region == g.Name {
				c.restart(p, false)
			}
		}
		c.run(time.Second)
		if err := c.addRegion(other, g.Name, 300_000); err != nil {
			c.t.Errorf("add region %s: %v", g.Name, err)
		}
	}
}

// runs returns how many seeds a test plays: RIGHTS_RUNS, or the number given.
func runs(t *testing.T, n uint64) uint64 {
	if v, err := strconv.ParseUint(os.Getenv("RIGHTS_RUNS"), 10, 64); err == nil {
		return v
	}
	if testing.Short() {
		return max(n/4, 1)
	}
	return n
}

// seeds are those to play: RIGHTS_SEED, or from 0 on.
func seeds(t *testing.T, n uint64) []uint64 {
	if v, err := strconv.ParseUint(os.Getenv("RIGHTS_SEED"), 10, 64); err == nil {
		return []uint64{v}
	}
	var all []uint64
	for s := range runs(t, n) {
		all = append(all, s)
	}
	return all
}

func TestChaos(t *testing.T) {
	for _, seed := range seeds(t, 12) {
		c := newChaos(t, seed, 0)
		c.play(60 * time.Second)
		if len(c.log) > 0 {
			t.Fatalf("RIGHTS_SEED=%d\n%q\n%q", seed, c.log, c.history)
		}
	}
}

// TestChaosHeals plays without losses of memory, and shows that all is held
// again soon after the harm ends.
func TestChaosHeals(t *testing.T) {
	for _, seed := range seeds(t, 8) {
		c := newChaos(t, seed, 0)
		c.lapses = false
		c.play(40 * time.Second)
		c.heal()
		healed := c.at
		c.demand = nil
		for !c.whole() && c.at-healed < 30*time.Second {
			c.run(100 * time.Millisecond)
		}
		if !c.whole() {
			c.removeFormer()
			c.run(20 * time.Second)
		}
		if !c.whole() {
			c.replace()
		}
		for !c.whole() && c.at-healed < 90*time.Second {
			c.run(100 * time.Millisecond)
		}
		if len(c.log) > 0 || !c.whole() {
			c.dump()
			t.Fatalf("RIGHTS_SEED=%d: %d of %d %v after\n%q\n%q", seed, c.held(0), c.asked[0].total,
				c.at-healed, c.log, c.history)
		}
	}
}

// TestChaosFindsMutations: see TestMutations for those that chance hardly
// finds.
func TestChaosFindsMutations(t *testing.T) {
	for _, tt := range []struct {
		name     string
		mutation mutation
	}{
		{"memory lost, taken for a first start", mutationAmnesiac},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(300) {
				c := newChaos(t, seed, tt.mutation)
				c.play(60 * time.Second)
				if len(c.log) > 0 {
					return
				}
			}
			t.Error("not found")
		})
	}
}
