package osdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
