package audit

import (
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// cellAuditor compares the cells of a replica with the ground truth now and
// then: the more cells there are, the more seldom.
//
//   - It holds of each process, and of each region, no more than was counted
//     there. Counts that a region restores of lost incarnations may count once
//     more for each time that it restores.
//   - It holds all its own counts, and those of a regional peer up to the age
//     that it states for its view.
//   - From one look to the next no cell of a live window shrinks or goes.
//   - When a process leaves and its counts are acknowledged, the regional peers
//     of which it receives messages hold them all.
type cellAuditor struct {
	finding
	wait    int // inputs until the next look
	regions map[crdt.Incarnation]int
	lost    map[crdt.Incarnation]int
	last    map[place][]gossip.Cell  // the latest look
	room    []gossip.Cell            // memory for the next look
	refused map[[2]int]bool          // pairs of processes of which one refused cells of the other
	resyncs map[[2]int]time.Duration // when a process started to send all cells to another
	doubts  []doubt
}

// doubt is a violation unless a refusal explains it. Auditors see the events of
// an input after its effect, at the same instant.
type doubt struct {
	at    time.Duration
	pair  [2]int // of refused
	cell  gossip.Cell
	least crdt.PN
}

// place is a shard of a process.
type place struct{ process, shard int }

// leastWait is the least number of inputs from one look to the next.
const leastWait = 64

func cells(a *sim.Auditor, t *truth) {
	c := &cellAuditor{
		finding: finding{a, t}, regions: make(map[crdt.Incarnation]int), lost: make(map[crdt.Incarnation]int),
		last: make(map[place][]gossip.Cell), refused: make(map[[2]int]bool), resyncs: make(map[[2]int]time.Duration),
	}
	for i, r := range t.world.Regions() {
		c.regions[gossip.RegionIncarnation(r)], c.lost[gossip.LostIncarnation(r)] = i, i
	}
	a.Stepped, a.Happened, a.Left = c.stepped, c.happened, c.left
	a.Ended = func(bool) { c.settle() }
}

func (a *cellAuditor) happened(d *sim.Daemon, e gossip.Event) {
	to, from := a.up[d.Index], a.byIncarnation[e.Peer]
	switch {
	case to == nil || from == nil:
	case e.Kind == gossip.CellRefused:
		a.refused[[2]int{to.index, from.index}] = true
	case e.Kind == gossip.ResyncStarted:
		a.resyncs[[2]int{to.index, from.index}] = a.world.Now()
	}
}

// settle reports the doubts that no refusal has explained.
func (a *cellAuditor) settle() {
	for _, d := range a.doubts {
		if !a.ok(a.refused[d.pair]) {
			to, of := a.processes[d.pair[0]], a.processes[d.pair[1]]
			a.Fail(d.at, "%s holds %v, and states to know %d and %d that %s counted and refunded",
				to.name(), d.cell, d.least.P, d.least.N, of.name())
		}
	}
	a.doubts = a.doubts[:0]
}

func (a *cellAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	if len(a.doubts) > 0 && a.doubts[0].at < a.world.Now() {
		a.settle()
	}
	a.wait--
	p := a.up[d.Index]
	if a.wait > 0 || m == nil || err != nil || p == nil {
		return
	}
	held := d.Nodes[m.Shard].Cells(d.Instant(a.world.Now()), a.room)
	a.wait = max(leastWait, 4*(len(held)+len(a.all)))
	a.look(p, m.Shard, held)
}

// look checks the cells that a process holds in a shard.
func (a *cellAuditor) look(p *process, shard int, held []gossip.Cell) {
	for i := range held {
		c := &held[i]
		if most, known := a.most(c); known {
			if !a.ok(c.Value.P <= most.P && c.Value.N <= min(most.N, c.Value.P)) {
				a.fail("%s holds %v, and %d were counted and %d refunded", p.name(), *c, most.P, most.N)
			}
		}
	}
	k := place{p.index, shard}
	a.compare(p, a.last[k], held, a.world.Now().Milliseconds()+p.ahead[shard])
	a.room, a.last[k] = a.last[k], held
	a.least(p, shard, held)
}

// most returns the most that a cell may hold, false when that is not known.
func (a *cellAuditor) most(c *gossip.Cell) (crdt.PN, bool) {
	if !c.Kind.Counts() {
		return crdt.PN{}, false // rights
	}
	if c.Kind == gossip.Others {
		return a.mostOfOthers(c)
	}
	region, sum := a.regions[c.Incarnation]
	sum = sum && c.Kind == gossip.RegionSum
	if !sum {
		region, sum = a.lost[c.Incarnation]
		sum = sum && c.Kind == gossip.Daemon
	}
	if sum {
		n, known := a.charged(c, region, nil)
		times := 1 + a.restored[region].times
		return crdt.PN{P: n.P * times, N: n.N * times}, known
	}
	p := a.byIncarnation[c.Incarnation]
	if p == nil || c.Kind != gossip.Daemon {
		return crdt.PN{}, true // of nobody
	}
	return a.charged(c, p.region, p)
}

// mostOfOthers returns the most that all processes but one may have counted.
func (a *cellAuditor) mostOfOthers(c *gossip.Cell) (most crdt.PN, known bool) {
	known = true
	add := func(region int, only *process, times uint64) {
		n, ok := a.charged(c, region, only)
		most.P, most.N, known = most.P+n.P*times, most.N+n.N*times, known && ok
	}
	for region := range a.world.Regions() {
		add(region, nil, 1+a.restored[region].times)
	}
	if p := a.byIncarnation[c.Incarnation]; p != nil && known {
		own, _ := a.charged(c, p.region, p)
		most.P -= own.P
	}
	return most, known
}

// charged returns the hits that the processes of a region, or only one of them,
// counted and refunded in the window of a cell, under any scope. It returns
// false when the ground truth may have dropped the window.
func (t *truth) charged(cell *gossip.Cell, region int, only *process) (crdt.PN, bool) {
	n, found := crdt.PN{}, false
	add := func(domain int) {
		c := t.counters[counterKey{cell.Key, domain}]
		if c == nil {
			return
		}
		if w := c.window(cell.Window); w != nil {
			found = true
			for i := range w.counts {
				if p := t.processes[w.counts[i].process]; p.region == region && (only == nil || only == p) {
					n.P += w.counts[i].charged
					n.N += w.counts[i].refunded
				}
			}
		}
	}
	add(everywhere)
	add(region)
	if t.rescopes {
		for _, d := range t.world.Daemons() {
			if d.RegionIndex == region {
				add(sim.MaxRegions + d.Index)
			}
		}
	}
	return n, found || t.forgotten == math.MinInt64 || cell.End(cell.Window) > t.forgotten && !t.owes(cell)
}

// owes reports whether a rule of a cell carries debt: the ground truth drops
// its windows at their ends, and replicas keep them while there is a debt.
func (t *truth) owes(cell *gossip.Cell) bool {
	return slices.ContainsFunc(t.world.Sets(), func(s *rules.Set) bool {
		r := s.FindShared(cell.Rule)
		return r != nil && r.Limit.CarryDebt
	})
}

// compare checks that no cell of a live window shrank or went.
func (a *cellAuditor) compare(p *process, was, is []gossip.Cell, now int64) {
	for i := range was {
		old := &was[i]
		for len(is) > 0 && is[0].Compare(old.CellID) < 0 {
			is = is[1:]
		}
		if old.End(old.Window) > now {
			there := len(is) > 0 && is[0].CellID == old.CellID
			if !a.ok(there && grew(old, &is[0])) {
				a.fail("%s held %v, of a window that ends at %d, and then less",
					p.name(), *old, old.End(old.Window))
			}
		}
	}
}

// grew reports whether a cell is at least its former value.
func grew(was, is *gossip.Cell) bool {
	if is.Carry < was.Carry {
		return false
	}
	if is.Kind == gossip.RegionSum || is.Kind == gossip.Others {
		return crdt.Sum(is.Value).Compare(crdt.Sum(was.Value)) >= 0
	}
	return is.Value.P >= was.Value.P && is.Value.N >= was.Value.N
}

// least checks that a process holds its own counts, and those of its regional
// peers up to the age that it states.
func (a *cellAuditor) least(p *process, shard int, held []gossip.Cell) {
	now := a.world.Now()
	until := slices.Repeat([]time.Duration{unknown}, len(a.processes))
	until[p.index] = now + 1
	for l := range p.daemon.Nodes[shard].Links(p.daemon.Instant(now)) {
		o := a.byIncarnation[l.Peer.ID]
		if o != nil && o.up && o.region == p.region && l.Unsent >= 0 && !a.refused[[2]int{p.index, o.index}] {
			until[o.index] = now - l.Unsent
			if until[o.index] <= a.resyncs[[2]int{o.index, p.index}] { // it may keep other keys since then
				until[o.index] = unknown
			}
		}
	}
	a.holds(p, shard, held, until)
}

// left checks that a process that leaves has handed its counts over, and notes
// the peers that got them.
func (a *cellAuditor) left(d *sim.Daemon, since time.Duration) {
	p, now := a.up[d.Index], a.world.Now()
	if p == nil || a.noRoom {
		return
	}
	p.left = since
	for l := range d.Nodes[0].Links(d.Instant(now)) {
		o := a.byIncarnation[l.Peer.ID]
		if o == nil || !o.up || o.region != p.region || a.refused[[2]int{o.index, p.index}] || !hears(d, l.Peer.ID, now) {
			continue
		}
		p.heirs = append(p.heirs, o)
		until := slices.Repeat([]time.Duration{unknown}, len(a.processes))
		until[p.index] = since
		for s, n := range o.daemon.Nodes {
			a.holds(o, s, n.Cells(o.daemon.Instant(now), nil), until)
		}
	}
}

// hears reports whether all shards of a daemon receive from a peer.
func hears(d *sim.Daemon, peer crdt.Incarnation, now time.Duration) bool {
	for _, n := range d.Nodes {
		heard := false
		for l := range n.Links(d.Instant(now)) {
			heard = heard || l.Peer.ID == peer && !l.Silent && l.Age >= 0
		}
		if !heard {
			return false
		}
	}
	return true
}

// holds checks that a process holds the counts of others up to some times, by
// the numbers of their processes.
func (a *cellAuditor) holds(p *process, shard int, held []gossip.Cell, until []time.Duration) {
	now := a.world.Now()
	// Where a window is over by the fastest clock, its cells may be gone.
	fastest := now.Milliseconds() + a.truth.most
	for _, c := range a.all {
		if c.rescoped || node.ShardOf(c.key, len(p.daemon.Nodes)) != shard || c.domain != everywhere && c.domain != p.region {
			continue
		}
		for _, w := range c.windows {
			if w.least <= fastest || w.unsure {
				continue
			}
			for i := range w.counts {
				if k := &w.counts[i]; until[k.process] != unknown {
					at := until[k.process]
					a.hold(p, a.processes[k.process], c, w, crdt.PN{P: before(k.steps, at), N: before(k.backs, at)}, held)
				}
			}
		}
	}
}

// hold checks that a process holds at least so much of another one's count.
func (a *cellAuditor) hold(p, of *process, c *counter, w *window, least crdt.PN, held []gossip.Cell) {
	if least.P == 0 {
		return
	}
	id := gossip.CellID{Key: c.key, Window: w.start, Kind: gossip.Daemon, Incarnation: of.incarnation}
	if of != p && !(keeps(p.daemon, id) && keptBy(of.daemon, id, p)) {
		return
	}
	has := valueOf(held, id)
	if !a.ok(has.P >= least.P && has.N >= least.N) {
		a.doubts = append(a.doubts, doubt{a.world.Now(), [2]int{p.index, of.index}, gossip.Cell{CellID: id, Value: has}, least})
	}
}

// keeps reports whether a daemon keeps a cell.
func keeps(d *sim.Daemon, c gossip.CellID) bool {
	return node.Keeps(d.Nodes[node.ShardOf(c.Key, len(d.Nodes))], c)
}

// keptBy reports whether a process keeps a cell, in the view of a daemon.
func keptBy(d *sim.Daemon, c gossip.CellID, p *process) bool {
	return len(d.Nodes) == 0 || node.KeptBy(d.Nodes[node.ShardOf(c.Key, len(d.Nodes))], c, p.incarnation)
}

// valueOf returns the value of a cell, 0 for none. The cells are in order.
func valueOf(cells []gossip.Cell, id gossip.CellID) crdt.PN {
	i, ok := slices.BinarySearchFunc(cells, id, func(c gossip.Cell, id gossip.CellID) int { return c.Compare(id) })
	if !ok {
		return crdt.PN{}
	}
	return cells[i].Value
}
