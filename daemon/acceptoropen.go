package daemon

import (
	"fmt"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// open opens the journal and recovers the acceptor from it. Without a disk that
// works the acceptor does not vote, and turn opens the journal again.
func (n *acceptorLoop) open(c quorum.Config, s func() replica.Storage) error {
	n.config, n.storage = c, s
	storage := s()
	loop, disk, found, err := storage.OpenAcceptor(c)
	if err != nil {
		return fmt.Errorf("state.dir: %w", err)
	}
	n.disk = disk
	n.mu.Lock()
	n.counts.Bytes = disk.Size()
	n.loop = loop
	loop.Confirmed(false) // the first turn asks
	n.view.Store(loop.Acceptor.Routing())
	n.mu.Unlock()
	if found.Fault != nil {
		n.failed(found.Fault)
		n.log.Error("the journal of strict keys cannot be opened: this daemon does not vote, and tries again every "+
			replica.RetryAfter.String()+"; make room on the disk, or repair it",
			"event", "journal_failed", "file", found.File, "error", found.Fault)
		return nil
	}
	n.logRecovery(&found)
	return nil
}

// failed notes that the journal cannot be used.
func (n *acceptorLoop) failed(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts.Failures++
	n.fault = err.Error()
}

// reopen opens a journal again that has failed, when that is due.
func (n *acceptorLoop) reopen(at time.Duration) {
	due := false
	n.with(func(l *replica.AcceptorLoop) { due = l.ReopenDue(at) })
	if !due {
		return
	}
	n.close()
	n.rewrites += n.disk.Rewrites()
	storage := n.storage()
	loop, disk, found, err := storage.OpenAcceptor(n.config)
	if err == nil {
		err = found.Fault
	}
	if n.disk = disk; err != nil {
		n.failed(err)
		return
	}
	n.logRecovery(&found)
	n.log.Info("the journal of strict keys is open", "event", "journal_reopened", "file", found.File)
	n.with(func(l *replica.AcceptorLoop) {
		n.fault, n.counts.Bytes = "", disk.Size()
		l.Reopened(at, loop)
	})
}

// close closes the journal.
func (n *acceptorLoop) close() {
	if err := n.disk.Close(); err != nil {
		n.log.Warn("the journal of strict keys could not be closed", "error", err)
	}
}

// logRecovery logs how the journal was found.
func (n *acceptorLoop) logRecovery(r *replica.Recovery) {
	if r.Cut != nil {
		n.log.Info("the last record of strict keys was cut short, as by the end of the process; if more is missing, "+
			"the other voters know of it: this daemon asks them before it votes",
			"file", r.File, "offset", r.Cut.Offset, "bytes", r.Cut.Bytes)
	}
	if r.Found == replica.Damaged {
		n.log.Error("the journal of strict keys is damaged: this daemon does not vote before it has a snapshot of all other "+
			"strict voters of the region; check the disk", "event", "journal_damaged",
			"kept", r.File+journal.Former, "error", r.Damage)
	}
}

// openAcceptor opens the acceptor of a daemon that has one. It follows the
// layouts of the control log, and reports to that.
func (d *daemon) openAcceptor() error {
	if d.strict == nil {
		return nil
	}
	n := d.strict.acceptor
	n.layouts, n.report = d.control.layouts, d.reportAcceptor()
	d.control.acceptor = n.news
	c := &d.Config
	return n.open(quorum.Config{Region: c.Region, Name: c.Name, MaxOffset: c.Clock.MaxOffset}, func() replica.Storage {
		return d.storage(forStrict)
	})
}

// reportAcceptor returns the function that gives the control log each changed
// report of the acceptor, and the home regions of the rules in force.
func (d *daemon) reportAcceptor() func(quorum.Report) {
	var last control.AcceptorReport
	var set *rules.Set
	return func(r quorum.Report) {
		is, now := replica.ReportOf(r), d.engine.Rules()
		if is == last && now == set {
			return
		}
		pins := replica.Pins(now)
		if d.control.Do(func(n *control.Node) { n.Layouts().Report(is, pins) }) {
			last, set = is, now
		}
	}
}

// layoutsView is what the control log has that an acceptor needs: the layouts
// of the record, nil for none, and whether that is confirmed since the start.
type layoutsView struct {
	active, announced *route.Layout
	confirmed         bool
}

// layoutsOf returns the view of a node.
func layoutsOf(n *control.Node) layoutsView {
	r := n.Record()
	if r == nil {
		return layoutsView{}
	}
	return layoutsView{r.Layouts.Active, r.Layouts.Announced, !n.Starting()}
}

// layouts returns the view of the node, once that is open.
func (c *controlLoop) layouts() layoutsView {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node == nil {
		return layoutsView{}
	}
	return layoutsOf(c.node)
}

// begun reports whether a layout is active.
func (n *acceptorLoop) begun() bool { return n.status().Active > 0 }
