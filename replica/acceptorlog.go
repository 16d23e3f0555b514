package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/georld/rld/disk"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/wire"
)

// AcceptorLog is the journal of the acceptor of a process, without a file while
// the disk fails. One goroutine owns it. A nil AcceptorLog is that of a
// diskless daemon, which stores nothing.
type AcceptorLog struct {
	journal  *journal.Journal
	rewrites uint64
}

// State is the state of an acceptor that a rewrite of its journal stores; see
// AcceptorLoop.
type State interface {
	Snapshot() [][]byte
	Rewritten()
}

// OpenAcceptor opens the journal and recovers the acceptor from it. An acceptor
// with a damaged or an empty journal starts with another store number: as a
// voter it copies the state of all other voters before it votes. One whose disk
// is full or fails does not vote, and Recovery has the Fault: the driver opens
// it again later, see AcceptorLoop.ReopenDue. On an error nothing is open: the
// journal is of another daemon or another version of rld, another process uses
// it, or c is not valid.
func (s *Storage) OpenAcceptor(c quorum.Config) (*AcceptorLoop, *AcceptorLog, Recovery, error) {
	if s.Diskless {
		c.Diskless = true
		a, err := quorum.NewAcceptor(c, quorum.Start{Generation: uint64(s.Fence)})
		if err != nil {
			return nil, nil, Recovery{}, err
		}
		return &AcceptorLoop{Acceptor: a}, nil, Recovery{}, nil
	}
	r := Recovery{File: s.Folder.Path(JournalFile)}
	file, start, err := s.readJournal(&r)
	if damaged, ok := errors.AsType[*journal.DamagedError](err); ok {
		r.Found, r.Damage = Damaged, damaged
		file, start, err = s.beginJournal(c)
	}
	if _, foreign := errors.AsType[*journal.ForeignError](err); err != nil && !foreign && !errors.Is(err, disk.ErrInUse) {
		r.Fault, start.Failed, err = err, err, nil
	}
	var a *quorum.Acceptor
	if err == nil {
		a, err = quorum.NewAcceptor(c, start)
	}
	if err != nil {
		return nil, nil, r, errors.Join(err, file.Close())
	}
	return &AcceptorLoop{Acceptor: a}, &AcceptorLog{journal: file}, r, nil
}

func (s *Storage) journal() journal.Config {
	return journal.Config{
		Folder: s.Folder, Name: JournalFile, Owner: s.Owner, MaxBytes: s.MaxBytes, CompactBytes: s.CompactBytes,
	}
}

// readJournal opens the journal and returns how an acceptor starts with it.
// Also if it can only be read, the start has the stored state.
func (s *Storage) readJournal(r *Recovery) (*journal.Journal, quorum.Start, error) {
	file, kept, err := journal.Open(s.journal())
	if kept == nil {
		return nil, quorum.Start{}, err
	}
	r.Cut = kept.Cut
	if len(kept.Records) == 0 {
		r.Found = Missing
		return file, quorum.Start{Generation: uint64(s.Fence)}, err
	}
	stored, bad := Recover(kept.Records)
	if v, is := errors.AsType[*wire.VersionError](bad); is && v.Got == v.Want-1 {
		foreign := &journal.ForeignError{File: r.File, What: fmt.Sprintf("of another version of rld: its records have version %d, want %d", v.Got, v.Want)}
		return nil, quorum.Start{}, errors.Join(foreign, file.Close())
	}
	if bad != nil { // the checksums are right, and the records are not
		return nil, quorum.Start{}, errors.Join(&journal.DamagedError{File: r.File, What: bad.Error()}, file.Close())
	}
	return file, quorum.Start{Stored: stored}, err
}

// beginJournal moves a damaged journal aside and begins that of a daemon that
// lost its disk.
func (s *Storage) beginJournal(c quorum.Config) (*journal.Journal, quorum.Start, error) {
	a, err := quorum.NewAcceptor(c, quorum.Start{Generation: uint64(s.Fence)})
	if err != nil {
		return nil, quorum.Start{}, err
	}
	records := (&AcceptorLoop{Acceptor: a}).Snapshot()
	stored, err := Recover(records)
	if err != nil {
		return nil, quorum.Start{}, err
	}
	file, err := journal.Begin(s.journal(), slices.Values(records))
	return file, quorum.Start{Stored: stored}, err
}

// Append stores entries of a state with one sync. When it returns without an
// error they are on disk. It rewrites a journal that is full: the state holds
// the entries, too.
func (g *AcceptorLog) Append(entries []quorum.Entry, s State) error {
	if g == nil {
		return nil
	}
	err := g.journal.Append(Records(entries))
	if errors.Is(err, journal.ErrFull) {
		return g.Rewrite(s)
	}
	return err
}

// ShouldCompact reports whether most of the journal is out of date, so that
// Compact is worth it.
func (g *AcceptorLog) ShouldCompact() bool { return g != nil && g.journal.ShouldCompact() }

// Compact rewrites the journal. After an error with lost true nothing can be
// stored any more, and Acceptor.Failed must get it; else the journal only
// grows.
func (g *AcceptorLog) Compact(s State) (lost bool, err error) {
	err = g.Rewrite(s)
	_, lost = errors.AsType[*journal.FailedError](err)
	return lost, err
}

// Rewrite replaces the journal by a state. On an error the former content
// stays.
func (g *AcceptorLog) Rewrite(s State) error {
	if err := g.journal.Rewrite(slices.Values(s.Snapshot())); err != nil {
		return err
	}
	s.Rewritten()
	g.rewrites++
	return nil
}

// Size returns the bytes of the journal, 0 for a nil log.
func (g *AcceptorLog) Size() int64 {
	if g == nil {
		return 0
	}
	return g.journal.Size()
}

// Rewrites returns how often the journal was rewritten since it was opened, 0
// for a nil log.
func (g *AcceptorLog) Rewrites() uint64 {
	if g == nil {
		return 0
	}
	return g.rewrites
}

// Close closes the journal. It does nothing for a nil log.
func (g *AcceptorLog) Close() error {
	if g == nil {
		return nil
	}
	return g.journal.Close()
}
