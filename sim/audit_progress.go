package sim

import (
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
)

// progressAuditor sees to it that a client well under its limit is admitted
// when the cluster is whole and has been for ten lags: half of the limit is
// unused and what came of late is little. And that in the end every replica of
// the core takes its share.
type progressAuditor struct {
	watcher
	lag     time.Duration
	looked  time.Duration
	since   time.Duration // when the cluster was last seen to become whole
	whole   bool
	started map[*Daemon]int
}

// lookAgain is how long the cluster is taken for as it was.
const lookAgain = 100 * time.Millisecond

// manyLags is how long everybody has had time to hear of everything, and
// littleOf the part of a limit that counts as little in that time.
const (
	manyLags = 10
	littleOf = 16
)

func newProgressAuditor(b *books) *progressAuditor {
	return &progressAuditor{watcher: newWatcher("progress", b), lag: b.lag, looked: unheard, started: map[*Daemon]int{}}
}

// Stepped looks whether the cluster is whole.
func (a *progressAuditor) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	a.watcher.Stepped(w, d, m, err)
	if a.looked != unheard && w.Now()-a.looked < lookAgain {
		return
	}
	a.looked = w.Now()
	whole := a.isWhole(w)
	if whole && !a.whole {
		a.since = w.Now()
	}
	a.whole = whole
}

// Restarted counts how often a daemon started.
func (a *progressAuditor) Restarted(w *World, d *Daemon) {
	a.watcher.Restarted(w, d)
	a.started[d]++
}

// Down notes that the cluster is not whole, however soon it is again.
func (a *progressAuditor) Down(w *World, d *Daemon) {
	a.watcher.Down(w, d)
	a.whole = false
}

// isWhole reports whether all are up, reach each other, are ready and agree on
// the time.
func (a *progressAuditor) isWhole(w *World) bool {
	for _, d := range w.Daemons() {
		if !d.Up || d.Paused || len(w.active) > 0 {
			return false
		}
	}
	for _, d := range w.Daemons() {
		for _, o := range w.Daemons() {
			if !w.Connected(d, o) {
				return false
			}
		}
		for _, n := range d.Nodes {
			if !n.Synced() {
				return false
			}
		}
	}
	return a.books.clocks.spread(w) <= a.books.clocks.maxOffset
}

// Decided checks a decision on a client that is well under its limit.
func (a *progressAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	e := &a.books.entry
	quiet := a.whole && d.At-a.since >= manyLags*a.lag
	// Want of rights is no excuse: they are to come back.
	degraded := d.Status.Degraded != node.NotDegraded && d.Status.Degraded != node.NoRights
	if !quiet || e.book == nil || !counted(d.Limit) || degraded || d.Limit.CarryDebt || a.excused(d) {
		return
	}
	limit := capacity(d.Limit)
	if e.usage.before+float64(d.Hits) > float64(limit)/2 || e.book.lately(d, e, manyLags*a.lag)*littleOf > limit {
		return
	}
	if d.Status.Over && d.Status.Gate&node.RightsGate == 0 {
		a.failed(w, "%s refused %d hits of %s, with %.6g of %d used, in a cluster that was whole for %v",
			d.Daemon.Name, d.Hits, RuleName(d.Rule), e.usage.before, limit, d.At-a.since)
		return
	}
	a.passed(1)
}

// excused reports whether the books do not know what the replica counted.
func (a *progressAuditor) excused(d *Decided) bool {
	e := &a.books.entry
	// A bucket that always gets more than it mints never shows a daemon that
	// joined that it took too much for used (ADR 7).
	joined := quota.Of(d.Limit).Drains() && a.started[d.Daemon] > 1
	return a.books.homed(d.Limit) || joined || e.learning(d) || a.books.restored || e.usage.mixed || e.book.rescoped || e.loses(d.Limit)
}

// lately returns what was charged before a decision, no longer than a time ago.
func (b *book) lately(d *Decided, e *entry, ago time.Duration) uint64 {
	n := uint64(0)
	for i := len(b.pages) - 1; i >= 0; i-- {
		p := b.pages[i]
		for j := range p.incarnations {
			n += p.incarnations[j].charged - p.incarnations[j].before(d.At-ago)
		}
		if !quota.Of(d.Limit).Stamped() && i < len(b.pages)-2 {
			break
		}
	}
	return n - min(n, e.charged)
}

// Ended checks that all of the core are ready.
func (a *progressAuditor) Ended(w *World, healed bool) {
	if !healed {
		return
	}
	for _, local := range w.core() {
		for _, d := range local {
			for s, n := range d.Nodes {
				if n.Synced() {
					a.passed(1)
				} else {
					a.failed(w, "%s, shard %d, takes no share in the end", d.Name, s)
				}
			}
		}
	}
}
