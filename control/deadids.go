package control

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/quota/epoch"
)

// MaxDeadIDs bounds the dead ids of a record.
const MaxDeadIDs = 512

// MaxEnded bounds the ended regions of a record.
const MaxEnded = 4 * MaxRegions

// DeadID is an id that ended: its disk was lost, or copied, or is older than it
// was. Nobody counts its messages. It may be the half of an id, with zeros for
// the rest, where no daemon knows more. From and Until are Unix milliseconds.
type DeadID struct {
	ID ID `json:"id"`
	// From is when it holds nothing any more: in windows that start then or
	// later.
	From int64 `json:"from"`
	// Until is when the record drops it: no window that it may have held rights
	// in is left.
	Until int64 `json:"until"`
	// Name is the name of the daemon, for people; empty if it is not known.
	Name string `json:"name,omitempty"`
	// Stopped is an operator's statement that the daemon does not run. It is
	// refused while the daemon is heard.
	Stopped bool `json:"stopped,omitempty"`
	// Stated is when it was stated, in Unix milliseconds.
	Stated int64 `json:"stated,omitempty"`
}

// stampDead completes the entry of a dead id, at the leader.
func (x *Rights) stampDead(d DeadID) (*DeadID, error) {
	n := x.node
	d.ID = x.whole(d.ID)
	k := x.known[d.ID]
	if d.Stopped {
		if err := cmp.Or(x.runs(&d), x.fresh(d.Stated)); err != nil {
			return nil, err
		}
	}
	d.Name = cmp.Or(d.Name, k.name)
	d.From = max(d.From, x.endOf(k))
	d.Until = n.outlasted(d.From)
	return &d, nil
}

// runs returns an error for a daemon that may run: its messages arrived a short
// time ago, or it is live by membership, which asks other daemons, too. It may
// be live under a name whose id is not known here.
func (x *Rights) runs(d *DeadID) error {
	n := x.node
	k, known := x.known[d.ID]
	if d.ID == n.self.id() || known && n.at-k.at < n.cfg.RemoveAfter {
		return fmt.Errorf("daemon %s was heard in the last %v: stop it first", cmp.Or(k.name, n.cfg.Name), n.cfg.RemoveAfter)
	}
	for _, p := range n.peers {
		at, heard := x.heard[p.Region]
		switch {
		case p.Region != n.cfg.Region && (!heard || n.at-at >= n.cfg.RemoveAfter): // nobody of the region removes members
		case p.sender.ID == d.ID:
			return fmt.Errorf("daemon %s is live, as other daemons hear it: stop it first", p.Name)
		case p.heardAt < 0 && p.Name == cmp.Or(k.name, d.Name):
			return fmt.Errorf("a daemon %s is live, and %s does not know its id yet: stop it first, or try again", p.Name, n.cfg.Name)
		}
	}
	return nil
}

// Rights is the part of a Node in rights: what its daemon states about them,
// and what it remembers of others since it started.
type Rights struct {
	node *Node
	// heard is when a daemon of each region sent its latest message, and known
	// are all daemons that did.
	heard map[string]time.Duration
	known map[ID]known
	// gone is when this daemon learned that a region was removed as stopped.
	gone map[string]time.Duration
	// settled is the greatest epoch of regions that is, see Settled, and holds
	// the record of Hold that is stored.
	settled epoch.ID
	holds   Holding
}

// RightsOf returns the part of a node in rights.
func RightsOf(n *Node) *Rights { return &n.rights }

// known is what a daemon remembers of another one, also when that is not live
// any more.
type known struct {
	name, region string
	at           time.Duration // of its latest message
	// clock is its greatest clock in a message in Unix milliseconds, and ahead
	// how far it was before the one here.
	clock, ahead int64
}

// remember notes the sender of a message.
func (x *Rights) remember(p *peer) {
	n := x.node
	if _, is := x.heard[p.Region]; is || len(x.heard) < 2*MaxRegions {
		x.heard[p.Region] = n.at
	}
	id := p.sender.ID
	k, is := x.known[id]
	if !is && len(x.known) >= maxWritten {
		delete(x.known, slices.MinFunc(slices.SortedFunc(maps.Keys(x.known), ID.Compare), func(a, b ID) int {
			return cmp.Compare(x.known[a].at, x.known[b].at)
		}))
	}
	ahead := min(p.sender.Clock-n.wall, maxAhead)
	x.known[id] = known{p.Name, p.Region, n.at, max(k.clock, min(p.sender.Clock, n.wall+maxAhead)), max(k.ahead, ahead)}
}

