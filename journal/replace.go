package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/georld/rld/disk"
)

// replace replaces the file by a new one with records.
func (j *Journal) replace(records iter.Seq[[]byte]) error {
	var size int64
	var number uint64
	f, err := disk.Replace(j.cfg.Folder, j.cfg.Name, func(f disk.File) (err error) {
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
	j.size, j.begun = size, size
	if err := j.cfg.Folder.Sync(); err != nil {
		return j.fail(err) // after a crash either file may exist
	}
	return nil
}

// fill writes a header and records, and returns their size and the number of
// the next batch.
func (j *Journal) fill(f disk.File, records iter.Seq[[]byte]) (int64, uint64, error) {
	b := appendHeader(nil, j.cfg.Owner, 0)
	size, at, number := int64(0), 0, uint64(0)
	var err error
	flush := func() bool {
		if size += int64(len(b)); size > j.cfg.MaxBytes {
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
	_, err = f.WriteAt(appendHeader(nil, j.cfg.Owner, size), 0)
	return size, number, err
}

// keepFormer gives the file a second name, which stays when the file is
// replaced.
func (j *Journal) keepFormer() error {
	former := j.cfg.Name + Former
	if err := j.cfg.Folder.Remove(former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	if err := j.cfg.Folder.Link(j.cfg.Name, former); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Former is the suffix of a file that Begin has kept.
const Former = ".former"
