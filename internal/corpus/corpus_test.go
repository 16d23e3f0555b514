package corpus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCorpus(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "corpus")
	c := open(t, folder)
	for _, step := range []struct {
		seed    uint64
		reached string
		first   string
	}{{7, "a b", "a b"}, {8, "b a", ""}, {9, "b c", "c"}, {7, "d", "d"}} {
		first, err := c.Add(step.seed, "f00d", strings.Fields(step.reached))
		if err != nil || strings.Join(first, " ") != step.first {
			t.Errorf("%+v: %v, %v", step, first, err)
		}
	}
	const want = header + "7 f00d a b d\n9 f00d c\n"
	if data, err := os.ReadFile(filepath.Join(folder, fileName)); err != nil || string(data) != want {
		t.Errorf("%v\n%s", err, data)
	}
	again := open(t, folder)
	if !slices.EqualFunc(again.Entries(), c.Entries(), func(a, b Entry) bool {
		return a.Seed == b.Seed && a.Hash == b.Hash && slices.Equal(a.First, b.First)
	}) {
		t.Errorf("read %v, wrote %v", again.Entries(), c.Entries())
	}
	if n := again.Keep(func(e Entry) bool { return e.Seed == 7 }); n != 1 {
		t.Errorf("%d dropped", n)
	}
	if first, err := again.Add(10, "f00d", []string{"a", "c"}); err != nil || !slices.Equal(first, []string{"c"}) {
		t.Errorf("what a dropped seed reached counts: %v, %v", first, err)
	}
}

func open(t *testing.T, folder string) *Corpus {
	t.Helper()
	c, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBadFiles(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, fileName)
	for text, want := range map[string]string{
		"# fine\n\n1 f00d\nseven f00d a\n": ":4: want a seed, a hash",
		"7\n":                              ":1: want a seed, a hash",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), file+want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Open(file); err == nil {
		t.Error("a file was taken for a folder")
	}
}
