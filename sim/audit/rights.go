package audit

import (
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// rightsAuditor checks that rights are conserved. The allotments of all chains
// of processes that ever ran, dead ones included, sum to at most the total of a
// window, and so do those of all generations of regions. A daemon and its clone
// that nobody can notice count once: see copies. No chain uses more than its
// allotment, with the transfers that its processes received and without those
// that they gave. Transfers are read from messages.
type rightsAuditor struct {
	finding
	rows  map[allotmentKey]*allotments
	swept int // rows when they were last swept
	moved map[accountKey]*moved
	// chains are the processes of each chain that has more than one.
	chains  map[uint64][]*process
	first   map[uint64]*process // the process of each chain that asked first
	copies  copies
	cluster control.Number // that began last
}

// allotmentKey names the rights of a window. total separates answers about
// one window in several units, as a bucket has them. A total of 0 stands for
// all of them together.
type allotmentKey struct {
	rule     uint64
	window   int64
	region   int
	byRegion bool
	total    uint64
}

// allotments are the greatest answers about a window, by chain or generation.
type allotments struct {
	amounts  map[uint64]uint64
	sum      uint64
	total    uint64
	answered time.Duration
}

// accountKey names a process's account of a key's window.
type accountKey struct {
	key         crdt.Key
	window      int64
	incarnation crdt.Incarnation
}

// moved is the rights that a process gave and received.
type moved struct {
	given, received uint64
	from            map[crdt.Incarnation]uint64 // rights received of each process
	end             int64
}

// Rows without an answer for keepRows are dropped, when there are sweepRows.
const (
	keepRows  = time.Hour
	sweepRows = 1 << 16
)

func rights(a *sim.Auditor, t *truth) {
	r := &rightsAuditor{
		finding: finding{a, t}, rows: make(map[allotmentKey]*allotments),
		moved: make(map[accountKey]*moved), chains: make(map[uint64][]*process), first: make(map[uint64]*process),
		copies: newCopies(t),
	}
	a.Allotted, a.Stepped, a.Decided, a.Controlled = r.allotted, r.stepped, r.decided, r.controlled
}

func (a *rightsAuditor) allotted(o *sim.Allotted) {
	k := allotmentKey{o.Rule, o.Window, o.Region, o.ByRegion, o.Total}
	if o.ByRegion {
		k.region = 0
	} else {
		a.join(o)
		a.copies.note(o.Daemon)
		a.note(k, o)
		k.total = 0
	}
	a.note(k, o)
}

// join notes the process of an answer in its chain.
func (a *rightsAuditor) join(o *sim.Allotted) {
	p := a.up[o.Daemon.Index]
	switch first := a.first[o.Holder]; {
	case p == first:
	case first == nil:
		a.first[o.Holder] = p
	case len(a.chains[o.Holder]) == 0:
		a.chains[o.Holder] = []*process{first, p}
	case !slices.Contains(a.chains[o.Holder], p):
		a.chains[o.Holder] = append(a.chains[o.Holder], p)
	}
}

// note keeps an answer, and checks the sum when it is the holder's greatest.
func (a *rightsAuditor) note(k allotmentKey, o *sim.Allotted) {
	a.sweepRows()
	row := recordOf(a.rows, k)
	row.answered, row.total = a.world.Now(), max(row.total, o.Total)
	was := row.amounts[o.Holder]
	if o.Amount <= was {
		return
	}
	if row.amounts == nil {
		row.amounts = make(map[uint64]uint64)
	}
	row.amounts[o.Holder] = o.Amount
	if !k.byRegion {
		was = max(was, a.copies.greatest(o.Holder, row.amounts))
	}
	row.sum = sat.Add(row.sum, o.Amount-min(o.Amount, was))
	a.check(row.sum <= row.total, "the allotment of %s in window %d makes %d of %d",
		o.Daemon.Name, o.Window, row.sum, row.total)
}

// controlled drops the windows that had not begun, by its clock, when a daemon
// began another cluster, as all disks were lost: nobody knows of a clock that
// was ahead before.
func (a *rightsAuditor) controlled(d *sim.Daemon, r *control.Ready) {
	is := d.ControlLog().Record()
	begun := func(e control.Event) bool { return e.Kind == control.Begun }
	if is == nil || !slices.ContainsFunc(r.Events, begun) {
		return
	}
	if a.cluster != 0 && a.cluster != is.Cluster.ID {
		wall := d.Instant(a.world.Now()).Wall / int64(time.Millisecond)
		maps.DeleteFunc(a.rows, func(k allotmentKey, _ *allotments) bool { return k.window > wall })
	}
	a.cluster = is.Cluster.ID
}

func (a *rightsAuditor) sweepRows() {
	if len(a.rows) < max(sweepRows, 2*a.swept) {
		return
	}
	now := a.world.Now()
	maps.DeleteFunc(a.rows, func(_ allotmentKey, row *allotments) bool { return now-row.answered > keepRows })
	a.swept = len(a.rows)
}

// stepped reads the transfers of a message.
func (a *rightsAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	a.copies.note(d)
	if m == nil || err != nil {
		return
	}
	for i := range m.Cells {
		if c := &m.Cells[i]; c.Kind == gossip.Given && c.Incarnation == m.To {
			a.transfer(c, m.From)
		}
	}
}

func (a *rightsAuditor) transfer(c *gossip.Cell, from crdt.Incarnation) {
	donor, requester := a.account(c, from), a.account(c, c.Incarnation)
	more := c.Value.P - min(c.Value.P, requester.from[from])
	if more == 0 {
		return
	}
	if len(a.moved) > sweepAfter {
		a.sweepTransfers(a.slowest())
	}
	if requester.from == nil {
		requester.from = make(map[crdt.Incarnation]uint64)
	}
	requester.from[from] += more
	donor.given = sat.Add(donor.given, more)
	requester.received = sat.Add(requester.received, more)
}

// account returns the account of a process in the window of a cell.
func (a *rightsAuditor) account(c *gossip.Cell, of crdt.Incarnation) *moved {
	m := recordOf(a.moved, accountKey{c.Key, c.Window, of})
	m.end = max(m.end, c.End(c.Window))
	return m
}

// sweepTransfers drops windows that are over by every clock.
func (a *rightsAuditor) sweepTransfers(slowest int64) {
	maps.DeleteFunc(a.moved, func(_ accountKey, m *moved) bool { return m.end+keepWindows < slowest })
}

// decided checks the rights that a chain used of a window.
func (a *rightsAuditor) decided(d *sim.Decided) {
	e, l := &a.entry, d.Limit
	if !a.world.Config().Policy.HasRights() || !a.checkable(d) || e.window == nil || e.admitted == 0 || e.free > 0 || !l.HasRights() ||
		l.Homed() || isOverride(d) || e.counter.overridden || e.counter.unsure || !quota.Of(l).Windowed() {
		return
	}
	k := allotmentKey{rule: d.Rule.Shared(), window: e.window.start, region: -1}
	if l.Scope == rules.Region {
		k.region = d.Daemon.RegionIndex
	}
	allotment := uint64(0)
	if row := a.rows[k]; row != nil {
		allotment = row.amounts[d.Daemon.Chain()]
	}
	chain := d.Daemon.Chain()
	used, given, received := a.part(d.Key, e.window, e.process, chain)
	spent := float64(used) + float64(given)
	if prev := e.prev(l); prev != nil {
		u, g, r := a.part(d.Key, prev, e.process, chain)
		spent += float64(u+g-min(u+g, r)) * e.left(l) / float64(l.Window())
	}
	if !a.ok(spent <= (float64(allotment)+float64(received))*(1+1e-12)) {
		a.fail("%s used %.6g of %s in window %d (%d admitted, %d given): its allotment is %d and it received %d",
			d.Daemon.Name, spent, sim.RuleName(d.Rule), e.window.start, used, given, allotment, received)
	}
}

// part returns the hits that the chain of a process admitted by rights in a
// window, and the rights that it gave and received. on_failure admits others,
// and so did owners under a rule before.
func (a *rightsAuditor) part(k crdt.Key, w *window, of *process, chain uint64) (used, given, received uint64) {
	all := a.chains[chain]
	if all == nil {
		all = []*process{of}
	}
	for _, p := range all {
		if c := w.count(p.index); c != nil {
			used = sat.Add(used, c.admitted-min(c.admitted, c.free))
		}
		if m := a.moved[accountKey{k, w.start, p.incarnation}]; m != nil {
			given, received = sat.Add(given, m.given), sat.Add(received, m.received)
		}
	}
	return used, given, received
}
