package sim

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
)

// messagesAuditor reads what travels: a message names an incarnation that is
// or was there and was sent before it came; its cells are in order, whole and
// the sender's to tell; what must not leave a region or a daemon does not. And
// a replica never takes its view of a peer for younger than it is.
type messagesAuditor struct {
	watcher
	incarnations []crdt.Incarnation // of the regions' sums, by region
	count        uint64
}

// linksEvery is how many messages pass from one look at the links to the next.
const linksEvery = 64

func newMessagesAuditor(b *books) *messagesAuditor {
	return &messagesAuditor{watcher: newWatcher("messages", b)}
}

// Stepped reads a message that was taken.
func (a *messagesAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	if m == nil || err != nil {
		return
	}
	if a.incarnations == nil {
		for _, r := range w.Regions() {
			a.incarnations = append(a.incarnations, gossip.RegionIncarnation(r))
		}
	}
	from := a.books.writers.byIncarnation[m.From]
	switch {
	case from == nil:
		a.failed(w, "%s took a message of %v, which never was there", d.Name, m.From)
		return
	case from.sentAt(m.Nonce) > w.Now():
		a.failed(w, "%s took a message of %s that was sent at %v", d.Name, from.daemon.Name, from.sentAt(m.Nonce))
	default:
		a.passed(1)
	}
	a.cells(w, d, from, m)
	if a.count++; a.count%linksEvery == 0 {
		a.links(w, d, m.Shard)
	}
}

// cells checks the cells of a message; the first that is wrong is enough.
func (a *messagesAuditor) cells(w *World, d *Daemon, from *writer, m *gossip.Message) {
	for i := range m.Cells {
		c := &m.Cells[i]
		reason := ""
		switch {
		case i > 0 && m.Cells[i-1].Compare(c.CellID) >= 0:
			reason = "is out of order"
		case c.Value.N > c.Value.P || c.WindowLength < 1 || c.Carry < 0:
			reason = "makes no sense"
		case c.Kind == gossip.Given && c.Incarnation != m.To:
			reason = "is what somebody else was given"
		case c.Kind == gossip.Given && from.region != d.RegionIndex && !c.Regional:
			continue
		case c.Kind == gossip.Transferred && c.Incarnation != m.From || c.Kind > gossip.MaxKind:
			reason = "is not its sender's to tell"
		case from.region != d.RegionIndex && (c.Kind != gossip.RegionSum || c.Regional):
			reason = "left its region"
		case from.region != d.RegionIndex && c.Incarnation != a.incarnations[from.region] && c.Incarnation != a.incarnations[d.RegionIndex]:
			reason = "is a third region's, passed on"
		case a.nodeLocal(w, c):
			reason = "is one daemon's own"
		}
		if reason != "" {
			a.failed(w, "in a message of %s to %s %v %s", from.daemon.Name, d.Name, *c, reason)
			return
		}
	}
	a.passed(1)
}

// nodeLocal reports whether a cell's rule has always been one daemon's own.
func (a *messagesAuditor) nodeLocal(w *World, c *gossip.Cell) bool {
	found := false
	for i := range w.sets {
		r := sharedRule(w.sets[i].set, c.Rule)
		if r == nil || r.Limit == nil {
			continue
		}
		if r.Limit.Scope != rules.NodeLocal {
			return false
		}
		found = true
	}
	return found
}

// links holds the ages a replica states against those that messages had.
func (a *messagesAuditor) links(w *World, d *Daemon, shard int) {
	b := a.books
	is := b.writers.of(d)
	for _, l := range d.Nodes[shard].Links(d.Instant(w.Now())) {
		x := b.writers.byIncarnation[l.Peer.ID]
		if l.Age < 0 || x == nil || is == nil {
			continue
		}
		e := b.hearing.ears[earKey{is.index, x.index, shard}]
		c, ok := e.before(w.Now() + 1)
		switch {
		case !ok:
			a.failed(w, "%s says it knows of %s as of %v ago, and was never told all", d.Name, l.Peer.Name, l.Age)
		case l.Age < w.Now()-e.sent || l.Unsent < w.Now()-c.until:
			a.failed(w, "%s says its view of %s is %v old, increments %v; it is %v and %v",
				d.Name, l.Peer.Name, l.Age, l.Unsent, w.Now()-e.sent, w.Now()-c.until)
		default:
			a.passed(1)
		}
	}
}
