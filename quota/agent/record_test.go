package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/quota/epoch"
)

// record is the part of the record of a control log that agents use. The rig
// appends what daemons propose, and what its operator commands.
type record struct {
	begun       bool
	regions     []Region
	generations map[string]int
	founders    map[uint64][]uint64 // by generation
	epochs      []epoch.Epoch       // ascending
	dead        []epoch.Retirement
}

// keptRecord is how many epochs of regions a record keeps.
const keptRecord = 16

// afterAll is how far after all clocks the operator states that a participant
// admits nothing more, in milliseconds.
const afterAll = 10_000

func regionOf(name string, generation int) uint64 {
	return rendezvous.Hash("region", name) + uint64(generation)
}

// id returns the daemon as a participant.
func (p *proc) id() uint64 { return rendezvous.Hash("daemon", p.name) + uint64(p.ids) }

// found begins the cluster.
func (r *rig) found() {
	c := &r.record
	c.begun, c.regions, c.generations = true, slices.Clone(r.cfg.Genesis), map[string]int{}
	for _, g := range c.regions {
		for _, p := range r.daemons {
			if p.region == g.Name && len(p.name) == 2 {
				c.founders[g.ID] = append(c.founders[g.ID], p.id())
			}
		}
	}
}

// follow gives a daemon the record, unless the log does not reach it. A daemon
// whose id is dead takes a new one; one whose region has another generation
// follows that.
func (r *rig) follow(p *proc) {
	if r.off != nil && r.off(p) {
		return
	}
	generation := regionOf(p.region, r.record.generations[p.region])
	isDead := slices.ContainsFunc(r.record.dead, func(d epoch.Retirement) bool { return d.ID == p.id() })
	known := slices.ContainsFunc(r.record.regions, func(g Region) bool { return g.ID == generation })
	if isDead || known && p.cfg.Generation != generation {
		if p.disk = nil; isDead {
			p.ids++
		}
		r.start(p)
	}
	p.Dead(r.record.dead)
	p.Regions(r.record.regions, r.record.epochs)
	p.Confirm()
}

var errRefused = errors.New("refused")

// commit appends an epoch of regions that a daemon proposed.
func (r *rig) commit(p *proc, e epoch.Epoch) error {
	if r.off != nil && r.off(p) {
		return errRefused
	}
	if r.loses {
		return nil
	}
	if !slices.Equal(e.Members, r.newest().Members) {
		return fmt.Errorf("%w: epoch %s: want the weights of the record", errRefused, e.ID)
	}
	return r.enter(e)
}

// enter appends an epoch of the regions of the record.
func (r *rig) enter(e epoch.Epoch) error {
	c := &r.record
	known := len(e.Members) == len(c.regions)
	for _, g := range c.regions {
		known = known && e.Has(g.ID)
	}
	if err := e.Validate(); err != nil || !known || !r.newest().ID.Before(e.ID) {
		return fmt.Errorf("%w: epoch %s after %s, regions %v: %w", errRefused, e.ID, r.newest().ID, known, err)
	}
	c.epochs = append(c.epochs, e)
	c.epochs = slices.Clone(c.epochs[max(0, len(c.epochs)-keptRecord):])
	return nil
}

// newest returns the newest epoch of the record.
func (r *rig) newest() epoch.Epoch {
	if n := len(r.record.epochs); n > 0 {
		return r.record.epochs[n-1]
	}
	e, err := r.cfg.regions()
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// afterAll returns an instant after all windows that any clock has reached.
func (r *rig) afterAll() int64 { return dawn + r.at.Milliseconds() + afterAll }

// removeDaemon is the operator's statement that a daemon is stopped.
func (r *rig) removeDaemon(p *proc) { r.removeID(p.id()) }

func (r *rig) removeID(id uint64) {
	if slices.ContainsFunc(r.record.dead, func(d epoch.Retirement) bool { return d.ID == id }) {
		return
	}
	r.record.dead = append(slices.Clone(r.record.dead), epoch.Retirement{ID: id, From: r.afterAll()})
}

// change appends the epoch of a command about regions, at the daemon that leads
// the log. Its predecessor is what that daemon knows to be settled.
func (r *rig) change(leader *proc, e epoch.Epoch, retired ...epoch.Retirement) error {
	newest := r.newest()
	e.ID = epoch.ID{Stamp: max(r.stamp(leader), newest.ID.Stamp.Next()), Proposer: uint64(leader.self)}
	e.Pred = leader.Settled()
	if e.Pred.Before(newest.ID) {
		retired = append(retired, newest.Retired...)
	}
	for _, d := range retired {
		if i, known := slices.BinarySearchFunc(e.Retired, d, compareRetired); !known && !e.Has(d.ID) {
			e.Retired = slices.Insert(slices.Clone(e.Retired), i, d)
		}
	}
	return r.enter(e)
}

func compareRetired(a, b epoch.Retirement) int {
	switch {
	case a.ID < b.ID:
		return -1
	case a.ID > b.ID:
		return 1
	}
	return 0
}

// removeRegion is the operator's statement that all daemons of a region are
// stopped.
func (r *rig) removeRegion(leader *proc, name string) error {
	c := &r.record
	i := slices.IndexFunc(c.regions, func(g Region) bool { return g.Name == name })
	if i < 0 || len(c.regions) == 1 {
		return errRefused
	}
	was, id := c.regions, c.regions[i].ID
	c.regions = slices.Delete(slices.Clone(was), i, i+1)
	err := r.change(leader, r.newest().Without(id), epoch.Retirement{ID: id, From: r.afterAll()})
	if err != nil {
		c.regions = was
	}
	return err
}

// addRegion adds a region with a share of all others. The daemons of it that
// are up found it.
func (r *rig) addRegion(leader *proc, name string, amount uint64) error {
	c := &r.record
	var founders []uint64
	for _, p := range r.daemons {
		if p.region == name && p.up && (r.off == nil || !r.off(p)) {
			founders = append(founders, p.id())
		}
	}
	if len(founders) == 0 || slices.ContainsFunc(c.regions, func(g Region) bool { return g.Name == name }) {
		return errRefused
	}
	id, was := regionOf(name, c.generations[name]+1), c.regions
	c.regions = append(slices.Clone(was), Region{Name: name, ID: id})
	if err := r.change(leader, r.newest().With(id, amount)); err != nil {
		c.regions = was
		return err
	}
	c.generations[name]++
	c.founders[id] = founders
	return nil
}
