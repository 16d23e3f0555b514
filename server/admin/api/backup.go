package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// BackupFormat is the format of the backups that this version of rld writes and
// reads.
const BackupFormat = 1

// Backup is the answer of /v1/cluster/backup, and the content of a file of rld
// cluster backup: what a new cluster needs to decide as this one did. It has no
// ids, daemons, rights or counts.
type Backup struct {
	// Format is BackupFormat.
	Format int       `json:"rld_backup"`
	At     time.Time `json:"at"`
	// Cluster and Version are those of the record.
	Cluster string `json:"cluster"`
	Version string `json:"version"`
	// Regions are those that do not drain, with weights that sum to 1,000,000.
	Regions []BackupRegion `json:"regions"`
	// Files are those of the latest rules, empty if none were applied.
	Files []LimitsFile `json:"files"`
	// Overrides are those that have not ended, the oldest first.
	Overrides []BackupOverride `json:"overrides"`
	// Hash is that of all else: see Sum.
	Hash string `json:"hash"`
}

// BackupRegion is a region with its base weight in parts per million.
type BackupRegion struct {
	Name   string `json:"name"`
	Weight uint32 `json:"weight_ppm"`
}

// BackupOverride is an override as the command that sets it again: SetOverride
// or BlockKey. Until is its end, null if its ForSeconds have not begun.
type BackupOverride struct {
	Command LimitsCommandName `json:"command"`
	Until   *time.Time        `json:"until"`
	LimitsRequest
}

// Sum returns the hash of a backup without its Hash.
func (b *Backup) Sum() (string, error) {
	bare := *b
	bare.Hash = ""
	form, err := json.Marshal(&bare)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:]), nil
}

// ReadBackup reads a backup, and refuses one that is damaged, of another
// format, or incomplete.
func ReadBackup(data []byte) (*Backup, error) {
	var head struct {
		Format int `json:"rld_backup"`
	}
	err := json.Unmarshal(data, &head)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is not JSON (%w): want a file of rld cluster backup, unchanged", err)
	case head.Format <= 0:
		return nil, errors.New("it is no backup of rld: want a file of rld cluster backup, unchanged")
	case head.Format > BackupFormat:
		return nil, fmt.Errorf("it is a backup of format %d, of a later rld: this one reads format %d; use the rld that wrote it, or a later one",
			head.Format, BackupFormat)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var b Backup
	if err := d.Decode(&b); err != nil {
		return nil, fmt.Errorf("%w: want a file of rld cluster backup, unchanged", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something behind the backup: want one file of rld cluster backup, unchanged")
	}
	is, err := b.Sum()
	switch {
	case err != nil:
		return nil, err
	case is != b.Hash:
		return nil, fmt.Errorf("its content has the hash %.12s and not %.12s: it is damaged, or was edited; use another copy", is, Clip(b.Hash))
	case len(b.Regions) == 0:
		return nil, errors.New("it has no regions: use another backup")
	}
	for i := range b.Overrides {
		if c := b.Overrides[i].Command; c != SetOverride && c != BlockKey {
			return nil, fmt.Errorf("override %d has the command %q: want %s or %s", i+1, Clip(string(c)), SetOverride, BlockKey)
		}
	}
	return &b, nil
}
