package control

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/quota/epoch"
)

const (
	// maxEpochs bounds the epochs of regions that a record keeps, the newest
	// ones, and maxEpochBytes the rest of them after the first in their JSON
	// form.
	maxEpochs     = 16
	maxEpochBytes = 1 << 20
	// Rebalancer is the author of epochs that follow the demand. They are not
	// in the history: the record keeps the epochs.
	Rebalancer = "rebalancer"
	// removeAfter is how long no daemon of a region was heard that is removed,
	// and endAhead how far after the clock of the leader its last window is, in
	// milliseconds, beside the greatest difference between two clocks.
	removeAfter = time.Minute
	endAhead    = 10_000
)

// RegionID returns a generation of a region as a participant of the epochs of
// regions, never 0. A region that was removed and added again is another one.
func RegionID(name string, generation Version) uint64 {
	return max(1, rendezvous.Hash("region", name, generation.Recovery.Random.String(), fmt.Sprint(generation.Recovery.Number, generation.Index)))
}

// Member returns the daemon as a participant of the epochs of its region, never
// 0.
func (d ID) Member() uint64 { return max(1, binary.BigEndian.Uint64(d[:])) }

// ID returns the region as a participant of the epochs of regions.
func (g *Region) ID() uint64 { return RegionID(g.Name, g.Generation) }

// FirstGeneration returns the generation of the regions in Genesis.
func (r *Record) FirstGeneration() Version {
	return Version{Recovery: Recovery{Random: r.Cluster.ID}, Index: 1}
}

// Newest returns the newest epoch of regions: that of the founding before the
// first entry with one.
func (r *Record) Newest() (epoch.Epoch, error) {
	if n := len(r.Epochs); n > 0 {
		return r.Epochs[n-1], nil
	}
	members := make([]epoch.Member, len(r.Genesis))
	for i, g := range r.Genesis {
		members[i] = epoch.Member{ID: RegionID(g.Name, r.FirstGeneration()), Amount: uint64(g.Weight)}
	}
	return epoch.Shared(members)
}

// EpochHeader is what a leader adds to a change of regions: what the epoch that
// follows has beside its content.
type EpochHeader struct {
	ID epoch.ID `json:"id"`
	// Pred is the greatest epoch that is settled, as the leader knows.
	Pred    epoch.ID           `json:"pred"`
	Retired []epoch.Retirement `json:"retired,omitempty"`
}

// header returns the header of the next epoch. A retirement stays until it is
// settled.
func (r *Rights) header(newest *epoch.Epoch) EpochHeader {
	n := r.node
	h := EpochHeader{
		ID:   epoch.ID{Stamp: max(hlc.New(n.wall, 0), newest.ID.Stamp.Next()), Proposer: uint64(n.address)},
		Pred: r.settled,
	}
	if r.settled.Before(newest.ID) {
		h.Retired = slices.Clone(newest.Retired)
	}
	return h
}

// stampRegion completes a change of a region, at the leader.
func (r *Rights) stampRegion(c RegionChange) (*RegionChange, error) {
	n := r.node
	newest, err := n.record.Newest()
	if err != nil {
		return nil, err
	}
	c.Epoch = r.header(&newest)
	g := n.record.Region(c.Name)
	switch {
	case c.Op == AddRegion:
		c.Founders, c.Horizon = r.durable(c.Name), n.cfg.DaemonHorizon.Milliseconds()
	case c.Op == RemoveRegion && g != nil && c.Stopped:
		if heard, ok := r.heard[c.Name]; c.Name == n.cfg.Region || ok && n.at-heard < removeAfter {
			return nil, fmt.Errorf("region %q: a daemon of it was heard in the last %v: stop all of them first", c.Name, removeAfter)
		}
		from := n.wall + 2*n.cfg.MaxOffset.Milliseconds() + endAhead
		c.Epoch.Retired = append(c.Epoch.Retired, epoch.Retirement{ID: g.ID(), From: from})
		slices.SortFunc(c.Epoch.Retired, compareRetirements)
		c.Epoch.Retired = slices.CompactFunc(c.Epoch.Retired, func(a, b epoch.Retirement) bool { return a.ID == b.ID })
	}
	return &c, nil
}

