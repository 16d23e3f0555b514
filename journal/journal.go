package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
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

// Journal is a log of records on disk. One goroutine owns it: others may only
// call Size and ShouldCompact at the same time.
type Journal struct {
	path  string
	owner Owner
	lock  *os.File // held as long as the journal is open

	file   *os.File
	number uint64 // of the next batch
	buffer []byte // room for one batch
	failed error  // the first failure, after which every write is refused

	size  atomic.Int64
	begun atomic.Int64 // the initial size of the file

	maxBytes, compactBytes int64
	sync                   func(*os.File) error
}

// Open opens the journal of that name in a folder, creates one when there is
// none, and returns its content. It first copies the content to a new file:
// after a failed sync, a file may show content that is only in memory. No other
// process can open the journal meanwhile.
//
// The error is a *DamagedError when the file was changed since it was written,
// a *ForeignError when it belongs to another owner, or that of reading or
// writing. The file is then unchanged.
func Open(dir, name string, owner Owner) (*Journal, *Contents, error) {
	j, err := prepare(dir, name, owner)
	if err != nil {
		return nil, nil, err
	}
	c, err := j.recover()
	if err == nil {
		err = j.replace(slices.Values(c.Records))
	}
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	return j, c, nil
}

// Begin creates a journal with records, whatever exists. An existing file,
// damaged or not, is kept with the suffix ".former", in place of an older one.
// The owner of a new journal has lost its memory, and the records must state
// that: however the process ends, the journal holds either the former content
// or the records.
func Begin(dir, name string, owner Owner, records iter.Seq[[]byte]) (*Journal, error) {
	j, err := prepare(dir, name, owner)
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
func prepare(dir, name string, owner Owner) (*Journal, error) {
	if len(owner.Name) > MaxNameBytes {
		return nil, fmt.Errorf("journal: name of %d bytes, want at most %d", len(owner.Name), MaxNameBytes)
	}
	j := &Journal{
		path: filepath.Join(dir, name), owner: owner,
		maxBytes: MaxBytes, compactBytes: CompactBytes, sync: syncData,
	}
	lock, err := Lock(dir, name+".lock")
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j.lock = lock
	return j, nil
}

// Lock creates a folder if necessary, and a file in it that it locks, without
// waiting, until the returned file is closed or the process ends. It keeps
// other processes out of the files that the caller guards with it.
func Lock(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("another process uses %s: give each daemon a folder of its own: %w", dir, err), f.Close())
	}
	return f, nil
}

// recover reads the file.
func (j *Journal) recover() (*Contents, error) {
	info, err := os.Stat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Contents{New: true}, nil
	case err != nil:
		return nil, fmt.Errorf("journal: %w", err)
	case info.Size() > j.maxBytes:
		return nil, &DamagedError{File: j.path, Offset: j.maxBytes, What: fmt.Sprintf(
			"it has %d bytes, want at most %d", info.Size(), j.maxBytes)}
	}
	data, err := os.ReadFile(j.path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return parse(j.path, data, j.owner)
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
	if need += j.size.Load(); need > j.maxBytes {
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
	j.size.Add(int64(len(b)))
	return j.sync(j.file)
}

// fail keeps the first failure.
func (j *Journal) fail(err error) error {
	if j.failed == nil {
		j.failed = &FailedError{File: j.path, Err: err}
	}
	return j.failed
}

// Size returns the bytes of the file.
func (j *Journal) Size() int64 { return j.size.Load() }

// ShouldCompact reports whether a Rewrite is worth it: the file has doubled
// since the last one, and is not small.
func (j *Journal) ShouldCompact() bool {
	size := j.size.Load()
	return size > j.compactBytes && size/2 >= j.begun.Load()
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
