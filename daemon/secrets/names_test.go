package secrets_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/georld/rld/daemon/secrets"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/journal"
	"github.com/georld/rld/replica"
)

// TestNames: the files of a folder keep the names of the cluster when its
// secret is replaced, and are foreign to a daemon with another one.
func TestNames(t *testing.T) {
	folder := osdir.Dir(t.TempDir())
	a, b, c := []byte(secretOf("a")), []byte(secretOf("b")), []byte(secretOf("c"))
	open := func(s secrets.Secrets) map[string]uint64 {
		t.Helper()
		names, err := secrets.OpenNames(folder, s, "counts", "votes")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	first := open(secrets.Secrets{Current: a})
	if first["counts"] == first["votes"] || maps.Equal(first, open(secrets.Secrets{Current: b})) {
		t.Fatalf("the names %v", first)
	}
	for _, step := range []struct {
		store        secrets.Secrets
		open, refuse []secrets.Secrets
	}{
		{
			secrets.Secrets{Current: a, Next: b},
			[]secrets.Secrets{{Current: a}, {Current: a, Next: b}, {Current: b}, {Current: a, Next: c}},
			[]secrets.Secrets{{Current: c}},
		},
		{
			secrets.Secrets{Current: b},
			[]secrets.Secrets{{Current: b}, {Current: b, Next: c}, {Current: a, Next: b}},
			[]secrets.Secrets{{Current: a}, {Current: c}, {Current: a, Next: c}},
		},
	} {
		if err := secrets.StoreNames(folder, step.store, first); err != nil {
			t.Fatal(err)
		}
		for _, s := range step.open {
			if got := open(s); !maps.Equal(got, first) {
				t.Errorf("%v, want those of the first secret, %v", got, first)
			}
		}
		for _, s := range step.refuse {
			_, err := secrets.OpenNames(folder, s, "counts", "votes")
			if foreign, ok := errors.AsType[*journal.ForeignError](err); !ok || !strings.Contains(foreign.Error(), "give cluster.secret_file that secret") {
				t.Errorf("%s of %s: %v", s.Current[:1], step.store.Current[:1], err)
			}
		}
	}
}

// TestNamesOfNoFolder: a daemon without a folder stores nothing.
func TestNamesOfNoFolder(t *testing.T) {
	s := secrets.Secrets{Current: []byte(secretOf("a"))}
	names, err := secrets.OpenNames(nil, s, "counts")
	if err != nil || names["counts"] == 0 || secrets.StoreNames(nil, s, names) != nil {
		t.Errorf("%v, %v", names, err)
	}
}

// TestBadNames: a file that is no such file is an error that names it.
func TestBadNames(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{
		"":                               "unexpected end",
		"[]":                             "cannot unmarshal",
		`{"names": {}, "secrets": []}`:   "no name for the counts",
		strings.Repeat("x", 1<<20):       "want at most 65536",
		`{"names": {"counts": 1}, "se`:   "unexpected end",
		`{"names": {"counts": "a"}}`:     "cannot unmarshal",
		`{"names": {"counts": 1}}` + "x": "invalid character",
	} {
		if err := os.WriteFile(filepath.Join(dir, replica.SecretFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := secrets.OpenNames(osdir.Dir(dir), secrets.Secrets{Current: []byte(secretOf("a"))}, "counts")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), replica.SecretFile) {
			t.Errorf("%.40q: %v, want %q", content, err, want)
		}
	}
}
