package daemon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/disk/osdir"
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
	n.disk, n.opened = disk, found.Fault == nil
	n.has.Store(n.opened)
	n.mu.Lock()
	n.counts.Bytes = disk.Size()
	n.loop = loop
	n.view.Store(loop.Acceptor.Routing())
	n.mu.Unlock()
	if errors.Is(found.Fault, errNoRecord) {
		n.failed(found.Fault)
		return nil
	}
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
	storage.First = storage.First && !n.opened
	loop, disk, found, err := storage.OpenAcceptor(n.config)
	if err == nil {
		err = found.Fault
	}
	if n.disk = disk; err != nil {
		n.failed(err)
		return
	}
	n.opened = true
	n.has.Store(true)
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
		n.log.Info("the last record of strict keys was cut short, as by the end of the process; if the file was shortened or "+
			"restored, limits of strict keys may be exceeded until their windows are over",
			"file", r.File, "offset", r.Cut.Offset, "bytes", r.Cut.Bytes)
	}
	switch former := r.File + journal.Former; r.Found {
	case replica.Former:
		n.log.Warn("a damaged journal of strict keys is kept: this daemon does not vote before it has a snapshot of all other "+
			"strict voters of the region", "file", former)
	case replica.Missing:
		n.log.Warn("there is no journal of strict keys, and this daemon does not found its region: "+
			"it does not vote before it has a snapshot of all other strict voters of the region", "file", r.File)
	case replica.Damaged:
		n.log.Error("the journal of strict keys is damaged: this daemon does not vote before it has a snapshot of all other "+
			"strict voters of the region; check the disk", "event", "journal_damaged",
			"kept", former, "error", r.Damage)
	}
}

// openAcceptor opens the acceptor of a daemon that has one. The rules must be
// known: a rule that names a home region pins it in the first layout.
func (d *daemon) openAcceptor() error {
	if d.strict == nil {
		return nil
	}
	c := &d.Config
	return d.strict.acceptor.open(quorum.Config{
		Region: c.Region, Name: c.Name, Genesis: d.genesis(d.engine.Rules()), MaxOffset: c.Clock.MaxOffset,
	}, d.strictStorage)
}

// storage returns the folder of rights. Its files name the cluster by a hash of
// the secret for a purpose.
func (d *daemon) storage(purpose string) replica.Storage {
	c, sum := &d.Config, d.derive(purpose)
	return replica.Storage{
		Folder: osdir.Dir(c.State.Dir), Diskless: c.State.Diskless,
		Owner: journal.Owner{Cluster: binary.BigEndian.Uint64(sum[:]), Name: c.Region + "/" + c.Name},
		Fence: d.now().Add(2 * c.Clock.MaxOffset).UnixMilli(),
	}
}

// errNoRecord is why it is not known whether a daemon founds its region.
var errNoRecord = errors.New("the cluster has not begun, or its record is not confirmed yet")

// strictStorage returns the folder of the acceptor. A founder of the region
// that holds no rights yet has never stored a watermark.
func (d *daemon) strictStorage() replica.Storage {
	s, v := d.storage("strict keys of a cluster"), d.control.rights()
	var g *control.Region
	if v.record != nil && v.current {
		g = v.record.Region(d.Config.Region)
	}
	if g == nil {
		s.Unknown = errNoRecord
		return s
	}
	s.First = slices.Contains(g.Founders, v.self) && v.holds.Generation != g.Generation
	return s
}

// begun reports whether the journal was opened.
func (n *acceptorLoop) begun() bool { return n.has.Load() }

// genesis returns the first layout: the regions of the settings, and the strict
// voters of the own one.
func (d *daemon) genesis(set *rules.Set) route.Layout {
	c := &d.Config
	l := route.Layout{Number: 1}
	for _, name := range c.RegionNames() {
		r := route.Region{Name: name, Weight: 1}
		if name == c.Region {
			r.Replicas = c.StrictReplicas()
		}
		l.Regions = append(l.Regions, r)
	}
	l.Pins = pinsOf(set)
	return l
}
