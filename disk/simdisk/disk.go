// Package simdisk is a disk.Folder in memory that fails as disks do. The
// simulator and the tests of package journal use it.
//
// A Disk outlives the processes of a machine, and each process has a Mount. At
// the end of a process no change is lost. At a power loss a file keeps what was
// synced, and of each sector of 512 bytes that was not, the former or the new
// content; where the file had none, zeros. Names change in the order in which
// they were changed, and a random number of the last changes that were not
// synced is lost.
package simdisk

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
)

// Disk is the storage of one machine. It is not safe for concurrent use.
type Disk struct {
	// Faults are those of the present.
	Faults Faults

	rng     *rand.Rand
	names   map[string]*file // as processes see them
	durable map[string]*file // as a power loss leaves them
	changes []change         // of names, since they were synced
	mounts  []*Mount         // of processes that run
}

// Faults are what fails on a disk.
type Faults struct {
	// Write and Sync are the errors of the writes and syncs that fail, nil for
	// none.
	Write, Sync error
	// PPM is how many of them fail in a million, 0 for all.
	PPM int
	// Full makes no room for further bytes.
	Full bool
}

// change gives a file a name, or none the name, and takes a former one away.
type change struct {
	name   string
	file   *file // nil for none
	former string
}

func (c change) apply(names map[string]*file) {
	delete(names, c.former)
	if names[c.name] = c.file; c.file == nil {
		delete(names, c.name)
	}
}

// maxChanges bounds the changes of names that are not durable. The system
// writes the oldest ones at some time.
const maxChanges = 100

// New returns an empty disk that draws from rng.
func New(rng *rand.Rand) *Disk {
	return &Disk{rng: rng, names: map[string]*file{}, durable: map[string]*file{}}
}

// Clone returns another disk with the same content, such as a copy that was
// taken for a backup. All of it is durable there.
func (d *Disk) Clone() *Disk {
	c := New(d.rng)
	copies := map[*file]*file{}
	for name, f := range d.names {
		if copies[f] == nil {
			copies[f] = newFile(f.data)
		}
		c.names[name], c.durable[name] = copies[f], copies[f]
	}
	return c
}

// PowerLoss ends all processes and loses unsynced data: each sector except for
// a share in parts per million, and a random number of the latest changes of
// names. With a share of 0 all unsynced changes of names are lost.
func (d *Disk) PowerLoss(ppm int) {
	for _, m := range slices.Clone(d.mounts) {
		m.End()
	}
	if ppm > 0 {
		d.syncNames(d.rng.IntN(len(d.changes) + 1))
	}
	d.names, d.changes = maps.Clone(d.durable), nil
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		d.names[name].losePower(d.rng, ppm)
	}
}

// Names returns the names of the files, sorted.
func (d *Disk) Names() []string { return slices.Sorted(maps.Keys(d.names)) }

// FlipBit changes a bit of a file, while no process runs. It returns false for
// a file without bytes, or none.
func (d *Disk) FlipBit(name string) bool {
	f := d.names[name]
	if f == nil || len(f.data) == 0 {
		return false
	}
	f.data[d.rng.IntN(len(f.data))] ^= 1 << d.rng.IntN(8)
	*f = *newFile(f.data)
	return true
}

// Truncate cuts a file somewhere, while no process runs. It returns false for a
// file without bytes, or none.
func (d *Disk) Truncate(name string) bool {
	f := d.names[name]
	if f == nil || len(f.data) == 0 {
		return false
	}
	*f = *newFile(f.data[:d.rng.IntN(len(f.data))])
	return true
}

// Copy replaces a file by what another disk has under the name, while no
// process runs. The copy is durable, and so is it that there is none.
func (d *Disk) Copy(from *Disk, name string) {
	d.Remove(name)
	if f := from.names[name]; f != nil {
		c := newFile(f.data)
		d.names[name], d.durable[name] = c, c
	}
}

// Remove removes a file, while no process runs. That is durable, with all
// changes of names before it: no loss of power brings the file back.
func (d *Disk) Remove(name string) {
	d.syncNames(len(d.changes))
	delete(d.names, name)
	delete(d.durable, name)
}

// put changes names.
func (d *Disk) put(c change) {
	c.apply(d.names)
	if d.changes = append(d.changes, c); len(d.changes) > maxChanges {
		d.syncNames(1)
	}
}

// syncNames makes the first n changes of names durable.
func (d *Disk) syncNames(n int) {
	for _, c := range d.changes[:n] {
		c.apply(d.durable)
	}
	d.changes = slices.Delete(d.changes, 0, n)
}

// find returns a file.
func (d *Disk) find(op, name string) (*file, error) {
	if f := d.names[name]; f != nil {
		return f, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// fails returns err if it hits this time.
func (d *Disk) fails(err error) error {
	if err == nil || d.Faults.PPM > 0 && d.rng.IntN(1_000_000) >= d.Faults.PPM {
		return nil
	}
	return err
}
