package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLinksStayInTheFolder: a link in the folder of limits that leaves it is an
// error without a byte of the file that it names, and links inside, as of a
// ConfigMap, are followed.
func TestLinksStayInTheFolder(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	write(t, outside, "hunter2")
	for _, target := range []string{outside, "../../../../../../../../../.." + outside, "/etc/shadow", "/etc/passwd"} {
		for _, name := range []string{"leak.yaml", "sub/leak.yaml"} {
			dir := tree(t, "a.yaml", name+" -> "+target)
			files, _, err := Files(dir, NamesYAML)
			if files != nil || err == nil || !strings.Contains(err.Error(), "leak.yaml: is a link that leaves the folder of limits") {
				t.Errorf("%s -> %s: %d files, %v", name, target, len(files), err)
			} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "root:") {
				t.Errorf("%s -> %s: the error has the text of the file: %v", name, target, err)
			}
		}
	}
	dir := tree(t, "..2025_01/limits.yaml", "..data -> ..2025_01", "limits.yaml -> ..data/limits.yaml", "sub/again.yaml -> ../limits.yaml")
	found, _, err := read(t, dir, NamesYAML)
	if want := "limits.yaml: ..2025_01/limits.yaml sub/again.yaml: ..2025_01/limits.yaml"; err != nil || strings.Join(found, " ") != want {
		t.Errorf("links inside: %v, %v, want %s", found, err, want)
	}
}

// TestStateIsOurs: a folder of state that all users can write, and links in it,
// are refused. A group that can write, and another owner, give a warning.
func TestStateIsOurs(t *testing.T) {
	for _, tc := range []struct {
		name          string
		change        func(dir string) error
		warning, want string
	}{
		{"as rld makes it", func(string) error { return nil }, "", ""},
		{"folder for all", func(dir string) error { return os.Chmod(dir, 0o777) }, "", "is writable by everybody (mode 0777): chmod 0700 it"},
		{"folder for a group", func(dir string) error { return os.Chmod(dir, 0o770) }, "is writable by its group (mode 0770): chmod 0700 it", ""},
		{"file for all", func(dir string) error { return os.Chmod(dir+"/rights.rld", 0o606) }, "", "rights.rld: is writable by everybody (mode 0606): chmod 0600 it"},
		{"link", func(dir string) error { return os.Symlink("/etc/passwd", dir+"/control.rld") }, "", "control.rld: is a link, and files of state are not"},
		{"link for the lock", func(dir string) error { return os.Symlink("/etc/passwd", dir+"/lock") }, "", "lock: is a link"},
		{"link to nothing", func(dir string) error { return os.Symlink("/nowhere", dir+"/rights.rld.new") }, "", "rights.rld.new: is a link"},
		{"link of another file", func(dir string) error { return os.Symlink("/etc/passwd", dir+"/notes") }, "", ""},
		{"folder of a file system", func(dir string) error { return os.Mkdir(dir+"/lost+found", 0o777) }, "", ""},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "rights.rld"), "x")
		if err := tc.change(dir); err != nil {
			t.Fatal(err)
		}
		c := Default()
		c.State.Dir = dir
		for _, check := range []func() ([]string, error){c.CheckState, c.CheckStateFiles} {
			warnings, err := check()
			all := strings.Join(warnings, " ")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
			}
			if !strings.Contains(all, tc.warning) || (all == "") != (tc.warning == "") {
				t.Errorf("%s: warnings %q, want %q", tc.name, all, tc.warning)
			}
		}
	}
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self := os.Geteuid()
	for owner, want := range map[int]string{0: "", self: "", self + 1: fmt.Sprintf("state.dir: d: belongs to user %d, ", self+1)} {
		warnings, err := checkMode("d", "0700", ownedBy{info, owner})
		all := strings.Join(warnings, " ")
		if err != nil || !strings.HasPrefix(all, want) || (all == "") != (want == "") {
			t.Errorf("of user %d: %q, %v, want %q", owner, all, err, want)
		}
	}
}

// ownedBy is a file of a user.
type ownedBy struct {
	fs.FileInfo
	user int
}

// Mode returns one without faults.
func (ownedBy) Mode() fs.FileMode { return 0o700 }

// Sys returns the owner alone.
func (o ownedBy) Sys() any { return &syscall.Stat_t{Uid: uint32(o.user)} }
