package osdir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/georld/rld/disk"
)

// TestNoLinkIsFollowed: a link that another user left in the folder neither has
// a file elsewhere overwritten nor read.
func TestNoLinkIsFollowed(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := Dir(t.TempDir())
	for _, name := range []string{"rights.rld.new", "lock", "control.rld"} {
		if err := os.Symlink(victim, dir.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.ReplaceFile(dir, "rights.rld", []byte("new")); err != nil {
		t.Error(err)
	}
	if data, err := dir.ReadFile("rights.rld"); err != nil || string(data) != "new" {
		t.Errorf("%q, %v: want the new content", data, err)
	}
	if lock, err := dir.Lock("lock"); err == nil {
		t.Errorf("a link was locked: %v", lock.Close())
	}
	if data, err := dir.ReadFile("control.rld"); err == nil {
		t.Errorf("a link was read: %q", data)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("the file behind the link is %q, %v", data, err)
	}
}
