package disk

import "errors"

// ReplaceFile replaces a file atomically: after a crash it has the former
// content or the new one, and once ReplaceFile returns the new one. The caller
// keeps other processes out of the folder, see Folder.Lock.
func ReplaceFile(dir Folder, name string, data []byte) error {
	f, err := Replace(dir, name, func(f File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), dir.Sync())
}

// Replace fills a new file, syncs it and gives it the name. It returns the
// open file. The caller syncs the folder. A leftover file of a process that
// ended meanwhile is overwritten.
func Replace(dir Folder, name string, fill func(File) error) (File, error) {
	next := name + ".new"
	f, err := dir.Create(next)
	if err != nil {
		return nil, err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = dir.Rename(next, name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), dir.Remove(next))
	}
	return f, nil
}
