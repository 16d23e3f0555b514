package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/journal"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/wire"
)

// acceptorConfig is what a notary goes on from.
type acceptorConfig struct {
	replica quorum.Config
	dir     string
	owner   journal.Owner
	// first is the operator's word that the daemon never ran here; latest an
	// instant that no clock has shown yet.
	first  bool
	latest time.Time
}

// open makes the replica, which goes on from what is stored. A daemon whose
// journal is damaged says so, and goes on like one that lost its disk: it does not
// vote before all others have told it what they hold.
func (n *acceptorLoop) open(c acceptorConfig) error {
	disk, stored, err := n.read(&c)
	start := quorum.Start{Stored: stored}
	if err == nil && stored == nil {
		start, err = n.startEmpty(&c)
	}
	var damaged *journal.DamagedError
	if errors.As(err, &damaged) {
		disk, start, err = n.beginAnew(&c, damaged)
	}
	if err != nil {
		return fmt.Errorf("rights.dir: %w", errors.Join(err, closeDisk(disk)))
	}
	r, err := quorum.NewAcceptor(c.replica, start)
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	n.disk = disk
	n.counts.size.Store(disk.Size())
	n.mu.Lock()
	defer n.mu.Unlock()
	n.r = r
	n.view.Store(r.Routing())
	return nil
}

// close lets others open the journal.
func (n *acceptorLoop) close() {
	if n.disk != nil {
		if err := n.disk.Close(); err != nil {
			n.log.Warn("the journal of strict keys could not be closed", "error", err)
		}
	}
}

func closeDisk(disk *journal.Journal) error {
	if disk == nil {
		return nil
	}
	return disk.Close()
}

// read opens the journal and returns what it kept, nil when that is nothing.
func (n *acceptorLoop) read(c *acceptorConfig) (*journal.Journal, *quorum.Stored, error) {
	disk, kept, err := journal.Open(c.dir, journalFile, c.owner)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(c.dir, journalFile)
	if kept.Cut != nil {
		n.log.Info("the last record of strict keys was cut short by the end of the process: nobody was told of it",
			"file", path, "offset", kept.Cut.Offset, "bytes", kept.Cut.Bytes)
	}
	if len(kept.Records) == 0 {
		return disk, nil, nil
	}
	stored, err := replay(kept.Records)
	if err != nil { // it is whole, and makes no sense
		return nil, nil, errors.Join(&journal.DamagedError{File: path, What: err.Error()}, disk.Close())
	}
	return disk, stored, nil
}

// startEmpty says what it means that nothing is stored.
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
		n.log.Warn("rights.first_start says that this daemon never ran, and a damaged journal of it is kept: that one counts",
			"file", path+".former")
	default:
		n.log.Warn("there is no journal of strict keys, and rights.first_start does not say that this daemon is new: "+
			"it does not vote about them until all other replicas of the region have told it what they hold", "file", path)
	}
	return lost, nil
}

// beginAnew puts a journal that is damaged aside, and begins one of a daemon that
// knows that it has lost its memory.
func (n *acceptorLoop) beginAnew(c *acceptorConfig, damaged error) (*journal.Journal, quorum.Start, error) {
	path := filepath.Join(c.dir, journalFile)
	n.log.Error("the journal of strict keys is damaged: this daemon does not vote about them until all other replicas "+
		"of the region have told it what they hold; look at the disk", "event", "journal_damaged",
		"kept", path+".former", "error", damaged)
	start := quorum.Start{Generation: uint64(c.latest.UnixMilli())}
	r, err := quorum.NewAcceptor(c.replica, start)
	if err != nil {
		return nil, start, err
	}
	var records [][]byte
	var stored quorum.Stored
	r.Snapshot(func(e quorum.Entry) {
		records = append(records, wire.EncodeEntry(nil, &e))
		err = errors.Join(err, stored.Apply(e))
	})
	if err != nil {
		return nil, start, err
	}
	disk, err := journal.Begin(c.dir, journalFile, c.owner, slices.Values(records))
	return disk, quorum.Start{Stored: &stored}, err
}

// replay sums up the entries of a journal.
func replay(records [][]byte) (*quorum.Stored, error) {
	s := &quorum.Stored{}
	for i, record := range records {
		e, err := wire.DecodeEntry(record)
		if err == nil {
			err = s.Apply(e)
		}
		if err != nil {
			return nil, fmt.Errorf("record %d of %d: %w", i, len(records), err)
		}
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// openAcceptor opens the notary of a daemon that has one, once its rules are known:
// those that name a home region pin it in the first layout.
func (d *daemon) openAcceptor() error {
	if d.strict == nil {
		return nil
	}
	c := &d.cfg
	sum := d.derive("strict keys of a cluster")
	return d.strict.acceptor.open(acceptorConfig{
		replica: quorum.Config{
			Region: c.Region, Name: c.Name, Genesis: d.genesis(d.engine.Rules()), MaxOffset: c.Clock.MaxOffset,
		},
		dir:   c.Rights.Dir,
		owner: journal.Owner{Cluster: leading(sum[:]), Name: c.Region + "/" + c.Name},
		first: c.Rights.FirstStart, latest: d.now().Add(2 * c.Clock.MaxOffset),
	})
}

// genesis is the first layout: all regions that there are from the beginning, by
// their weights, and the replicas of the own one.
func (d *daemon) genesis(set *rules.Set) route.Layout {
	c := &d.cfg
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

// tell logs what happened to the replica.
func (n *acceptorLoop) tell(events []quorum.Event) {
	for i := range events {
		ev := &events[i]
		level := slog.LevelInfo
		switch ev.Kind {
		case quorum.Rejected, quorum.StoreFailed, quorum.LostDisk, quorum.Disagreed:
			level = slog.LevelWarn
		}
		attrs := []slog.Attr{slog.String("event", "strict"), slog.String("what", ev.Text)}
		if ev.Peer != "" {
			attrs = append(attrs, slog.String("peer", ev.Peer))
		}
		n.log.LogAttrs(context.Background(), level, "strict keys: "+ev.Kind.String(), attrs...)
	}
}
