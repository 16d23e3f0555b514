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
	var size int64
	var number uint64
	f, err := replaceFile(j.path, j.sync, func(f *os.File) (err error) {
		size, number, err = j.fill(f, records)
		return err
	})
	if err != nil {
		return fmt.Errorf("journal: the former content stays: %w", err)
	}
	if j.file != nil {
		_ = j.file.Close() // its content is in the new one
	}
	j.file, j.number = f, number
	j.size.Store(size)
	j.begun.Store(size)
	if err := syncFolder(filepath.Dir(j.path)); err != nil {
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

// ReplaceFile replaces a file atomically: after a crash it has the former
// content or the new one, and once ReplaceFile returns the new one. The caller
// keeps other processes out of the folder, see Lock.
func ReplaceFile(path string, data []byte) error {
	f, err := replaceFile(path, (*os.File).Sync, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncFolder(filepath.Dir(path)))
}

// replaceFile fills a new file, syncs it and renames it to path. It returns the
// open file. The caller syncs the folder. A leftover file of a process that
// ended meanwhile is overwritten.
func replaceFile(path string, sync, fill func(*os.File) error) (*os.File, error) {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err = fill(f); err == nil {
		err = sync(f)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(next))
	}
	return f, nil
}

// syncFolder makes the entries of a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
