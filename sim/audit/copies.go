package audit

import (
	"slices"
	"time"

	"github.com/georld/rld/sim"
)

// copies knows the daemons that run with copies of one disk, while a network
// partition keeps everybody from hearing both. Neither can know of the other
// then (ADR 24), and both use the rights of their id.
type copies struct {
	*truth
	drawn bool                        // a machine is cloned in the run
	apart map[[2]uint64]time.Duration // when two chains were apart last
}

// noticed is the time after a network partition in which an id ends that two
// daemons have: one waits 2 s for the answer of the other.
const noticed = 3 * time.Second

func newCopies(t *truth) copies {
	c := t.world.Config()
	drawn := c.Control != nil && slices.ContainsFunc(c.Faults, func(f sim.Fault) bool { return f.Kind == sim.ClonedDisk })
	return copies{truth: t, drawn: drawn, apart: make(map[[2]uint64]time.Duration)}
}

// note notes the daemons that a daemon is apart from.
func (c *copies) note(d *sim.Daemon) {
	if !c.drawn || !d.Up || d.ControlLog() == nil {
		return
	}
	for _, o := range c.world.Daemons() {
		if o != d && o.Up && o.ControlLog() != nil && o.ControlLog().ID() == d.ControlLog().ID() && !c.heard(d, o) {
			c.apart[pair(d.Chain(), o.Chain())] = c.world.Now()
		}
	}
}

// heard reports whether anybody receives messages of both daemons.
func (c *copies) heard(d, o *sim.Daemon) bool {
	return slices.ContainsFunc(c.world.Daemons(), func(by *sim.Daemon) bool {
		return c.world.Connected(d, by) && c.world.Connected(o, by)
	})
}

// greatest returns the greatest amount of those chains that a chain is apart
// from.
func (c *copies) greatest(chain uint64, amounts map[uint64]uint64) (greatest uint64) {
	if len(c.apart) == 0 {
		return 0
	}
	for other, amount := range amounts {
		if at, ok := c.apart[pair(chain, other)]; ok && c.world.Now() <= at+noticed {
			greatest = max(greatest, amount)
		}
	}
	return greatest
}

func pair(a, b uint64) [2]uint64 { return [2]uint64{min(a, b), max(a, b)} }