// follow notes the regions that the next record does not have any more, and
// whose daemons were stated to be stopped.
func (x *Rights) follow(next *Record) {
	n := x.node
	if n.record == nil {
		return
	}
	maps.DeleteFunc(x.gone, func(name string, at time.Duration) bool {
		return next.Region(name) != nil || n.at-at >= n.cfg.longestPatience()
	})
	for i := range n.record.Regions {
		if name := n.record.Regions[i].Name; next.Region(name) == nil && next.stopped(name) {
			x.gone[name] = n.at
		}
	}
}

// stays reports whether a peer is live with the id of its latest message, and
// does not leave. A daemon that was stopped with its region, or that started
// again since, may have lost that id with its disk: a region with such a
// founder would wait for it.
func (x *Rights) stays(p *peer) bool {
	at, gone := x.gone[p.Region]
	if !isLive(x.node, p) || p.sender.Leaving || gone && p.heardAt <= at {
		return false
	}
	return !slices.ContainsFunc(x.node.peers, func(o *peer) bool {
		return o != p && o.Name == p.Name && o.Region == p.Region && max(o.metAt, o.heardAt) > p.heardAt
	})
}

// knownIn returns the known daemons of a region, in no order.
func (x *Rights) knownIn(region string) []known {
	var all []known
	for _, k := range x.known {
		if k.region == region {
			all = append(all, k)
		}
	}
	return all
}

// heardBy returns an error if a daemon of a region was heard by any daemon a
// short time ago, or if a daemon that was heard itself has not stated that for
// the present regions. Membership does not count: the daemons of a region that
// is lost stay members.
func (x *Rights) heardBy(region string) error {
	n := x.node
	by, unknown := "", ""
	if at, ok := x.heard[region]; region == n.cfg.Region || ok && n.at-at < n.cfg.RemoveAfter {
		by = n.cfg.Name
	}
	names := n.record.names()
	i, list := slices.Index(names, region), listOf(names)
	for _, p := range n.peers {
		switch {
		case p.heardAt < 0 || n.at-p.heardAt >= n.cfg.RemoveAfter:
		case p.sender.HeardOf != list:
			unknown = cmp.Or(unknown, p.Name)
		case uint64(p.sender.Heard)>>i&1 == 1:
			by = cmp.Or(by, p.Name)
		}
	}
	switch {
	case by != "":
		return fmt.Errorf("region %q: %s heard a daemon of it in the last %v: stop all of them first", region, by, n.cfg.RemoveAfter)
	case unknown != "":
		return fmt.Errorf("region %q: %s has not stated yet for the present regions whether it hears it: try again", region, unknown)
	}
	return nil
}

// heardRegions returns a bit for each region of the record that this daemon
// heard a short time ago, in their order, and listOf these regions.
func (x *Rights) heardRegions() (mask, list Number) {
	n := x.node
	if n.record == nil {
		return 0, 0
	}
	names := n.record.names()
	for i, name := range names {
		if at, ok := x.heard[name]; name == n.cfg.Region || ok && n.at-at < n.cfg.RemoveAfter {
			mask |= 1 << i
		}
	}
	return mask, listOf(names)
}

// listOf returns a hash of the names of regions, never 0.
func listOf(names []string) Number { return Number(max(1, rendezvous.Hash(names...))) }

// endOf returns from when daemons hold nothing that an operator states to be
// stopped: their clocks may have been ahead of the one here.
func (x *Rights) endOf(all ...known) int64 {
	n := x.node
	end := n.wall
	for _, k := range all {
		end = max(end, k.clock, n.wall+k.ahead)
	}
	return min(end, n.wall+maxAhead) + 2*n.cfg.MaxOffset.Milliseconds()
}

// estimateEnd sets the end of what an operator states to be stopped, as far as
// this daemon knows.
func (x *Rights) estimateEnd(c *Change) {
	switch {
	case c.Region != nil && c.Region.Stopped:
		next := *c.Region
		next.Stated, next.End = x.node.wall, x.endOf(x.knownIn(next.Name)...)
		c.Region = &next
	case c.Layouts != nil && c.Layouts.Recover != nil:
		next := *c.Layouts.Recover
		next.Stated, next.From = x.node.wall, x.endOf(x.knownIn(next.Region)...)
		c.Layouts = &LayoutChange{Recover: &next}
	case c.Dead != nil:
		next := *c.Dead
		next.Name = cmp.Or(next.Name, x.known[next.ID].name)
		next.Stated, next.From = x.node.wall, x.endOf(x.known[next.ID])
		c.Dead = &next
	}
}

// DeadID returns the entry of a dead id, or of its half, nil for none.
func (r *Record) DeadID(d ID) *DeadID { return cmp.Or(r.deadAs(d), r.deadAs(d.half())) }

