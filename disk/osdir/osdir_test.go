package osdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/disk"
)

// TestReplaceFile replaces a file whatever a process left that ended before.
func TestReplaceFile(t *testing.T) {
	dir := Dir(t.TempDir())
	const name = "record"
	for i, content := range []string{"first", "second and longer", "", "last"} {
		if err := os.WriteFile(dir.Path(name+".new"), []byte("the rest of a write that was cut short"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := disk.ReplaceFile(dir, name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := dir.ReadFile(name); err != nil || string(got) != content {
			t.Errorf("write %d: %q, %v, want %q", i, got, err, content)
		}
		if _, err := dir.Size(name + ".new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("write %d left a file behind: %v", i, err)
		}
	}
	if err := disk.ReplaceFile(Dir(dir.Path(name)), "in a file", nil); err == nil {
		t.Error("a file in a file was written")
	}
}

// TestLock locks a folder that is not there yet, for one process at a time.
func TestLock(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "not", "there"))
	lock, err := dir.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Lock("lock"); err == nil || !strings.Contains(err.Error(), "another process uses "+string(dir)) {
		t.Errorf("locked twice: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if lock, err = dir.Lock("lock"); err != nil {
		t.Errorf("locked after the end of the process: %v", err)
	}
	lock.Close()
}

// TestMoveAside keeps the latest folders with former files, and all that is not
// numbered. Where there is no file, it leaves all as it was.
func TestMoveAside(t *testing.T) {
	dir := Dir(t.TempDir())
	for _, name := range []string{"0-of-an-operator", "999998", "999999"} {
		if err := os.MkdirAll(dir.Path(filepath.Join(Former, name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for n := range keptFormer - 1 {
		for _, name := range []string{"a", "b"} {
			if err := os.WriteFile(dir.Path(name), []byte{byte(n)}, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		into, err := dir.MoveAside("a", "missing", "b")
		if want := dir.Path(filepath.Join(Former, numbered(1_000_000+n))); err != nil || into != want {
			t.Fatalf("moved into %q, %v, want %q", into, err, want)
		}
		for _, name := range []string{"a", "b"} {
			if got, err := os.ReadFile(filepath.Join(into, name)); err != nil || got[0] != byte(n) {
				t.Errorf("moved %v, %v, want %d", got, err, n)
			}
		}
		if into, err := dir.MoveAside("a", "b"); into != "" || err != nil {
			t.Errorf("moved nothing into %q, %v", into, err)
		}
	}
	all, err := os.ReadDir(dir.Path(Former))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, e.Name())
	}
	if want := []string{"0-of-an-operator", "1000000", "1000001", "1000002", "999999"}; !slices.Equal(got, want) {
		t.Errorf("%q: want %q", got, want)
	}
}
