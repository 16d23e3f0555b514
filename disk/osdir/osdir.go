// Package osdir is the disk.Folder of the operating system.
package osdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/georld/rld/disk"
)

// Dir is the path of a folder. It is safe for concurrent use.
type Dir string

var _ disk.Folder = Dir("")

// Path implements disk.Folder.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// Lock implements disk.Folder. Only this user may read the files that it
// creates.
func (d Dir) Lock(name string) (io.Closer, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.Path(name), os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("another process uses %s: give each daemon a folder of its own: %w: %w", d, disk.ErrInUse, err), f.Close())
	}
	return f, nil
}

// Size implements disk.Folder.
func (d Dir) Size(name string) (int64, error) {
	info, err := os.Stat(d.Path(name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// ReadFile implements disk.Folder. It does not follow a link.
func (d Dir) ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(d.Path(name), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// Create implements disk.Folder. The file is a new one: a link with its name,
// which another user may have left, is dropped and not followed.
func (d Dir) Create(name string) (disk.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(d.Path(name), flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if info, is := os.Lstat(d.Path(name)); is == nil && info.IsDir() {
			return nil, err
		}
		if err := os.Remove(d.Path(name)); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(d.Path(name), flags, 0o600)
	}
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Link implements disk.Folder.
func (d Dir) Link(name, second string) error { return os.Link(d.Path(name), d.Path(second)) }

// Rename implements disk.Folder.
func (d Dir) Rename(from, to string) error { return os.Rename(d.Path(from), d.Path(to)) }

// Remove implements disk.Folder.
func (d Dir) Remove(name string) error { return os.Remove(d.Path(name)) }

// Sync implements disk.Folder.
func (d Dir) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type file struct{ *os.File }

// Sync implements disk.File.
func (f file) Sync() error { return syncData(f.File) }