// deadAs returns the entry that names exactly an id, nil for none.
func (r *Record) deadAs(d ID) *DeadID {
	i, ok := slices.BinarySearchFunc(r.Dead, d, func(e DeadID, d ID) int { return e.ID.Compare(d) })
	if !ok {
		return nil
	}
	return &r.Dead[i]
}

// end adds a dead id.
func (r *Record) end(d *DeadID) error {
	switch {
	case r.deadAs(d.ID) != nil:
		return fmt.Errorf("the id %s is dead already", d.ID.text())
	case len(r.Dead) >= MaxDeadIDs:
		return fmt.Errorf("%d ids are dead: want at most %d: the record drops the next one at %s", len(r.Dead), MaxDeadIDs, stamped(r.nextDrop()))
	}
	r.Dead = append(slices.Clone(r.Dead), *d)
	slices.SortFunc(r.Dead, func(a, b DeadID) int { return a.ID.Compare(b.ID) })
	return nil
}

// dropDead drops the dead ids whose windows are over at a time.
func (r *Record) dropDead(at int64) {
	over := func(d DeadID) bool { return d.Until <= at }
	if slices.ContainsFunc(r.Dead, over) {
		r.Dead = slices.DeleteFunc(slices.Clone(r.Dead), over)
	}
}

// nextDrop returns the least Until.
func (r *Record) nextDrop() int64 {
	return slices.MinFunc(r.Dead, func(a, b DeadID) int { return cmp.Compare(a.Until, b.Until) }).Until
}

// validateDead returns an error if the dead ids break an invariant.
func (r *Record) validateDead() error {
	if len(r.Dead) > MaxDeadIDs {
		return fmt.Errorf("%d dead ids: want at most %d", len(r.Dead), MaxDeadIDs)
	}
	for i, d := range r.Dead {
		if i > 0 && r.Dead[i-1].ID.Compare(d.ID) >= 0 {
			return fmt.Errorf("dead id %v at place %d: want them in order, each once", d.ID, i)
		}
		if d.Until < d.From {
			return fmt.Errorf("dead id %v from %d until %d: want an end after the beginning", d.ID, d.From, d.Until)
		}
	}
	return nil
}

// describe returns the text of the entry.
func (d *DeadID) describe() string {
	return fmt.Sprintf("the id %s%s is dead: it holds nothing from %s on", d.ID.text(), of(d.Name), stamped(d.From))
}

