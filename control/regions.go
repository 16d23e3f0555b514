package control

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

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
	// Rebalancer is the author of epochs that follow the demand.
	Rebalancer = "rebalancer"
	// maxAhead bounds how far the clock of a daemon was ahead that is stated to
	// be stopped, in milliseconds.
	maxAhead = 24 * 60 * 60 * 1_000
)

// RegionChange adds, weighs, drains or removes a region.
type RegionChange struct {
	Op   RegionOp `json:"op"`
	Name string   `json:"name"`
	// Weight is the new weight in parts per million, of AddRegion and
	// WeighRegion.
	Weight uint32 `json:"weight,omitempty"`
	// Stopped is the operator's statement that no daemon of the region runs, of
	// RemoveRegion. Without it, the region must drain, and the others get its
	// rights only if its daemons acknowledge the epoch. Of AddRegion, it is the
	// statement that no daemon decides any more as part of a generation that
	// was removed without it.
	Stopped bool `json:"stopped,omitempty"`
	// Force allows a change although a region cannot be reached that must
	// acknowledge it: nobody holds what it gives up until it is back.
	Force bool `json:"force,omitempty"`

	// The daemon that submits the command, and the leader, set the rest. Stated
	// is when an operator stated a region to be stopped, End from when it then
	// holds nothing, and Until when no window is left that it used before, in
	// Unix milliseconds. With Dropped, End is when founders use nothing yet.
	Stated int64 `json:"stated,omitempty"`
	End    int64 `json:"end,omitempty"`
	Until  int64 `json:"until,omitempty"`
	// Layout is the greatest layout of strict keys that any daemon is known to
	// have.
	Layout uint64 `json:"layout,omitempty"`
	// Epoch is the header of the epoch that follows.
	Epoch EpochHeader `json:"epoch,omitzero"`
	// Founders and Horizon are those of the generation that AddRegion begins.
	Founders []ID  `json:"founders,omitempty"`
	Horizon  int64 `json:"horizon,omitempty"`
	// Dropped is the addition that a recovery dropped and AddRegion repeats.
	Dropped *Command `json:"dropped,omitempty"`
}

// RegionOp is the operation of a RegionChange.
type RegionOp string

