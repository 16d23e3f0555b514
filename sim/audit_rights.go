package sim

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Holder is an auditor that also hears of rights: Held is called when a process
// answers for the first time to hold as much of a label; sum is what all
// processes ever answered of it, each its greatest, and total what of.
type Holder interface {
	Held(w *World, d *Daemon, window int64, sum, total uint64)
}

// rightsAuditor sees to it that rights are never more than there are. All
// processes that ever ran, dead ones too, hold together at most the total of a
// label; and no process uses more than it holds, with what others gave it and
// without what it gave: what was given is taken from the messages that arrived.
type rightsAuditor struct {
	watcher
	given  map[giftKey]uint64
	byLife map[lifeKey]*trade // of windows
}

var _ Holder = (*rightsAuditor)(nil)

// giftKey names what one process gave another of a key's label.
type giftKey struct {
	key      crdt.Key
	window   int64
	from, to crdt.Incarnation
}

// lifeKey names a process's part in a key's label.
type lifeKey struct {
	key         crdt.Key
	window      int64
	incarnation crdt.Incarnation
}

// trade is what a process gave and was given.
type trade struct {
	given, received uint64
	end             int64
}

func newRightsAuditor(b *books) *rightsAuditor {
	return &rightsAuditor{
		watcher: newWatcher("rights", b), given: make(map[giftKey]uint64), byLife: make(map[lifeKey]*trade),
	}
}

// Held checks the sum of a label.
func (a *rightsAuditor) Held(w *World, d *Daemon, window int64, sum, total uint64) {
	if sum > total {
		a.failed(w, "%s holds of label %d what makes %d of %d", d.Name, window, sum, total)
		return
	}
	a.passed(1)
}

// Stepped takes in gifts that arrived.
func (a *rightsAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	if m == nil || err != nil {
		return
	}
	for i := range m.Cells {
		if c := &m.Cells[i]; c.Kind == gossip.Given && c.Incarnation == m.To {
			a.gift(w, c, m.From)
		}
	}
}

func (a *rightsAuditor) gift(w *World, c *gossip.Cell, from crdt.Incarnation) {
	k := giftKey{c.Key, c.Window, from, c.Incarnation}
	more := c.Value.P - min(c.Value.P, a.given[k])
	if more == 0 {
		return
	}
	if len(a.given) > sweepAfter {
		a.sweep(a.books.clocks.slowest(w))
	}
	a.given[k] = c.Value.P
	end := c.CellMeta.End(c.Window)
	giver, taker := a.trade(lifeKey{c.Key, c.Window, from}, end), a.trade(lifeKey{c.Key, c.Window, c.Incarnation}, end)
	giver.given = sat.Add(giver.given, more)
	taker.received = sat.Add(taker.received, more)
}

func (a *rightsAuditor) trade(k lifeKey, end int64) *trade {
	t := a.byLife[k]
	if t == nil {
		t = &trade{}
		a.byLife[k] = t
	}
	t.end = max(t.end, end)
	return t
}

// sweep forgets labels that are over for everybody.
func (a *rightsAuditor) sweep(slowest int64) {
	for k, t := range a.byLife {
		if t.end+keepPages < slowest {
			delete(a.byLife, k)
		}
	}
	for k := range a.given {
		if a.byLife[lifeKey{k.key, k.window, k.to}] == nil {
			delete(a.given, k)
		}
	}
}

// Decided checks what a process used of a window.
func (a *rightsAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	e, l := &a.books.entry, d.Limit
	if !w.cfg.Policy.hasRights() || e.book == nil || e.page == nil || e.admitted == 0 || !counted(l) ||
		!l.HasRights() || l.Homed() || d.Rule == nil || d.Rule.Limit != l || e.book.degraded ||
		!quota.Of(l).Windowed() {
		return
	}
	region := -1
	if l.Scope == rules.Region {
		region = d.Daemon.RegionIndex
	}
	base := w.holdings.base(holdingKey{node.SharedRule(d.Rule), e.page.window, region, 0}, d.Daemon.member)
	used, given, received := a.part(d.Key, e.page, e.writer)
	spent := float64(used) + float64(given)
	if prev := e.prev(l); prev != nil {
		u, g, r := a.part(d.Key, prev, e.writer)
		net := u + g - min(u+g, r)
		left := float64(e.page.window + l.Window() - e.now)
		spent += float64(net) * left / float64(l.Window())
	}
	if spent > (float64(base)+float64(received))*(1+1e-12) {
		a.failed(w, "%s used %.6g of %s under %d (%d admitted, %d given): it held %d and was given %d",
			d.Daemon.Name, spent, RuleName(d.Rule), e.page.window, used, given, base, received)
		return
	}
	a.passed(1)
}

// part is what a process admitted under a label, gave and was given of it.
func (a *rightsAuditor) part(k crdt.Key, p *page, by *writer) (used, given, received uint64) {
	if s := p.incarnation(by.index); s != nil {
		used = s.admitted
	}
	if t := a.byLife[lifeKey{k, p.window, by.incarnation}]; t != nil {
		given, received = t.given, t.received
	}
	return used, given, received
}