// of returns the text of the daemon that has an id.
func of(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// stamped returns the text of a time in Unix milliseconds.
func stamped(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

// request returns the number of the command that declares the id dead, the same
// at every daemon: it is done once however many ask for it.
func (d *DeadID) request() Number {
	sum := sha256.Sum256(append([]byte("rld dead id\x00"), d.ID[:]...))
	return Number(binary.BigEndian.Uint64(sum[:]) | 1)
}

// Dead reports whether an id is dead, by the record or as far as this daemon
// has seen: nobody may count what such a daemon acknowledges, votes or grants.
func (n *Node) Dead(d ID) bool {
	_, here := n.runs.dead[d]
	return here || n.record != nil && n.record.DeadID(d) != nil
}

// Ended is a notice to a daemon whose id is dead.
type Ended struct {
	ID     ID     `json:"id"`
	Reason string `json:"reason"`
}

// giveUp gives the daemon a new id: its own is dead. It drops the items and
// messages of its voter that are not stored or sent yet.
func (r *runs) giveUp(why string) {
	n := r.node
	n.events.Add(OldDisk, "", why)
	if n.former == (ID{}) {
		n.former = n.self.id()
	}
	n.raft, n.stopped = nil, nil
	clear(r.doubts) // the proofs are for the former id
	n.self, n.disk.number, n.disk.began = storedSelf{Key: n.keys.next(), Run: n.self.Run}, 0, 0
	n.rights.holds = Holding{}
	promises := func(m Message) bool { return m.Raft != nil || m.Founding != nil }
	n.out = slices.DeleteFunc(n.out, promises)
	for _, b := range []*batch{n.disk.flight, &n.disk.next} {
		if b != nil {
			b.items = slices.DeleteFunc(b.items, func(s stored) bool { return s.ofVoter() || s.Self != nil })
			b.messages = slices.DeleteFunc(b.messages, promises)
		}
	}
	self := n.self
	n.queue(stored{Self: &self}) // which ends the voter
	n.confirmation.begin()
}

// EndedRegion is the end of a region that the record does not have any more: a
// later generation may not use what it used of limits of the region alone.
type EndedRegion struct {
	Name string `json:"name"`
	// End is the first window that no daemon of it uses, in Unix milliseconds,
	// 0 for a region that was removed while daemons of it ran: nobody knows
	// when the last of them learns it.
	End int64 `json:"end,omitempty"`
	// Until is when the record drops it: no window that it used is left. With
	// an End of 0 it stays.
	Until int64 `json:"until,omitempty"`
}

// endRegion notes the end of a region.
func (r *Record) endRegion(c *RegionChange) error {
	if len(r.Ended) >= MaxEnded {
		return fmt.Errorf("%d regions have ended: want at most %d: %s", len(r.Ended), MaxEnded, r.nextEnded())
	}
	r.Ended = append(slices.Clone(r.Ended), EndedRegion{Name: c.Name, End: c.End, Until: c.Until})
	slices.SortFunc(r.Ended, func(a, b EndedRegion) int { return cmp.Compare(a.Name, b.Name) })
	r.Voters = slices.Clone(r.Voters)
	for i := range r.Voters {
		if o := &r.Voters[i]; o.Region == c.Name {
			o.Former = true
		}
	}
	return nil
}

// stopped reports whether a region ended by the statement that its daemons are
// stopped.
func (r *Record) stopped(region string) bool {
	return slices.ContainsFunc(r.Ended, func(e EndedRegion) bool { return e.Name == region && e.End > 0 })
}

// nextEnded returns the text of how the record gets room for another end: that
// of a region whose daemons ran stays until they are stated to be stopped.
func (r *Record) nextEnded() string {
	if i := slices.IndexFunc(r.Ended, func(e EndedRegion) bool { return e.End == 0 }); i >= 0 {
		name := r.Ended[i].Name
		return fmt.Sprintf("add %q again, and remove it, both with --stopped: its daemons ran at its end", name)
	}
	next := slices.MinFunc(r.Ended, func(a, b EndedRegion) int { return cmp.Compare(a.Until, b.Until) })
	return fmt.Sprintf("the record drops that of region %q at %s", next.Name, stamped(next.Until))
}

// drained reports whether a region holds nothing under the greatest epoch that
// is settled and under all later ones. Then nobody need wait for its daemons:
// these drop their rights as soon as they learn that the region is removed, and
// acknowledge nothing any more.
func (x *Rights) drained(id uint64) bool {
	settled := false
	for i := range x.node.record.Epochs {
		e := &x.node.record.Epochs[i]
		if e.ID.Before(x.settled) {
			continue
		}
		settled = settled || e.ID == x.settled
		if weightIn(e, id) > 0 || slices.ContainsFunc(e.Rules, func(r epoch.RuleShares) bool { return e.AmountOf(r.Rule, id) > 0 }) {
			return false
		}
	}
	return settled
}

// restart returns from when a region that is added may use limits of its own,
// and forgets the end of its former generation.
func (r *Record) restart(c *RegionChange) (from int64, err error) {
	i := slices.IndexFunc(r.Ended, func(e EndedRegion) bool { return e.Name == c.Name })
	if i < 0 {
		return 0, nil
	}
	if r.Ended[i].End == 0 && !c.Stopped {
		return 0, fmt.Errorf("region %q was removed while daemons of it ran: state with --stopped that all of these are stopped, or know that it was removed", c.Name)
	}
	from = max(r.Ended[i].End, c.End)
	r.Ended = slices.Delete(slices.Clone(r.Ended), i, i+1)
	return from, nil
}

// dropEnded drops the ends of regions whose windows are over at a time.
func (r *Record) dropEnded(at int64) {
	over := func(e EndedRegion) bool { return e.End > 0 && e.Until <= at }
	if slices.ContainsFunc(r.Ended, over) {
		r.Ended = slices.DeleteFunc(slices.Clone(r.Ended), over)
	}
}

// validateEnded returns an error if the ends of regions break an invariant.
func (r *Record) validateEnded() error {
	if len(r.Ended) > MaxEnded {
		return fmt.Errorf("%d ended regions: want at most %d", len(r.Ended), MaxEnded)
	}
	for i, e := range r.Ended {
		if i > 0 && r.Ended[i-1].Name >= e.Name || r.Region(e.Name) != nil || e.Until < e.End {
			return fmt.Errorf("end of region %q at place %d: want regions that are not there, in order, each once", e.Name, i)
		}
	}
	return nil
}

// outlasted returns when no window is left that was used before a time, in Unix
// milliseconds.
func (n *Node) outlasted(end int64) int64 {
	return end + n.cfg.Longest.Milliseconds() + 2*n.cfg.MaxOffset.Milliseconds()
}
