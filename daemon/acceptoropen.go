package daemon

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/georld/rld/journal"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// acceptorConfig configures the acceptor and its journal.
type acceptorConfig struct {
	quorum quorum.Config
	dir    string
	owner  journal.Owner
	// first is set by an operator for a daemon that never ran before. latest is
	// an instant that no clock has shown yet: a new store number.
	first  bool
	latest time.Time
}

// open opens the journal and recovers the acceptor from it. A daemon with a
// damaged journal logs that and continues like one that lost its disk: it does
// not vote before it has a snapshot of all other voters.
func (n *acceptorLoop) open(c acceptorConfig) error {
	disk, stored, err := n.read(&c)
	start := quorum.Start{Stored: stored}
	if err == nil && stored == nil {
		start, err = n.startEmpty(&c)
	}
	if damaged, ok := errors.AsType[*journal.DamagedError](err); ok {
		disk, start, err = n.beginAnew(&c, damaged)
	}
	if err != nil {
		return fmt.Errorf("rights.dir: %w", errors.Join(err, disk.Close()))
	}
	a, err := quorum.NewAcceptor(c.quorum, start)
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	n.disk = disk
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts.Bytes = disk.Size()
	n.loop = &replica.AcceptorLoop{Acceptor: a}
	n.view.Store(a.Routing())
	return nil
}

// close closes the journal.
func (n *acceptorLoop) close() {
	if err := n.disk.Close(); err != nil {
		n.log.Warn("the journal of strict keys could not be closed", "error", err)
	}
}

// read opens the journal and returns the state in it, nil for an empty one.
func (n *acceptorLoop) read(c *acceptorConfig) (*journal.Journal, *quorum.Stored, error) {
	disk, kept, err := journal.Open(c.dir, journalFile, c.owner)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(c.dir, journalFile)
	if kept.Cut != nil {
		n.log.Info("the last record of strict keys was cut short by the end of the process: no message depended on it",
			"file", path, "offset", kept.Cut.Offset, "bytes", kept.Cut.Bytes)
	}
	if len(kept.Records) == 0 {
		return disk, nil, nil
	}
	stored, err := replica.Recover(kept.Records)
	if err != nil { // the checksums are right, and the records are not
		return nil, nil, errors.Join(&journal.DamagedError{File: path, What: err.Error()}, disk.Close())
	}
	return disk, stored, nil
}

// startEmpty returns how an acceptor starts with an empty journal.
func (n *acceptorLoop) startEmpty(c *acceptorConfig) (quorum.Start, error) {
	path := filepath.Join(c.dir, journalFile)
	lost := quorum.Start{Generation: uint64(c.latest.UnixMilli())}
	_, err := os.Stat(path + ".former")
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return lost, err
	case err != nil && c.first:
		return quorum.Start{First: true}, nil
	case c.first:
		n.log.Warn("rights.first_start is set although a damaged journal of this daemon is kept: it is ignored",
			"file", path+".former")
	default:
		n.log.Warn("there is no journal of strict keys, and rights.first_start is not set: "+
			"this daemon does not vote before it has a snapshot of all other strict voters of the region", "file", path)
	}
	return lost, nil
}

// beginAnew moves a damaged journal aside and begins that of a daemon that lost
// its disk.
func (n *acceptorLoop) beginAnew(c *acceptorConfig, damaged error) (*journal.Journal, quorum.Start, error) {
	path := filepath.Join(c.dir, journalFile)
	n.log.Error("the journal of strict keys is damaged: this daemon does not vote before it has a snapshot of all other "+
		"strict voters of the region; check the disk", "event", "journal_damaged",
		"kept", path+".former", "error", damaged)
	start := quorum.Start{Generation: uint64(c.latest.UnixMilli())}
	a, err := quorum.NewAcceptor(c.quorum, start)
	if err != nil {
		return nil, start, err
	}
	records := (&replica.AcceptorLoop{Acceptor: a}).Snapshot()
	stored, err := replica.Recover(records)
	if err != nil {
		return nil, start, err
	}
	disk, err := journal.Begin(c.dir, journalFile, c.owner, slices.Values(records))
	return disk, quorum.Start{Stored: stored}, err
}

// openAcceptor opens the acceptor of a daemon that has one. The rules must be
// known: a rule that names a home region pins it in the first layout.
func (d *daemon) openAcceptor() error {
	if d.strict == nil {
		return nil
	}
	c := &d.Config
	sum := d.derive("strict keys of a cluster")
	return d.strict.acceptor.open(acceptorConfig{
		quorum: quorum.Config{
			Region: c.Region, Name: c.Name, Genesis: d.genesis(d.engine.Rules()), MaxOffset: c.Clock.MaxOffset,
		},
		dir:   c.Rights.Dir,
		owner: journal.Owner{Cluster: binary.BigEndian.Uint64(sum[:]), Name: c.Region + "/" + c.Name},
		first: c.Rights.FirstStart, latest: d.now().Add(2 * c.Clock.MaxOffset),
	})
}

// genesis returns the first layout: the regions that exist from the beginning
// with their weights, and the strict voters of the own one.
func (d *daemon) genesis(set *rules.Set) route.Layout {
	c := &d.Config
	l := route.Layout{Number: 1}
	for _, name := range c.RegionNames() {
		r := route.Region{Name: name, Weight: 1}
		for _, known := range c.Regions {
			switch {
			case known.Name != name:
			case known.Added:
				r.Weight = 0
			case known.Weight > 0:
				r.Weight = uint32(known.Weight)
			}
		}
		if name == c.Region {
			r.Replicas = c.StrictReplicas()
		}
		l.Regions = append(l.Regions, r)
	}
	l.Pins = pinsOf(set)
	return l
}
