package sim

import (
	"time"

	"github.com/georld/rld/gossip"
)

// inventedAuditor sees to it that no replica holds more for anybody than that
// one counted: a daemon's cell at most its charged hits, a region's sum at
// most those of its daemons. What a region restores of incarnations that it
// took for forgotten counts once more should they come back, in its sum too.
// A sum that holds it twice may be restored in its turn: each time that a
// region restores anything, it counts its daemons' hits at most once more.
type inventedAuditor struct {
	watcher
	regions  map[gossip.CellID]int // slots of regions, nothing else set
	lost     map[gossip.CellID]int
	restored [MaxRegions]restored
}

// restored is how often a region restored counts, and when last: all that is
// restored at one instant goes back to what was told before.
type restored struct {
	times uint64
	last  time.Duration
}

func newInventedAuditor(b *books) *inventedAuditor {
	return &inventedAuditor{
		watcher: newWatcher("invented", b),
		regions: make(map[gossip.CellID]int), lost: make(map[gossip.CellID]int),
	}
}

// Restarted learns the regions' slots.
func (a *inventedAuditor) Restarted(w *World, d *Daemon) {
	a.watcher.Restarted(w, d)
	a.regions[gossip.CellID{Incarnation: gossip.RegionIncarnation(d.Region)}] = d.RegionIndex
	a.lost[gossip.CellID{Incarnation: gossip.LostIncarnation(d.Region)}] = d.RegionIndex
}

// Stepped looks at cells now and then.
func (a *inventedAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	if s := a.books.look(w, d, m, err); s != nil {
		for i := range s.cells {
			a.check(w, s, &s.cells[i])
		}
	}
}

// Happened counts how often a region restored.
func (a *inventedAuditor) Happened(w *World, d *Daemon, e gossip.Event) {
	a.watcher.Happened(w, d, e)
	r := &a.restored[d.RegionIndex]
	if e.Kind == gossip.CountsRestored && (r.times == 0 || r.last != w.Now()) {
		r.times, r.last = r.times+1, w.Now()
	}
}

func (a *inventedAuditor) check(w *World, s *sample, c *gossip.Cell) {
	truth, known := a.truth(c)
	switch {
	case !known:
	case c.Value.P > truth || c.Value.N > c.Value.P:
		a.failed(w, "%s holds %v, and that is %d in truth", s.daemon.Name, *c, truth)
	default:
		a.passed(1)
	}
}

// truth returns what at most a cell may hold, false when that is not known.
func (a *inventedAuditor) truth(c *gossip.Cell) (uint64, bool) {
	b := a.books
	if !c.Kind.Counts() {
		return 0, false // rights, which the rights auditor follows
	}
	id := gossip.CellID{Incarnation: c.Incarnation}
	region, ok := a.regions[id]
	if !ok || c.Kind != gossip.RegionSum {
		region, ok = a.lost[id]
		ok = ok && c.Kind == gossip.Daemon
	}
	if ok {
		truth, known := b.total(c, region)
		return truth * (1 + a.restored[region].times), known
	}
	x := b.writers.byIncarnation[c.Incarnation]
	if x == nil || c.Kind != gossip.Daemon {
		return 0, true // of nobody
	}
	if b.unsure(c, x) {
		return 0, false
	}
	return b.charged(c, x.region, x)
}

// unsure reports whether the books may have counted a writer's hits under
// another label than it did.
func (b *books) unsure(c *gossip.Cell, x *writer) bool {
	if !b.blurred(x.daemon) {
		return false
	}
	for _, domain := range [2]int{everybody, x.region} {
		if k := b.ledger.byKey[bookKey{c.Key, domain}]; k != nil && k.windowed() {
			return false
		}
	}
	return true
}

// total returns what a region's daemons charged on a cell's key and label,
// false when that is not known.
func (b *books) total(c *gossip.Cell, region int) (uint64, bool) {
	for _, x := range b.writers.all {
		if x.region == region && b.unsure(c, x) {
			return 0, false
		}
	}
	return b.charged(c, region, nil)
}
