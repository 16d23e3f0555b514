package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// replace replaces the file by a new one with records.
func (j *Journal) replace(records iter.Seq[[]byte]) error {
	path := j.path + ".new" // covered by the lock too; a leftover one is overwritten
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	size, number, err := j.fill(f, records)
	if err == nil {
		err = j.sync(f)
	}
	if err == nil {
		err = os.Rename(path, j.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("journal: the former content stays: %w", err), f.Close(), os.Remove(path))
	}
	if j.file != nil {
		_ = j.file.Close() // its content is in the new one
	}
	j.file, j.number = f, number
	j.size.Store(size)
	j.begun.Store(size)
	if err := SyncFolder(filepath.Dir(j.path)); err != nil {
		return j.fail(err) // after a crash either file may exist
	}
	return nil
}

// fill writes a header and records, and returns their size and the number of
// the next batch.
func (j *Journal) fill(f *os.File, records iter.Seq[[]byte]) (int64, uint64, error) {
	b := appendHeader(nil, j.owner, 0)
	size, at, number := int64(0), 0, uint64(0)
	var err error
	flush := func() bool {
		if size += int64(len(b)); size > j.maxBytes {
			err = ErrFull
			return false
		}
		_, err = f.Write(b)
		b = b[:0]
		return err == nil
	}
	if !flush() {
		return 0, 0, err
	}
	open := false
	for r := range records {
		if len(r) > MaxRecordBytes {
			return 0, 0, fmt.Errorf("record of %d bytes, want at most %d", len(r), MaxRecordBytes)
		}
		if open && len(b)+len(r) >= maxBatch {
			b, open = closeBatch(b, at, number), false
			number++
			if !flush() {
				return 0, 0, err
			}
		}
		if !open {
			b, open = openBatch(b), true
		}
		b = appendRecord(b, r)
	}
	if open {
		b = closeBatch(b, at, number)
		number++
	}
	if !flush() {
		return 0, 0, err
	}
	// The initial size, before which no byte is torn, is known only now.
	_, err = f.WriteAt(appendHeader(nil, j.owner, size), 0)
	return size, number, err
}

// keepFormer gives the file a second name, which stays when the file is
// replaced.
func (j *Journal) keepFormer() error {
	former := j.path + ".former"
	if err := os.Remove(former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	if err := os.Link(j.path, former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// SyncFolder makes the entries of a folder durable.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
