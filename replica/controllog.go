package replica

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/georld/rld/control"
	"github.com/georld/rld/journal"
)

// ControlFile is the journal of the control log of a process.
const ControlFile = "control.rld"

// ControlLog is the journal of the control log of a process. One goroutine owns
// it. A nil ControlLog is that of a diskless daemon, which stores nothing.
type ControlLog struct {
	config  journal.Config
	journal *journal.Journal // nil after a failure
	dirty   bool             // its content is unknown: it must be rewritten
}

// OpenControl opens the journal and recovers the node of the control log from
// it, see control.New. A daemon whose journal is damaged starts as a new one,
// with another id; the damaged file is kept. With RefuseDamage it is an error.
// On an error nothing is open. A file that is refused is unchanged. If it could
// be read, but not be written again, the node is returned with the error: it
// may be read, and must neither send nor vote.
func (s *Storage) OpenControl(c control.Config, seed control.Seed, rng *rand.Rand) (*control.Node, *ControlLog, Recovery, error) {
	if !c.Durable {
		n, err := control.New(c, nil, seed, rng)
		return n, nil, Recovery{Found: Missing}, err
	}
	g := &ControlLog{config: journal.Config{Folder: s.Folder, Name: ControlFile, Owner: s.Owner, CompactBytes: s.CompactBytes}}
	r := Recovery{File: s.Folder.Path(ControlFile)}
	start, err := g.open(&r, c)
	if damaged, ok := errors.AsType[*journal.DamagedError](err); ok && !s.RefuseDamage {
		r.Found, r.Damage, start = Damaged, damaged, nil
		g.journal, err = journal.Begin(g.config, slices.Values[[][]byte](nil))
	}
	var n *control.Node
	if err == nil {
		n, err = control.New(c, start, seed, rng)
	}
	if err == nil {
		return n, g, r, nil
	}
	if start != nil {
		n, _ = control.New(c, start, seed, rng)
	}
	return n, nil, r, errors.Join(err, g.Close())
}

// open opens the journal and returns the state that it holds. It reads that
// before the journal is rewritten, and returns it with an error of writing.
func (g *ControlLog) open(r *Recovery, c control.Config) (start *control.Start, err error) {
	config := g.config
	config.Accept = func(records [][]byte) error {
		start, err = control.Recover(records, c)
		if _, newer := errors.AsType[*control.FormatError](err); err == nil || newer {
			return err
		}
		// The checksums are right, and the records are not.
		return &journal.DamagedError{File: r.File, What: err.Error()}
	}
	file, kept, err := journal.Open(config)
	if err != nil {
		return start, err
	}
	r.Cut = kept.Cut
	if len(kept.Records) == 0 {
		r.Found = Missing
	}
	g.journal = file
	return start, nil
}

// Append stores the items of Ready with one sync. When it returns without an
// error they are on disk. It replaces a journal that is full, or that failed
// before, by a snapshot of the node, which has the items.
func (g *ControlLog) Append(items [][]byte, snapshot func() [][]byte) error {
	if g.journal == nil {
		if err := g.reopen(); err != nil {
			return err
		}
	}
	if !g.dirty {
		if err := g.journal.Append(items); !errors.Is(err, journal.ErrFull) {
			return g.check(err)
		}
	}
	return g.Rewrite(snapshot())
}

// reopen opens a journal again that failed.
func (g *ControlLog) reopen() error {
	file, _, err := journal.Open(g.config)
	if err == nil {
		g.journal = file
	}
	return err
}

// check closes a journal that can store nothing any more.
func (g *ControlLog) check(err error) error {
	if _, failed := errors.AsType[*journal.FailedError](err); failed {
		g.dirty = true
		err = errors.Join(err, g.journal.Close())
		g.journal = nil
	}
	return err
}

// ShouldCompact reports whether most of the journal is out of date.
func (g *ControlLog) ShouldCompact() bool {
	return g != nil && g.journal != nil && g.journal.ShouldCompact()
}

// Rewrite replaces the journal by the items of a snapshot.
func (g *ControlLog) Rewrite(items [][]byte) error {
	err := g.check(g.journal.Rewrite(slices.Values(items)))
	g.dirty = g.dirty && err != nil
	return err
}

// Close closes the journal.
func (g *ControlLog) Close() error {
	if g == nil {
		return nil
	}
	return g.journal.Close()
}
