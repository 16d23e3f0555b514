package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/georld/rld/disk"
)

// Bounds of a journal.
const (
	// MaxBytes bounds the file, and so the bytes that Open reads.
	MaxBytes = 512 << 20
	// MaxRecordBytes bounds a record.
	MaxRecordBytes = 4 << 20
	// MaxNameBytes bounds the name of an owner.
	MaxNameBytes = 1 << 10
	// CompactBytes is the size below which a rewrite has no benefit.
	CompactBytes = 4 << 20

	// maxBatch bounds the records of one batch, in bytes; further ones begin a
	// new batch.
	maxBatch = 1 << 20
)

// Owner identifies the owner of a journal.
type Owner struct {
	Cluster uint64 // fingerprint
	Name    string // of the daemon, at most MaxNameBytes
}

// Config is a journal: its file in a folder, and its owner.
type Config struct {
	Folder disk.Folder
	Name   string
	Owner  Owner
	// MaxBytes bounds the file, default MaxBytes.
	MaxBytes int64
	// CompactBytes is the size below which a rewrite has no benefit, default
	// CompactBytes.
	CompactBytes int64
	// Accept returns why the owner cannot use records that Open has read, nil
	// if it can. Nil accepts all.
	Accept func(records [][]byte) error
}

// Journal is a log of records on disk. One goroutine owns it.
type Journal struct {
	cfg  Config
	lock io.Closer // held as long as the journal is open

	file   disk.File
	number uint64 // of the next batch
	buffer []byte // room for one batch
	failed error  // the first failure, after which every write is refused

	size  int64
	begun int64 // the initial size of the file
}

// Open opens a journal, creates it when there is none, and returns its content.
// It first copies the content to a new file: after a failed sync, a file may
// show content that is only in memory. No other process can open the journal
// meanwhile.
//
// The error is a *DamagedError when the file was changed since it was written,
// a *ForeignError when it belongs to another owner, or that of Config.Accept,
// of reading or of writing. The file is then unchanged. Its content is returned
// with the error when it was read, and could not be written or was not
// accepted.
func Open(c Config) (*Journal, *Contents, error) {
	j, err := prepare(c)
	if err != nil {
		return nil, nil, err
	}
	found, err := j.recover()
	if err == nil && c.Accept != nil {
		err = c.Accept(found.Records)
	}
	if err == nil {
		err = j.replace(slices.Values(found.Records))
	}
	if err != nil {
		return nil, found, errors.Join(err, j.Close())
	}
	return j, found, nil
}

// Begin creates a journal with records, whatever exists. An existing file,
// damaged or not, is kept with the suffix ".former", in place of an older one.
// The owner of a new journal has lost its memory, and the records must state
// that: however the process ends, the journal holds either the former content
// or the records.
func Begin(c Config, records iter.Seq[[]byte]) (*Journal, error) {
	j, err := prepare(c)
	if err != nil {
		return nil, err
	}
	if err = j.keepFormer(); err == nil {
		err = j.replace(records)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// prepare creates the folder when necessary, and locks the journal.
func prepare(c Config) (*Journal, error) {
	if n := len(c.Owner.Name); n > MaxNameBytes {
		return nil, fmt.Errorf("journal: name of %d bytes, want at most %d", n, MaxNameBytes)
	}
	lock, err := c.Folder.Lock(c.Name + ".lock")
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, MaxBytes)
	c.CompactBytes = cmp.Or(c.CompactBytes, CompactBytes)
	return &Journal{cfg: c, lock: lock}, nil
}

// recover reads the file.
func (j *Journal) recover() (*Contents, error) {
	file := j.cfg.Folder.Path(j.cfg.Name)
	size, err := j.cfg.Folder.Size(j.cfg.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Contents{New: true}, nil
	case err != nil:
		return nil, fmt.Errorf("journal: %w", err)
	case size > j.cfg.MaxBytes:
		return nil, &DamagedError{File: file, Offset: j.cfg.MaxBytes, What: fmt.Sprintf(
			"it has %d bytes, want at most %d", size, j.cfg.MaxBytes)}
	}
	data, err := j.cfg.Folder.ReadFile(j.cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return parse(file, data, j.cfg.Owner)
}

// Append stores records after the existing ones. When it returns without an
// error they are on disk. If the process ends before, an arbitrary number of
// the first ones is. It keeps no reference to them.
//
// On ErrFull, and when a record is too large, none is stored. After any other
// error the number stored is unknown, and the journal refuses writes until it
// is opened again: the error is a *FailedError then and from there on.
func (j *Journal) Append(records [][]byte) error {
	if j.failed != nil {
		return j.failed
	}
	need := int64(0)
	for i, r := range records {
		if len(r) > MaxRecordBytes {
			return fmt.Errorf("journal: record %d has %d bytes, want at most %d", i, len(r), MaxRecordBytes)
		}
		// Each may be the last of its batch.
		need += int64(len(r)) + 5 + leastBatch
	}
	if need += j.size; need > j.cfg.MaxBytes {
		return ErrFull
	}
	for len(records) > 0 {
		b, n := openBatch(j.buffer[:0]), 0
		for n < len(records) && (n == 0 || len(b)+len(records[n]) < maxBatch) {
			b = appendRecord(b, records[n])
			n++
		}
		records = records[n:]
		// One batch is on disk before the next is begun: see later.
		if err := j.write(closeBatch(b, 0, j.number)); err != nil {
			return j.fail(err)
		}
	}
	return nil
}

// write writes a batch and waits until it is on disk.
func (j *Journal) write(b []byte) error {
	if cap(b) <= 2*maxBatch {
		j.buffer = b
	}
	if _, err := j.file.Write(b); err != nil {
		return err
	}
	j.number++
	j.size += int64(len(b))
	return j.file.Sync()
}

// fail keeps the first failure.
func (j *Journal) fail(err error) error {
	if j.failed == nil {
		j.failed = &FailedError{File: j.cfg.Folder.Path(j.cfg.Name), Err: err}
	}
	return j.failed
}

// Size returns the bytes of the file, 0 for a nil Journal.
func (j *Journal) Size() int64 {
	if j == nil {
		return 0
	}
	return j.size
}

// ShouldCompact reports whether a Rewrite is worth it: the file has doubled
// since the last one, and is not small. It is false for a nil Journal.
func (j *Journal) ShouldCompact() bool {
	return j != nil && j.size > j.cfg.CompactBytes && j.size/2 >= j.begun
}

// Rewrite replaces the content by records. However the process ends, the
// journal holds either the former content or all records, and once Rewrite
// returns the latter. It keeps no reference to them.
//
// On ErrFull, and on an error that is no *FailedError, the journal is unchanged
// and usable.
func (j *Journal) Rewrite(records iter.Seq[[]byte]) error {
	if j.failed != nil {
		return j.failed
	}
	return j.replace(records)
}

// Close unlocks the journal. Other methods fail after it; Close does not, nor
// for a nil Journal.
func (j *Journal) Close() error {
	if j == nil || errors.Is(j.failed, ErrClosed) {
		return nil
	}
	j.failed = ErrClosed
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Close())
}