// The operations on regions.
const (
	// AddRegion adds a region. The weights of the others shrink in proportion.
	AddRegion RegionOp = "add"
	// WeighRegion sets the weight of a region. Those of the others change in
	// proportion.
	WeighRegion RegionOp = "weight"
	// DrainRegion gives the weight of a region to the others.
	DrainRegion RegionOp = "drain"
	// RemoveRegion ends the generation of a region.
	RemoveRegion RegionOp = "remove"
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
func (x *Rights) header(newest *epoch.Epoch) EpochHeader {
	n := x.node
	h := EpochHeader{
		ID:   epoch.ID{Stamp: max(hlc.New(n.wall, 0), newest.ID.Stamp.Next()), Proposer: uint64(n.address)},
		Pred: x.settled,
	}
	if x.settled.Before(newest.ID) {
		h.Retired = slices.Clone(newest.Retired)
	}
	return h
}

// stampRegion completes a change of a region, at the leader.
func (x *Rights) stampRegion(c RegionChange) (*RegionChange, error) {
	n := x.node
	newest, err := n.record.Newest()
	if err != nil {
		return nil, err
	}
	c.Epoch = x.header(&newest)
	g := n.record.Region(c.Name)
	if c.Dropped != nil {
		return x.repeated(&c)
	}
	if c.Op == AddRegion {
		c.Founders, c.Horizon = x.durable(c.Name), n.cfg.DaemonHorizon.Milliseconds()
		if err := x.onlyWitnesses(&c); err != nil {
			return nil, err
		}
	}
	if c.Stopped {
		if err := x.fresh(c.Stated); err != nil {
			return nil, err
		}
		c.End = max(c.End, x.endOf(x.knownIn(c.Name)...))
		c.Until = n.outlasted(c.End)
		c.Layout = n.layouts.greatest(n.layouts.daemons())
	}
	switch {
	case c.Op != RemoveRegion:
		return &c, x.reachesAll(&c)
	case g == nil || !c.Stopped && !g.Draining:
		return &c, nil // the record refuses it
	}
	end := c.End
	if !c.Stopped {
		if !x.drained(g.ID()) {
			return nil, fmt.Errorf("region %q drains, and not all regions have acknowledged that yet: wait", c.Name)
		}
		end = n.wall
	} else if err := x.heardBy(c.Name); err != nil {
		return nil, err
	}
	c.Epoch.Retired = append(c.Epoch.Retired, epoch.Retirement{ID: g.ID(), From: end})
	if c.Stopped { // also what recoveries dropped, and nobody could repeat
		c.Epoch.Retired = append(c.Epoch.Retired, n.record.droppedRegions(c.Name, end)...)
	}
	slices.SortFunc(c.Epoch.Retired, compareRetirements)
	c.Epoch.Retired = slices.CompactFunc(c.Epoch.Retired, func(a, b epoch.Retirement) bool { return a.ID == b.ID })
	return &c, nil
}

// fresh returns an error for a statement of an operator that is old: what was
// stopped may run again.
func (x *Rights) fresh(stated int64) error {
	n := x.node
	if age := n.wall - stated; max(age, -age) > n.cfg.RemoveAfter.Milliseconds() {
		return fmt.Errorf("that it is stopped was stated %d s ago: state it again", age/1_000)
	}
	return nil
}

// reachesAll returns an error if a region must acknowledge a change and cannot
// be reached.
func (x *Rights) reachesAll(c *RegionChange) error {
	n := x.node
	for _, g := range n.record.Regions {
		at, ok := x.heard[g.Name]
		if !c.Force && g.Name != n.cfg.Region && (!ok || n.at-at >= n.cfg.patience(len(n.peers))) {
			return fmt.Errorf("region %q cannot be reached, and must acknowledge the change: wait for it, remove it, or use --force", g.Name)
		}
	}
	return nil
}

func compareRetirements(a, b epoch.Retirement) int { return cmp.Compare(a.ID, b.ID) }

// durable returns the ids of the live daemons of a region with a disk, in
// order, at most as many as an epoch has members. Witnesses hold no rights.
func (x *Rights) durable(region string) []ID {
	n := x.node
	var all []ID
	if n.cfg.Durable && !n.cfg.Witness && !n.leaving && n.cfg.Region == region {
		all = append(all, n.self.id())
	}
	for _, p := range n.peers {
		if p.Region == region && x.stays(p) && p.sender.Durable && !p.sender.Witness && !n.Dead(p.sender.ID) {
			all = append(all, p.sender.ID)
		}
	}
	slices.SortFunc(all, ID.Compare)
	all = slices.Compact(all)
	return all[:min(len(all), epoch.MaxMembers)]
}

// changeRegion makes the change of an entry.
func (r *Record) changeRegion(c *RegionChange) error {
	g := r.Region(c.Name)
	made := r.Version
	if c.Dropped != nil {
		if err := r.drop(c.Dropped); err != nil || g != nil {
			return err
		}
		made = c.Dropped.Version
	}
	switch {
	case c.Op == AddRegion && g != nil:
		return fmt.Errorf("region %q is there already", c.Name)
	case c.Op != AddRegion && g == nil:
		return fmt.Errorf("region %q is not known: the regions are %s", c.Name, strings.Join(r.names(), ", "))
	case (c.Op == AddRegion || c.Op == WeighRegion) && (c.Weight == 0 || c.Weight >= Whole):
		return fmt.Errorf("region %q with a weight of %d parts per million: want 1 to %d", c.Name, c.Weight, Whole-1)
	}
	newest, err := r.Newest()
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(r.Regions, func(o Region) bool { return o.Name != c.Name && !o.Draining })
	r.Regions = slices.Clone(r.Regions)
	next, id := *c, uint64(0)
	if g := r.Region(c.Name); g != nil {
		id = g.ID()
	}
	switch c.Op {
	case AddRegion:
		if len(c.Founders) == 0 {
			return fmt.Errorf("no daemon of region %q with a disk is heard: start one first", c.Name)
		}
		from, err := r.restart(c)
		switch {
		case err != nil && c.Dropped != nil:
			return nil // as with a region of the name
		case err != nil:
			return err
		case c.Dropped != nil:
			from = max(from, c.End)
		}
		g := Region{Name: c.Name, Generation: made, Founders: c.Founders, Horizon: c.Horizon, From: from}
		r.Regions, id = append(r.Regions, g), g.ID()
		slices.SortFunc(r.Regions, func(a, b Region) int { return cmp.Compare(a.Name, b.Name) })
	case WeighRegion:
		r.Region(c.Name).Draining = false
	case DrainRegion:
		r.Region(c.Name).Draining = true
	case RemoveRegion:
		r.Regions = slices.DeleteFunc(r.Regions, func(g Region) bool { return g.Name == c.Name })
	default:
		return fmt.Errorf("operation %q on a region: want %s, %s, %s or %s", c.Op, AddRegion, WeighRegion, DrainRegion, RemoveRegion)
	}
	switch {
	case others:
	case c.Op == DrainRegion, c.Op == RemoveRegion:
		return fmt.Errorf("region %q is the last one that takes calls", c.Name)
	default:
		next.Weight = Whole
	}
	if c.Op == RemoveRegion && !c.Stopped && !g.Draining {
		return fmt.Errorf("region %q takes calls: drain it first, or state that all its daemons are stopped", c.Name)
	}
	if l := r.Layouts.Newest(); c.Op == RemoveRegion && !c.Stopped && l != nil && l.Region(c.Name) != nil {
		return fmt.Errorf("region %q still has strict voters: wait until the others have its strict keys", c.Name)
	}
	if c.Op == RemoveRegion {
		if err := r.endRegion(c); err != nil {
			return err
		}
		if c.Stopped && r.Layouts.Newest() != nil {
			if err := r.Layouts.lose(LostVoters{c.Name, c.Layout, c.End, c.Until}); err != nil {
				return err
			}
		}
	}
	return r.changeEpoch(&next, id, &newest)
}

func (r *Record) names() []string {
	all := make([]string, len(r.Regions))
	for i := range r.Regions {
		all[i] = r.Regions[i].Name
	}
	return all
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
	r.spareDraining(&next)
	for i := range r.Regions {
		g := &r.Regions[i]
		g.Weight = uint32(weightIn(&next, g.ID()))
	}
	return r.addEpoch(&next)
}

// weightIn returns the amount of a participant for rules without shares of
// their own, 0 if it is no member.
func weightIn(e *epoch.Epoch, id uint64) uint64 {
	all := epoch.Epoch{Members: e.Members}
	return all.AmountOf(0, id)
}

// spareDraining moves what the scaling gave to draining regions to the first
// other one: where all others had nothing, it shares evenly.
func (r *Record) spareDraining(e *epoch.Epoch) {
	draining := func(m epoch.Member) bool {
		return slices.ContainsFunc(r.Regions, func(g Region) bool { return g.Draining && g.ID() == m.ID })
	}
	to := slices.IndexFunc(e.Members, func(m epoch.Member) bool { return !draining(m) })
	for k, m := range e.Members {
		if to < 0 || !draining(m) {
			continue
		}
		e.Members[to].Amount += m.Amount
		e.Members[k].Amount = 0
		for _, rule := range e.Rules {
			rule.Shares[to] += rule.Shares[k]
			rule.Shares[k] = 0
		}
	}
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
		if g.Draining && slices.ContainsFunc(e.Rules, func(rule epoch.RuleShares) bool { return rule.Shares[k] > 0 }) {
			return fmt.Errorf("epoch %s: region %q drains, and has a share of a rule: want none", e.ID, g.Name)
		}
	}
	for _, d := range newest.Retired {
		if e.Pred.Before(newest.ID) && !slices.Contains(e.Retired, d) {
			return fmt.Errorf("epoch %s: want the retirement of %016x from %d on, which is not settled", e.ID, d.ID, d.From)
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
		if weightIn(&newest, g.ID()) != uint64(g.Weight) || !newest.Has(g.ID()) || g.Horizon < 0 || len(g.Founders) > epoch.MaxMembers {
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

// Settled sets the greatest epoch of regions that is settled, as the rights
// agent of this daemon knows. The leader names it as the predecessor of the
// epochs that follow changes of regions.
func (x *Rights) Settled(id epoch.ID) { x.settled = id }

// Holding identifies a record of rights that a daemon has on disk.
type Holding struct {
	// Generation is that of the region.
	Generation Version `json:"generation,omitzero"`
	// Number ascends with each record of the daemon in this generation.
	Number uint64 `json:"number,omitempty"`
}

// covers reports whether a record is as late as another one.
func (h Holding) covers(o Holding) bool { return h.Generation == o.Generation && h.Number >= o.Number }

// Hold states that this daemon has a record of rights on disk, and reports
// whether that is on the disk of the control log: not before may the daemon use
// the record, or send anything that depends on it. Each statement is a write of
// the control log, so other daemons notice a disk without it.
func (x *Rights) Hold(h Holding) bool {
	n := x.node
	if !n.self.Holds.covers(h) {
		n.self.Holds = h
		self := n.self
		n.queue(stored{Self: &self})
		n.afterStore(func() {
			if n.self.Holds.covers(h) {
				x.holds = h
			}
		})
	}
	return x.holds.covers(h)
}

// Holds returns the latest record of Hold: an earlier one is of no use any
// more.
func (x *Rights) Holds() Holding { return x.node.self.Holds }

// Renew gives the daemon a new id, since a part of its state is lost. Its
// former id is declared dead.
func (x *Rights) Renew(why string) { x.node.runs.end(x.node.self.id(), why) }