func compareRetirements(a, b epoch.Retirement) int {
	switch {
	case a.ID < b.ID:
		return -1
	case a.ID > b.ID:
		return 1
	}
	return 0
}

// durable returns the ids of the daemons of a region with a disk that are
// heard, in order, at most as many as an epoch has members.
func (r *Rights) durable(region string) []ID {
	n := r.node
	var all []ID
	if n.cfg.Durable && n.cfg.Region == region {
		all = append(all, n.self.id())
	}
	for _, p := range n.peers {
		if p.Region == region && p.heardAt >= 0 && p.sender.Durable && !n.Dead(p.sender.ID) {
			all = append(all, p.sender.ID)
		}
	}
	slices.SortFunc(all, ID.Compare)
	all = slices.Compact(all)
	return all[:min(len(all), epoch.MaxMembers)]
}

// changeEpoch adds the epoch that follows a change of a region, and sets the
// weights of the regions to it.
func (r *Record) changeEpoch(c *RegionChange, id uint64, newest *epoch.Epoch) error {
	var next epoch.Epoch
	switch c.Op {
	case RemoveRegion:
		next = newest.Without(id)
	case DrainRegion:
		next = newest.With(id, 0)
	default:
		next = newest.With(id, uint64(c.Weight))
	}
	next.ID, next.Pred = c.Epoch.ID, c.Epoch.Pred
	next.Retired = slices.DeleteFunc(slices.Clone(c.Epoch.Retired), func(d epoch.Retirement) bool { return next.Has(d.ID) })
	for i := range r.Regions {
		g := &r.Regions[i]
		g.Weight = uint32(next.AmountOf(math.MaxUint64, g.ID()))
	}
	return r.addEpoch(&next)
}

// addEpoch adds an epoch of the regions of the record, with their weights.
func (r *Record) addEpoch(e *epoch.Epoch) error {
	newest, err := r.Newest()
	if err != nil {
		return err
	}
	if err := e.Validate(); err != nil {
		return err
	}
	switch {
	case !newest.ID.Before(e.ID):
		return fmt.Errorf("epoch %s: want one above %s", e.ID, newest.ID)
	case e.Horizon != 0 || len(e.Members) != len(r.Regions):
		return fmt.Errorf("epoch %s with %d members and a horizon of %d ms: want the %d regions, and none", e.ID, len(e.Members), e.Horizon, len(r.Regions))
	}
	for i := range r.Regions {
		g := &r.Regions[i]
		k := slices.IndexFunc(e.Members, func(m epoch.Member) bool { return m.ID == g.ID() })
		if k < 0 || e.Members[k].Amount != uint64(g.Weight) {
			return fmt.Errorf("epoch %s: want region %q with its weight of %d", e.ID, g.Name, g.Weight)
		}
	}
	r.Epochs = append(slices.Clone(r.Epochs), *e)
	first, size := len(r.Epochs)-1, 0
	for first > 0 && len(r.Epochs)-first < maxEpochs {
		if size += epochSize(&r.Epochs[first-1]); size > maxEpochBytes {
			break
		}
		first--
	}
	r.Epochs = r.Epochs[first:]
	return nil
}

// epochSize returns about the bytes of an epoch in its JSON form.
func epochSize(e *epoch.Epoch) int {
	return 128 + 64*len(e.Members) + 64*len(e.Retired) + len(e.Rules)*(48+8*len(e.Members))
}

