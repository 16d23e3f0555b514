package simdisk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/georld/rld/disk"
)

var (
	errEnded = errors.New("the process has ended")
	errFull  = errors.New("no space left on device")
)

// Mount is the folder as one process sees it.
type Mount struct {
	disk  *Disk
	locks []string
	left  int // calls until the process ends
	ended bool
}

var _ disk.Folder = (*Mount)(nil)

// endless is more calls than a process makes.
const endless = 1 << 62

// Mount returns the folder for a new process.
func (d *Disk) Mount() *Mount {
	m := &Mount{disk: d, left: endless}
	d.mounts = append(d.mounts, m)
	return m
}

// End ends the process: its calls fail from now on, and its locks are released.
func (m *Mount) End() {
	m.ended, m.locks = true, nil
	m.disk.mounts = slices.DeleteFunc(m.disk.mounts, func(o *Mount) bool { return o == m })
}

// EndAfter ends the process after a number of calls. A write that is the last
// call is cut short.
func (m *Mount) EndAfter(calls int) { m.left = calls }

// call begins a call.
func (m *Mount) call() error {
	if m.left--; m.left < 0 && !m.ended {
		m.End()
	}
	if m.ended {
		return errEnded
	}
	return nil
}

// Path implements disk.Folder.
func (m *Mount) Path(name string) string { return "/simulated/" + name }

// Lock implements disk.Folder.
func (m *Mount) Lock(name string) (io.Closer, error) {
	if err := m.call(); err != nil {
		return nil, err
	}
	for _, o := range m.disk.mounts {
		if slices.Contains(o.locks, name) {
			return nil, fmt.Errorf("%s: %w", m.Path(name), disk.ErrInUse)
		}
	}
	m.locks = append(m.locks, name)
	return lock{m, name}, nil
}

type lock struct {
	m    *Mount
	name string
}

// Close implements io.Closer.
func (l lock) Close() error {
	l.m.locks = slices.DeleteFunc(l.m.locks, func(name string) bool { return name == l.name })
	return nil
}

// Size implements disk.Folder.
func (m *Mount) Size(name string) (int64, error) {
	if err := m.call(); err != nil {
		return 0, err
	}
	f, err := m.disk.find("stat", name)
	if err != nil {
		return 0, err
	}
	return int64(len(f.data)), nil
}

// ReadFile implements disk.Folder.
func (m *Mount) ReadFile(name string) ([]byte, error) {
	if err := m.call(); err != nil {
		return nil, err
	}
	f, err := m.disk.find("read", name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(f.data), nil
}

// Create implements disk.Folder.
func (m *Mount) Create(name string) (disk.File, error) {
	if err := m.call(); err != nil {
		return nil, err
	}
	if err := m.room(); err != nil {
		return nil, err
	}
	f := m.disk.names[name]
	if f == nil {
		f = new(file)
		m.disk.put(change{name: name, file: f})
	}
	f.data, f.dirty = nil, 0
	return &open{m, f}, nil
}

// Link implements disk.Folder.
func (m *Mount) Link(name, second string) error {
	if err := m.call(); err != nil {
		return err
	}
	f, err := m.disk.find("link", name)
	switch {
	case err != nil:
		return err
	case m.disk.names[second] != nil:
		return &fs.PathError{Op: "link", Path: second, Err: fs.ErrExist}
	}
	m.disk.put(change{name: second, file: f})
	return nil
}

// Rename implements disk.Folder.
func (m *Mount) Rename(from, to string) error {
	if err := m.call(); err != nil {
		return err
	}
	f, err := m.disk.find("rename", from)
	if err != nil {
		return err
	}
	m.disk.put(change{name: to, file: f, former: from})
	return nil
}

// Remove implements disk.Folder.
func (m *Mount) Remove(name string) error {
	if err := m.call(); err != nil {
		return err
	}
	if _, err := m.disk.find("remove", name); err != nil {
		return err
	}
	m.disk.put(change{name: name})
	return nil
}

// Sync implements disk.Folder.
func (m *Mount) Sync() error {
	if err := m.call(); err != nil {
		return err
	}
	if err := m.disk.fails(m.disk.Faults.Sync); err != nil {
		return err
	}
	m.disk.syncNames(len(m.disk.changes))
	return nil
}

// room returns an error if the disk is full.
func (m *Mount) room() error {
	if m.disk.Faults.Full {
		return errFull
	}
	return nil
}

// open is a file that a process has open.
type open struct {
	m *Mount
	f *file
}

// Write implements io.Writer.
func (o *open) Write(b []byte) (int, error) { return o.WriteAt(b, int64(len(o.f.data))) }

// WriteAt implements io.WriterAt, at most at the end of the file.
func (o *open) WriteAt(b []byte, at int64) (int, error) {
	d := o.m.disk
	last := o.m.left == 1
	err := o.m.call()
	if err == nil && at+int64(len(b)) > int64(len(o.f.data)) {
		err = o.m.room()
	}
	if err == nil {
		err = d.fails(d.Faults.Write)
	}
	switch {
	case o.m.ended:
		return 0, err
	case last: // the kernel ends it after a part
		err = errEnded
	}
	if err != nil {
		b = b[:d.rng.IntN(len(b)+1)]
	}
	o.f.write(b, int(at))
	return len(b), err
}

// Sync implements disk.File.
func (o *open) Sync() error {
	if err := o.m.call(); err != nil {
		return err
	}
	d := o.m.disk
	if err := d.fails(d.Faults.Sync); err != nil {
		o.f.failSync(d.rng)
		return err
	}
	o.f.settle()
	return nil
}

// Close implements io.Closer.
func (o *open) Close() error { return nil }
