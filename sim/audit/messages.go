package audit

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// messageAuditor checks the messages that replicas accepted. The sender is or
// was a process, and sent the message before it arrived. The cells are in
// order, consistent, and the sender's to send. Cells of a region or a daemon do
// not leave it.
type messageAuditor struct {
	finding
	regions []crdt.Incarnation // of the regions' sums
	// nodeLocal of the rule of the latest cell, as of a number of sets.
	rule  uint64
	sets  int
	local bool
}

func messages(a *sim.Auditor, t *truth) {
	m := &messageAuditor{finding: finding{a, t}}
	for _, r := range t.world.Regions() {
		m.regions = append(m.regions, gossip.RegionIncarnation(r))
	}
	a.Stepped = m.stepped
}

func (a *messageAuditor) stepped(d *sim.Daemon, m *gossip.Message, err error) {
	if m == nil || err != nil {
		return
	}
	from := a.from(m)
	if !a.ok(from != nil) {
		a.fail("%s accepted a message of %v, which never started", d.Name, m.From)
		return
	}
	if !a.ok(from.sentAt(m.Nonce) <= a.world.Now()) {
		a.fail("%s accepted a message of %s that was sent at %v", d.Name, from.name(), from.sentAt(m.Nonce))
		return
	}
	across := from.region != d.RegionIndex
	for i := range m.Cells {
		if fault := a.fault(d, from, m, i, across); fault != "" {
			a.fail("in a message of %s to %s %v %s", from.name(), d.Name, m.Cells[i], fault)
			return // the first one is enough
		}
	}
	a.Pass(1)
}

// disordered reports whether the last cell comes before one of those before it,
// or is one of them. The windows of a key have no order: frames have the
// numbers of their descriptions. Sums come in the order of the daemons that
// name their regions. Short keys come before the others.
func (a *messageAuditor) disordered(to *sim.Daemon, from *process, cells []gossip.Cell) bool {
	named := func(c *gossip.Cell) gossip.CellID {
		id := c.CellID
		if id.Kind == gossip.RegionSum && id.Incarnation == a.regions[from.region] {
			id.Incarnation = from.incarnation
		} else if id.Kind == gossip.RegionSum && id.Incarnation == a.regions[to.RegionIndex] {
			id.Incarnation = a.up[to.Index].incarnation
		}
		return id
	}
	last := len(cells) - 1
	id := named(&cells[last])
	for i := last - 1; i >= 0; i-- {
		b := named(&cells[i])
		if b.Kind == id.Kind && b.Incarnation == id.Incarnation && cells[i].Short != cells[last].Short {
			return !cells[i].Short
		}
		twice := b == id
		b.Window = id.Window
		if order := b.Compare(id); order != 0 || twice {
			return order > 0 || twice
		}
	}
	return false
}

// fault returns the fault of a cell, "" for none, of a message that may come
// from across regions.
func (a *messageAuditor) fault(d *sim.Daemon, from *process, m *gossip.Message, i int, across bool) string {
	c := &m.Cells[i]
	switch {
	case a.disordered(d, from, m.Cells[:i+1]):
		return "is out of order"
	case c.Value.N > c.Value.P || c.WindowLength < 1 || c.Carry < 0:
		return "is inconsistent"
	case c.Kind == gossip.Given && c.Incarnation != m.To:
		return "is a transfer to another process"
	case c.Kind == gossip.Given && across && !c.Regional:
		return ""
	case c.Kind == gossip.Transferred && c.Incarnation != m.From || c.Kind > gossip.MaxKind:
		return "is not the sender's to send"
	case c.Kind == gossip.Others && c.Incarnation != m.To:
		return "is for another process"
	case across && (c.Kind != gossip.RegionSum || c.Regional):
		return "left its region"
	case across && c.Incarnation != a.regions[from.region] && c.Incarnation != a.regions[d.RegionIndex]:
		return "is of a third region"
	case a.nodeLocal(c):
		return "is of a daemon alone"
	}
	return ""
}

// nodeLocal reports whether the rule of a cell had scope node in every set.
func (a *messageAuditor) nodeLocal(c *gossip.Cell) bool {
	sets := a.world.Sets()
	if c.Rule == a.rule && len(sets) == a.sets {
		return a.local
	}
	a.rule, a.sets, a.local = c.Rule, len(sets), false
	for _, set := range sets {
		if r := set.FindShared(c.Rule); r != nil {
			if a.local = r.Limit.Scope == rules.NodeLocal; !a.local {
				break
			}
		}
	}
	return a.local
}
