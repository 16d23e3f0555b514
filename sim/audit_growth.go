package sim

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// growthAuditor sees to it that joins are inflationary: from one look to the
// next no cell of a live label shrinks or goes, whatever digests, repairs,
// sweeps and memberships do.
type growthAuditor struct{ watcher }

func newGrowthAuditor(b *books) *growthAuditor { return &growthAuditor{newWatcher("growth", b)} }

// Stepped compares two looks at the same replica now and then.
func (a *growthAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	s := a.books.look(w, d, m, err)
	if s == nil || !s.again {
		return
	}
	now := a.books.living(s)
	is := s.cells
	for i := range s.was {
		old := &s.was[i]
		for len(is) > 0 && is[0].Compare(old.CellID) < 0 {
			is = is[1:]
		}
		switch {
		case old.End(old.Window) <= now:
		case len(is) == 0 || is[0].CellID != old.CellID:
			a.failed(w, "%s dropped %v, of a label that lives until %d", d.Name, *old, old.End(old.Window))
		case !grew(old, &is[0]):
			a.failed(w, "%s held %v and holds %v now", d.Name, *old, is[0])
		default:
			a.passed(1)
		}
	}
}

// grew reports whether a cell is at least what it was.
func grew(was, is *gossip.Cell) bool {
	if is.Carry < was.Carry {
		return false
	}
	if is.Kind == gossip.RegionSum {
		return crdt.Sum(is.Value).Compare(crdt.Sum(was.Value)) >= 0
	}
	return is.Value.P >= was.Value.P && is.Value.N >= was.Value.N
}