// validateEpochs returns an error if the parts of the record about rights break
// an invariant.
func (r *Record) validateEpochs() error {
	if len(r.Genesis) == 0 || len(r.Genesis) > MaxRegions || len(r.Epochs) > maxEpochs {
		return fmt.Errorf("%d regions at the founding and %d epochs: want 1 to %d and at most %d", len(r.Genesis), len(r.Epochs), MaxRegions, maxEpochs)
	}
	newest, err := r.Newest()
	if err != nil {
		return err
	}
	for i := range r.Epochs {
		if err := r.Epochs[i].Validate(); err != nil {
			return err
		}
		if i > 0 && !r.Epochs[i-1].ID.Before(r.Epochs[i].ID) {
			return fmt.Errorf("epoch %s at place %d: want them in order, each once", r.Epochs[i].ID, i)
		}
	}
	for i := range r.Regions {
		g := &r.Regions[i]
		if newest.AmountOf(math.MaxUint64, g.ID()) != uint64(g.Weight) || g.Horizon < 0 || len(g.Founders) > epoch.MaxMembers {
			return fmt.Errorf("region %q: weight %d, horizon %d, %d founders: want the weight of the newest epoch", g.Name, g.Weight, g.Horizon, len(g.Founders))
		}
		for j := 1; j < len(g.Founders); j++ {
			if g.Founders[j-1].Compare(g.Founders[j]) >= 0 {
				return fmt.Errorf("region %q: founder %v: want them in order, each once", g.Name, g.Founders[j])
			}
		}
	}
	return nil
}

// Rights is the part of a Node in rights: what its daemon states about them,
// and what a leader needs for entries about regions.
type Rights struct {
	node    *Node
	holds   Version  // of the daemon, as stored
	settled epoch.ID // see Settled
	// heard is when a daemon of each region sent its latest message.
	heard map[string]time.Duration
	known []Heard // the latest one last
}

// RightsOf returns the part of a node in rights.
func RightsOf(n *Node) *Rights { return &n.rights }

// Settled sets the greatest epoch of regions that is settled, as the rights
// agent of this daemon knows. The leader names it as the predecessor of the
// epochs that follow changes of regions.
func (r *Rights) Settled(id epoch.ID) { r.settled = id }

// Hold states that this daemon has a record of rights of a generation of its
// region on disk, and reports whether that is on the disk of the control log:
// not before may the daemon hold any of these rights.
func (r *Rights) Hold(generation Version) bool {
	n := r.node
	if n.self.Holds != generation {
		n.self.Holds = generation
		self := n.self
		n.queue(stored{Self: &self})
		n.afterStore(func() {
			if n.self.Holds == generation {
				r.holds = generation
			}
		})
	}
	return r.holds == generation
}

// Holds returns the generation of the latest Hold.
func (r *Rights) Holds() Version { return r.node.self.Holds }

// Heard is a daemon that sent messages: its id, name and region.
type Heard struct {
	ID           ID
	Name, Region string
}

// String returns the id.
func (h Heard) String() string { return h.ID.String() }

// maxKnown bounds the daemons that are remembered.
const maxKnown = 1_024

// note notes a message of a live daemon. fresh is its first one under its id.
func (r *Rights) note(p *peer, fresh bool) {
	if _, known := r.heard[p.Region]; known || len(r.heard) < 2*MaxRegions {
		r.heard[p.Region] = r.node.at
	}
	if !fresh {
		return
	}
	h := Heard{p.sender.ID, p.Name, p.Region}
	if i := slices.Index(r.known, h); i >= 0 {
		r.known = slices.Delete(r.known, i, i+1)
	} else if len(r.known) >= maxKnown {
		r.known = slices.Delete(r.known, 0, 1)
	}
	r.known = append(r.known, h)
}

// Stopped returns the ids that daemons of a name had, as far as they sent
// messages to this one, and are neither live now nor dead by the record.
func (r *Rights) Stopped(name string) []Heard {
	var all []Heard
	for _, h := range r.known {
		if h.Name == name && r.node.byID(h.ID) == nil && h.ID != r.node.self.id() && !r.node.Dead(h.ID) {
			all = append(all, h)
		}
	}
	return all
}

// Renew gives the daemon a new id, since a part of its state is lost. Its
// former id is declared dead.
func (r *Rights) Renew(why string) { r.node.runs.end(r.node.self.id(), why) }
