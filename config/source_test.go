package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/limits"
)

// tree makes files in a folder of the test's: "a/b" holds "a/b", a name that
// ends in "/" is a folder, "a -> b" a symbolic link.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		name, target, link := strings.Cut(name, " -> ")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case link:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o700)
		default:
			err = os.WriteFile(path, []byte(name), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns what Files finds below dir: "name" or, for a file whose content
// came from another name, "name: content".
func read(t *testing.T, dir string, names Names) (found, warnings []string, err error) {
	t.Helper()
	files, warnings, err := Files(dir, names)
	for _, f := range files {
		name, err := filepath.Rel(dir, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if string(f.Data) != name {
			name += ": " + string(f.Data)
		}
		found = append(found, name)
	}
	for i := range warnings {
		warnings[i] = strings.ReplaceAll(warnings[i], dir+"/", "")
	}
	return found, warnings, err
}

func TestFilesOfAFolder(t *testing.T) {
	everything := []string{
		"b.yaml", "a.yml", "sub/c.yaml", "sub/deep/d.yaml", "README.md", "sub/x.json", "bare",
		".hidden.yaml", ".git/config.yaml", ".git/config", "upper.YAML",
	}
	configMap := []string{
		"..2024_01/tiers.yaml", "..2024_01/org.yaml", "..data -> ..2024_01",
		"tiers.yaml -> ..data/tiers.yaml", "org.yaml -> ..data/org.yaml",
	}
	for _, tc := range []struct {
		name     string
		tree     []string
		names    Names
		want     []string
		warnings []string
	}{
		{
			"yaml", everything, NamesYAML,
			[]string{"a.yml", "b.yaml", "sub/c.yaml", "sub/deep/d.yaml"},
			[]string{"not read as limits, only *.yaml and *.yml are: README.md, bare, sub/x.json, upper.YAML"},
		},
		{
			"visible", everything, NamesVisible,
			[]string{
				"README.md", "a.yml", "b.yaml", "bare", "sub/c.yaml", "sub/deep/d.yaml", "sub/x.json",
				"upper.YAML",
			},
			nil,
		},
		{
			"all", everything, NamesAll,
			[]string{
				".git/config", ".git/config.yaml", ".hidden.yaml", "README.md", "a.yml", "b.yaml", "bare",
				"sub/c.yaml", "sub/deep/d.yaml", "sub/x.json", "upper.YAML",
			},
			nil,
		},
		{
			"ConfigMap, yaml", configMap, NamesYAML,
			[]string{"org.yaml: ..2024_01/org.yaml", "tiers.yaml: ..2024_01/tiers.yaml"},
			nil,
		},
		// Upstream reads each file twice here and refuses the domain.
		{
			"ConfigMap, all", configMap, NamesAll,
			[]string{"org.yaml: ..2024_01/org.yaml", "tiers.yaml: ..2024_01/tiers.yaml"},
			nil,
		},
		{
			"link to a folder",
			[]string{"a.yaml", "real/b.yaml", "again -> real", "up -> ."},
			NamesYAML,
			[]string{"a.yaml", "real/b.yaml"},
			[]string{"links to folders are not followed: again, up"},
		},
		{
			"many that do not count",
			[]string{"a.yaml", "1", "2", "3", "4", "5", "6", "7"},
			NamesYAML,
			[]string{"a.yaml"},
			[]string{"not read as limits, only *.yaml and *.yml are: 1, 2, 3, 4, 5 and 2 more"},
		},
	} {
		got, warnings, err := read(t, tree(t, tc.tree...), tc.names)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestFilesOfOneFile(t *testing.T) {
	dir := tree(t, "limits.txt", "linked.yaml -> limits.txt")
	for _, name := range []string{"limits.txt", "linked.yaml"} {
		path := filepath.Join(dir, name)
		got, warnings, err := Files(path, NamesYAML)
		want := []limits.File{{Name: path, Data: []byte("limits.txt")}}
		if err != nil || warnings != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: got %v, %v, %v: a file that is named counts whatever its name", name, got, warnings, err)
		}
	}
}

func TestFilesRefuses(t *testing.T) {
	large := tree(t, "a.yaml")
	if err := os.Truncate(filepath.Join(large, "a.yaml"), limits.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	pipe := tree(t)
	if err := syscall.Mkfifo(filepath.Join(pipe, "a.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dir, name, want string
	}{
		{tree(t), "missing", "missing: no such file or directory"},
		{tree(t), "", ": no limits in this folder: put a *.yaml or *.yml file there"},
		{tree(t, ".a.yaml", ".sub/b.yaml"), "", ": no limits in this folder: put a *.yaml or *.yml file there"},
		{tree(t, "a.json", "b.txt"), "", ": no limits in this folder: of its 2 files none ends in .yaml or .yml"},
		{tree(t, "a.yaml -> gone"), "", "a.yaml: no such file or directory"},
		{tree(t, "loop -> loop"), "loop", "loop: too many levels of symbolic links"},
		{large, "", "a.yaml: is larger than the 4194304 bytes that are read at most: split it; with MERGE_DOMAIN_CONFIG=true a domain may be in several files"},
		{pipe, "", "a.yaml: is a pipe, not a regular file"},
		{pipe, "a.yaml", "a.yaml: is a pipe, not a regular file"},
	} {
		path := filepath.Join(tc.dir, tc.name)
		files, _, err := Files(path, NamesYAML)
		if err == nil || !strings.HasSuffix(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), tc.dir) {
			t.Errorf("%s: got %v, want ...%s", path, err, tc.want)
		}
		if files != nil {
			t.Errorf("%s: both files and an error", path)
		}
	}
}

func TestMissingPathIsErrNotExist(t *testing.T) {
	if _, _, err := Files(filepath.Join(t.TempDir(), "x"), NamesYAML); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist in it", err)
	}
}

func TestFilesIsBounded(t *testing.T) {
	var names []string
	for i := range MaxFiles + 1 {
		names = append(names, fmt.Sprintf("%04d.yaml", i))
	}
	dir := tree(t, names...)
	if _, _, err := Files(dir, NamesYAML); err == nil || !strings.Contains(err.Error(), "more than 1000 files") {
		t.Errorf("%d files: got %v", len(names), err)
	}
	if err := os.Remove(filepath.Join(dir, names[0])); err != nil {
		t.Fatal(err)
	}
	if files, _, err := Files(dir, NamesYAML); err != nil || len(files) != MaxFiles {
		t.Errorf("%d files: got %d, %v", MaxFiles, len(files), err)
	}
}

func TestFilesAreBoundedTogether(t *testing.T) {
	dir := t.TempDir()
	for i := range MaxTotalBytes/limits.MaxFileBytes + 1 {
		path := filepath.Join(dir, fmt.Sprintf("%02d.yaml", i))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, limits.MaxFileBytes); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := Files(dir, NamesYAML)
	if err == nil || !strings.Contains(err.Error(), "more than 64 MiB together") {
		t.Errorf("got %v", err)
	}
}
