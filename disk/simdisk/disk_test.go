package simdisk

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/disk"
)

const (
	nothing    = 0 // of what was not synced survives
	everything = 1_000_000
)

var errBroken = errors.New("broken")

func newDisk() *Disk { return New(rand.New(rand.NewPCG(1, 2))) }

// create creates a file with synced content and a synced name.
func create(t *testing.T, m *Mount, name, content string) disk.File {
	t.Helper()
	f, err := m.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, content)
	if err := errors.Join(f.Sync(), m.Sync()); err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, f disk.File, content string) {
	t.Helper()
	if n, err := f.Write([]byte(content)); n != len(content) || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

// want checks the content of the files that a new process sees.
func want(t *testing.T, what string, d *Disk, files map[string]string) {
	t.Helper()
	m := d.Mount()
	defer m.End()
	if got := len(d.Names()); got != len(files) {
		t.Errorf("%s: files %q", what, d.Names())
	}
	for name, content := range files {
		if data, err := m.ReadFile(name); err != nil || string(data) != content {
			t.Errorf("%s: %s has %q, %v, want %q", what, name, data, err, content)
		}
	}
}

// TestUnsynced ends the process, and then the machine, after writes that were
// not synced.
func TestUnsynced(t *testing.T) {
	long := strings.Repeat("x", 3*sectorBytes)
	for survives, after := range map[int]string{nothing: "synced, ", everything: "synced, " + long} {
		d := newDisk()
		m := d.Mount()
		write(t, create(t, m, "a", "synced, "), long)
		m.End()
		want(t, "after the process", d, map[string]string{"a": "synced, " + long})
		d.PowerLoss(survives)
		want(t, "after the machine", d, map[string]string{"a": after})
	}
}

// TestNames loses the changes of names that were not synced, and never half of
// a rename.
func TestNames(t *testing.T) {
	d := newDisk()
	m := d.Mount()
	create(t, m, "a", "old")
	create(t, m, "a.new", "new")
	if err := errors.Join(m.Link("a", "former"), m.Rename("a.new", "a")); err != nil {
		t.Fatal(err)
	}
	want(t, "before", d, map[string]string{"a": "new", "former": "old"})
	d.PowerLoss(nothing)
	want(t, "after", d, map[string]string{"a": "old", "a.new": "new"})

	m = d.Mount()
	if err := errors.Join(m.Rename("a.new", "a"), m.Sync(), m.Remove("a")); err != nil {
		t.Fatal(err)
	}
	if err := m.Link("a", "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("link of no file: %v", err)
	}
	d.PowerLoss(nothing)
	want(t, "after a sync", d, map[string]string{"a": "new"})
	if err := m.Sync(); err == nil {
		t.Error("a process outlived the power loss")
	}
}

// TestRemovedFileIsGone removes a file whose name was not synced yet.
func TestRemovedFileIsGone(t *testing.T) {
	d := newDisk()
	m := d.Mount()
	create(t, m, "a.new", "new")
	if err := m.Rename("a.new", "a"); err != nil {
		t.Fatal(err)
	}
	m.End()
	d.Remove("a")
	d.PowerLoss(everything)
	want(t, "after", d, map[string]string{})
}

// TestFailedSync shows content that a power loss takes although a later sync
// succeeds.
func TestFailedSync(t *testing.T) {
	d := newDisk()
	m := d.Mount()
	f := create(t, m, "a", strings.Repeat("a", sectorBytes))
	write(t, f, strings.Repeat("b", 64*sectorBytes))
	d.Faults.Sync = errBroken
	if err := f.Sync(); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	d.Faults = Faults{}
	write(t, f, "c")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	before, _ := m.ReadFile("a")
	d.PowerLoss(nothing)
	after, _ := d.Mount().ReadFile("a")
	if len(after) != len(before) || slices.Equal(after, before) || after[0] != 'a' || after[len(after)-1] != 'c' {
		t.Errorf("%d bytes after the power loss, %d before, equal %v", len(after), len(before), slices.Equal(after, before))
	}
}

// TestEndAfter ends a process in the middle of its calls.
func TestEndAfter(t *testing.T) {
	d := newDisk()
	m := d.Mount()
	if _, err := m.Lock("lock"); err != nil {
		t.Fatal(err)
	}
	other := d.Mount()
	if _, err := other.Lock("lock"); err == nil {
		t.Error("locked twice")
	}
	f := create(t, m, "a", "")
	m.EndAfter(1)
	if n, err := f.Write([]byte("cut short")); err == nil {
		t.Errorf("the last write: %d bytes, %v", n, err)
	}
	if _, err := m.ReadFile("a"); err == nil {
		t.Error("a call after the end")
	}
	if _, err := other.Lock("lock"); err != nil {
		t.Errorf("the lock of a process that has ended: %v", err)
	}
}

// TestFull refuses bytes and files, and keeps what is there.
func TestFull(t *testing.T) {
	d := newDisk()
	m := d.Mount()
	f := create(t, m, "a", "kept")
	d.Faults.Full = true
	if _, err := m.Create("b"); err == nil {
		t.Error("a file was created")
	}
	if _, err := f.WriteAt([]byte("K"), 0); err != nil {
		t.Errorf("no byte more: %v", err)
	}
	d.Faults = Faults{}
	c := d.Clone()
	c.FlipBit("a")
	want(t, "the original of a copy", d, map[string]string{"a": "Kept"})
	if data, _ := c.Mount().ReadFile("a"); string(data) == "Kept" || len(data) != 4 {
		t.Errorf("a flipped bit left %q", data)
	}
	if d.Truncate("none") || d.FlipBit("none") {
		t.Error("a file that is not there was changed")
	}
}
