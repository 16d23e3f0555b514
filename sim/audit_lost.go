package sim

import (
	"time"

	"github.com/georld/rld/gossip"
)

// lostAuditor sees to it that what was counted stays counted: a replica's own
// cell is what it charged, and of others it holds at least what they had
// charged by the time up to which messages it took let it know them. So a
// cell that was acknowledged and not taken, or dropped from a live label, is
// found as soon as a later message claims that nothing is missing. What comes
// by way of others is not missed once its label is over for one of them: a clock
// that is wrong, and that nobody takes over, makes them drop it before.
type lostAuditor struct {
	watcher
	known cuts // scratch
	// ahead is by how many ms the label clocks of a region ever stood before
	// virtual time at most.
	ahead [MaxRegions]int64
}

func newLostAuditor(b *books) *lostAuditor { return &lostAuditor{watcher: newWatcher("lost", b)} }

// Stepped looks at cells now and then.
func (a *lostAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	a.clock(d)
	s := a.books.look(w, d, m, err)
	if s == nil || a.books.hearing.noRoom {
		return
	}
	now := a.books.living(s)
	// As of just before this input, of which part may yet be refused.
	a.known = a.books.hearing.known(&a.books.writers, s.writer, s.shard, w.Now(), a.known)
	known := a.known
	for _, k := range a.books.ledger.all {
		if k.rescoped || !k.ownsKey(s.shard, len(d.Nodes)) || k.domain != everybody && k.domain != s.writer.region {
			continue
		}
		for _, p := range k.pages {
			if p.least > now && !p.degraded {
				from := a.books.hearing.heldBack(k.key, p.window)
				a.check(w, s, k, p, known.since(from, s.writer.index))
			}
		}
	}
}

// clock follows how far clocks are ahead.
func (a *lostAuditor) clock(d *Daemon) {
	for s := range d.Nodes {
		c := a.books.clocks.of(d, s)
		if c == nil || c.least > c.most {
			continue
		}
		most := c.most
		if c.bent {
			most += blurMillis
		}
		a.ahead[d.RegionIndex] = max(a.ahead[d.RegionIndex], most)
	}
}

// passedOn reports whether all through whom counts may come from one region to
// another kept those of a label up to now.
func (a *lostAuditor) passedOn(w *World, p *page, from, to int) bool {
	return p.least > w.Now().Milliseconds()+max(a.ahead[from], a.ahead[to])
}

// check holds what a replica has of one label against what it must have.
func (a *lostAuditor) check(w *World, s *sample, k *book, p *page, known cuts) {
	b := a.books
	var sums [MaxRegions]uint64
	oldest := w.Now()
	for i := range p.incarnations {
		c := &p.incarnations[i]
		x := b.writers.all[c.writer]
		switch {
		case !k.windowed() && b.blurred(x.daemon):
			return // its hits may be under the label before or after
		case x == s.writer:
			a.hold(w, s, cellOf(k, p, gossip.Daemon, x), c.charged, 0)
		case (!x.up || x.region != s.writer.region) && !a.passedOn(w, p, x.region, s.writer.region):
		case x.region == s.writer.region:
			a.hold(w, s, cellOf(k, p, gossip.Daemon, x), c.before(known[c.writer]), w.Now()-known[c.writer])
		default:
			sums[x.region] += c.before(known[c.writer])
			oldest = min(oldest, known[c.writer])
		}
	}
	for r, n := range sums {
		if n > 0 {
			id := gossip.CellID{
				Key: k.key, Window: p.window, Kind: gossip.RegionSum, Incarnation: gossip.RegionIncarnation(w.Regions()[r]),
			}
			a.hold(w, s, id, n, w.Now()-oldest)
		}
	}
}

func cellOf(k *book, p *page, kind gossip.Kind, x *writer) gossip.CellID {
	return gossip.CellID{Key: k.key, Window: p.window, Kind: kind, Incarnation: x.incarnation}
}

// hold checks that a replica has at least so much of a cell.
func (a *lostAuditor) hold(w *World, s *sample, id gossip.CellID, least uint64, age time.Duration) {
	if least == 0 {
		return
	}
	if has := s.value(id); has < least {
		a.failed(w, "%s holds %d of %v, which counted %d as far as it was told (%v ago)",
			s.daemon.Name, has, gossip.Cell{CellID: id}, least, age)
		return
	}
	a.passed(1)
}
