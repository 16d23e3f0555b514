package replica

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/georld/rld/disk"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/wire"
)

// The files of a process in its folder: the record of the rights agent and the
// journal of the acceptor.
const (
	RightsFile  = "rights.rld"
	JournalFile = "strict.rld"
)

// FolderLock is the file that a process with rights or votes locks in its
// folder. The journals have locks of their own.
const FolderLock = "lock"

// SecretFile names the cluster in the other files, once that has replaced its
// secret: without it the names are those of the present secret.
const SecretFile = "secret.rld"

// StateFiles are all files with the state of a daemon, in the order in which it
// is given up: without its control log, a daemon has another id.
var StateFiles = []string{ControlFile, RightsFile, AccountsFile, JournalFile, SecretFile}

// Storage is a folder with the state that outlives a process, and how a process
// starts without it.
type Storage struct {
	Folder disk.Folder
	Owner  journal.Owner
	// Fence is an instant that the clock of the daemon has never shown yet, in
	// Unix milliseconds: its clock plus the most that it may have been ahead.
	// It is the new store number of a daemon without its files.
	Fence int64
	// RefuseDamage makes OpenControl return a damaged journal as an error
	// instead of moving it aside.
	RefuseDamage bool
	// Diskless is set for a daemon without a folder: its parts find nothing and
	// store nothing. Its agent of rights and its acceptor begin anew with each
	// process, which has another id.
	Diskless bool
	// MaxBytes and CompactBytes are those of the journal of the acceptor, 0 for
	// its defaults.
	MaxBytes, CompactBytes int64
}

// Recovery is how a part of a process found its file.
type Recovery struct {
	File   string // path
	Found  Found
	Cut    *journal.Cut // the last append if it was incomplete
	Damage error        // of a Damaged file
	// Fault is why the disk cannot be used now: it is full, or it fails.
	Fault error
}

// Found is the state in which a part of a process found its file.
type Found uint8

// The states.
const (
	// Intact files have the state of the former process.
	Intact Found = iota
	// Missing is a file that is not there, or is empty.
	Missing
	// Damaged is a file that cannot be read. A journal was moved aside.
	Damaged
)

// OpenRights reads the record of the rights agent, nil for a Missing file, and
// for a Damaged one, which stays where it is. It refuses that of another daemon
// or release. If the disk fails, Recovery has the Fault, and the agent cannot
// start: the driver calls it again later.
func (s *Storage) OpenRights() (*agent.Stored, Recovery, error) {
	if s.Diskless {
		return nil, Recovery{Found: Missing}, nil
	}
	r := Recovery{File: s.Folder.Path(RightsFile)}
	data, err := s.Folder.ReadFile(RightsFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Found = Missing
		return nil, r, nil
	case err != nil:
		r.Fault = err
		return nil, r, nil
	}
	stored, err := wire.DecodeStored(data, s.Owner.Cluster, s.Owner.Name)
	switch bad, is := errors.AsType[*wire.StoredError](err); {
	case is && bad.Kind != wire.Foreign:
		r.Found, r.Damage = Damaged, fmt.Errorf("%s: %w", r.File, err)
		return nil, r, nil
	case err != nil:
		return nil, r, fmt.Errorf("%s: %w", r.File, err)
	}
	return stored, r, nil
}

// StoreRights replaces the record of the rights agent. When it returns without
// an error the record is on disk. Without a folder there is nothing to do: no
// other process goes on with the record.
func (s *Storage) StoreRights(record *agent.Stored) error {
	if s.Diskless {
		return nil
	}
	return disk.ReplaceFile(s.Folder, RightsFile, wire.EncodeStored(s.Owner.Cluster, s.Owner.Name, record))
}
