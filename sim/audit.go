package sim

import (
	"fmt"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/sticky"
)

// auditors returns those of a run. They share what they note of it, and each
// works as well when others are left out.
func auditors(cfg *Config) []Auditor {
	b := newBooks(cfg)
	all := []Auditor{
		newMessagesAuditor(b),
		newClockAuditor(b),
		newBoundsAuditor(b),
		newOverageAuditor(b),
		newDenialsAuditor(b),
		newProgressAuditor(b),
		newInventedAuditor(b),
		newLostAuditor(b),
		newGrowthAuditor(b),
		newConvergenceAuditor(b),
	}
	if cfg.anyRights() {
		all = append(all, newRightsAuditor(b))
	}
	if cfg.anyRights() || cfg.anyOwners() {
		all = append(all, newAdmittedAuditor(b, cfg.Policy))
	}
	if cfg.anyOwners() {
		all = append(all, newStrictAuditor(b))
	}
	return all
}

// watcher is what all auditors have in common: an account of their checks, and
// the books, which the first auditor that hears of something brings up to
// date. The methods do nothing else, for those that have no use for them.
type watcher struct {
	books *books
	turn  uint64 // calls so far
	audit Audit
}

func newWatcher(name string, b *books) watcher { return watcher{books: b, audit: Audit{Name: name}} }

// first reports whether no other auditor has been told of this yet. All are
// told of everything in the same order.
func (a *watcher) first() bool {
	a.turn++
	if a.turn <= a.books.turn {
		return false
	}
	a.books.turn = a.turn
	return true
}

// Name implements Auditor.
func (a *watcher) Name() string { return a.audit.Name }

// Decided implements Auditor.
func (a *watcher) Decided(w *World, d *Decided) {
	if a.first() {
		a.books.decided(w, d)
	}
}

// Stepped implements Auditor.
func (a *watcher) Stepped(w *World, d *Daemon, m *gossip.Message, err error) {
	if a.first() {
		a.books.stepped(w, d, m, err)
	}
}

// Heeded implements Heeder.
func (a *watcher) Heeded(w *World, d *Daemon, shard int, m *sticky.Message) {
	if a.first() {
		a.books.clocks.heeded(w, d, shard, m)
	}
}

// Happened implements Auditor.
func (a *watcher) Happened(w *World, d *Daemon, e gossip.Event) {
	if a.first() {
		a.books.happened(w, d, e)
	}
}

// Restarted implements Auditor.
func (a *watcher) Restarted(w *World, d *Daemon) {
	if a.first() {
		a.books.restarted(w, d)
	}
}

// Down implements Auditor.
func (a *watcher) Down(w *World, d *Daemon) {
	if a.first() {
		a.books.down(w, d)
	}
}

// Ended implements Auditor.
func (a *watcher) Ended(*World, bool) {}

// Report implements Auditor.
func (a *watcher) Report() Audit { return a.audit }

// passed counts checks that found nothing.
func (a *watcher) passed(n uint64) { a.audit.Checks += n }

// failed counts a check that found something. Only the first is described.
func (a *watcher) failed(w *World, format string, args ...any) {
	a.audit.Checks++
	a.audit.Violations++
	if a.audit.First == "" {
		a.audit.First = fmt.Sprintf("at %v: ", w.Now()) + fmt.Sprintf(format, args...)
	}
}
