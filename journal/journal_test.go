package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/disk"
	"github.com/georld/rld/disk/osdir"
)

var me = Owner{Cluster: 9, Name: "eu-west/eu-0"}

const file = "test.rld"

// config is a journal in a real folder, with a tap.
func config(dir string) Config {
	return Config{Folder: &tap{Folder: osdir.Dir(dir)}, Name: file, Owner: me}
}

// tap calls a function in place of the syncs of files, or fails all writes.
type tap struct {
	disk.Folder
	sync  func(f *tappedFile) error // nil for none
	write error
}

// tapOf returns the tap of a journal that mustOpen opened.
func tapOf(j *Journal) *tap { return j.cfg.Folder.(*tap) }

func (t *tap) Create(name string) (disk.File, error) {
	f, err := t.Folder.Create(name)
	return &tappedFile{f, t, name, 0}, err
}

type tappedFile struct {
	disk.File
	tap  *tap
	name string // at its creation
	size int
}

func (f *tappedFile) Write(b []byte) (int, error) {
	if f.tap.write != nil {
		return 0, f.tap.write
	}
	n, err := f.File.Write(b)
	f.size += n
	return n, err
}

func (f *tappedFile) Sync() error {
	if f.tap.sync != nil {
		return f.tap.sync(f)
	}
	return f.File.Sync()
}

// pathOf returns the path of the file of a journal.
func pathOf(j *Journal) string { return j.cfg.Folder.Path(file) }

func mustOpen(t testing.TB, dir string) (*Journal, *Contents) {
	t.Helper()
	j, c, err := Open(config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j, c
}

func mustAppend(t testing.TB, j *Journal, records ...string) {
	t.Helper()
	if err := j.Append(asBytes(records)); err != nil {
		t.Fatal(err)
	}
}

func asBytes(records []string) (out [][]byte) {
	for _, r := range records {
		out = append(out, []byte(r))
	}
	return out
}

func asStrings(records [][]byte) (out []string) {
	for _, r := range records {
		out = append(out, string(r))
	}
	return out
}

func wantRecords(t testing.TB, what string, c *Contents, want ...string) {
	t.Helper()
	if got := asStrings(c.Records); !slices.Equal(got, want) {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
}

// stored returns the bytes of the file after it was closed.
func stored(t testing.TB, j *Journal) []byte {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(pathOf(j))
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(data)) != j.Size() {
		t.Fatalf("%d bytes, and says %d", len(data), j.Size())
	}
	return data
}

func TestAppendAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	j, c := mustOpen(t, dir)
	if !c.New || c.Cut != nil || len(c.Records) > 0 {
		t.Fatalf("new: %+v", c)
	}
	mustAppend(t, j)
	mustAppend(t, j, "a", "", "bc")
	mustAppend(t, j, strings.Repeat("x", 3*maxBatch), "d")
	mustAppend(t, j, "e")
	stored(t, j)
	for range 2 {
		var c *Contents
		j, c = mustOpen(t, dir)
		if c.New || c.Cut != nil {
			t.Fatalf("opened again: new %v, cut %+v", c.New, c.Cut)
		}
		wantRecords(t, "opened again", c, "a", "", "bc", strings.Repeat("x", 3*maxBatch), "d", "e")
		stored(t, j)
	}
	j, _ = mustOpen(t, dir)
	mustAppend(t, j, "f")
	stored(t, j)
	_, c = mustOpen(t, dir)
	wantRecords(t, "appended after", c, "a", "", "bc", strings.Repeat("x", 3*maxBatch), "d", "e", "f")
}

// TestEmptyIsNew: a journal that ended before its first record was stored may
// begin again.
func TestEmptyIsNew(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	stored(t, j)
	if j, c := mustOpen(t, dir); !c.New {
		t.Error("without records, and not new")
	} else {
		mustAppend(t, j, "")
		stored(t, j)
	}
	if _, c := mustOpen(t, dir); c.New {
		t.Error("with an empty record, and new")
	}
}

func TestForeign(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	data := stored(t, j)
	other := bytes.Clone(data)
	other[headVersion]++
	for _, tt := range []struct {
		name  string
		data  []byte
		owner Owner
		says  string
	}{
		{
			"another cluster", data,
			Owner{Cluster: 8, Name: me.Name},
			"it is from another cluster: it names 0000000000000009, want 0000000000000008",
		},
		{"another daemon", data, Owner{Cluster: 9, Name: "eu-1"}, `it is of daemon "eu-west/eu-0", want that of "eu-1"`},
		{"another release", other, me, "it has version 2, want 1"},
		{"another file", []byte("limits: []"), me, `it is no journal: it begins with "limits: ", want "rldjrnl\n"`},
	} {
		if err := os.WriteFile(pathOf(j), tt.data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := config(dir)
		c.Owner = tt.owner
		_, _, err := Open(c)
		var foreign *ForeignError
		if !errors.As(err, &foreign) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
		if after, _ := os.ReadFile(pathOf(j)); !bytes.Equal(after, tt.data) {
			t.Errorf("%s: the file was changed", tt.name)
		}
	}
	long := config(dir)
	long.Owner.Name = strings.Repeat("x", MaxNameBytes+1)
	if _, _, err := Open(long); err == nil {
		t.Error("a name that is too long is taken")
	}
}

// TestDamagedThenBegun: a damaged file is refused as often as it is opened and
// not touched. Begin keeps it beside the new one.
func TestDamagedThenBegun(t *testing.T) {
	data, _, _ := aJournal(t)
	data[len(data)-3] ^= 4
	dir := t.TempDir()
	path := filepath.Join(dir, file)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var damaged *DamagedError
		if _, _, err := Open(config(dir)); !errors.As(err, &damaged) || damaged.File != path {
			t.Fatalf("%v, want damage", err)
		}
	}
	former := data
	for range 2 {
		j, err := Begin(config(dir), slices.Values(asBytes([]string{"lost my memory"})))
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, j, "and went on")
		stored(t, j)
		if got, err := os.ReadFile(path + ".former"); err != nil || !bytes.Equal(got, former) {
			t.Errorf("former: %d bytes, %v, want %d", len(got), err, len(former))
		}
		j, c := mustOpenClosed(t, dir)
		wantRecords(t, "begun", c, "lost my memory", "and went on")
		former = stored(t, j)
	}
	dir = t.TempDir()
	j, err := Begin(config(dir), slices.Values(asBytes([]string{"x"})))
	if err != nil {
		t.Fatalf("where there is nothing: %v", err)
	}
	stored(t, j)
}

// TestNotAccepted: a file whose records its owner cannot use is not touched.
func TestNotAccepted(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	mustAppend(t, j, "a")
	mustAppend(t, j, "b") // a batch of its own, which a rewrite would join
	before := stored(t, j)
	refused := errors.New("of a later version")
	c := config(dir)
	c.Accept = func(records [][]byte) error {
		if got := asStrings(records); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("it gets %q", got)
		}
		return refused
	}
	if _, _, err := Open(c); !errors.Is(err, refused) {
		t.Fatalf("%v, want a refusal", err)
	}
	if after, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !bytes.Equal(after, before) {
		t.Errorf("%d bytes, %v: want the %d of before", len(after), err, len(before))
	}
}

func mustOpenClosed(t testing.TB, dir string) (*Journal, *Contents) {
	t.Helper()
	j, c := mustOpen(t, dir)
	stored(t, j)
	return j, c
}

func TestOnlyOnce(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	if _, _, err := Open(config(dir)); err == nil || !strings.Contains(err.Error(), "another process uses") {
		t.Fatalf("opened twice: %v", err)
	}
	if _, err := Begin(config(dir), slices.Values([][]byte{nil})); err == nil {
		t.Fatal("begun while open")
	}
	mustAppend(t, j, "a")
	stored(t, j)
	if err := j.Append(asBytes([]string{"b"})); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	if err := j.Rewrite(slices.Values(asBytes(nil))); !errors.Is(err, ErrClosed) {
		t.Errorf("rewrite after close: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	_, c := mustOpen(t, dir)
	wantRecords(t, "after all that", c, "a")
}

// TestFailedSync: after the first failure no record is accepted, and all
// acknowledged records are there when it is opened again.
func TestFailedSync(t *testing.T) {
	broken := errors.New("the disk is gone")
	for name, breakIt := range map[string]func(*tap){
		"sync":  func(t *tap) { t.sync = func(*tappedFile) error { return broken } },
		"write": func(t *tap) { t.write = broken },
	} {
		dir := t.TempDir()
		j, _ := mustOpen(t, dir)
		mustAppend(t, j, "acknowledged")
		breakIt(tapOf(j))
		var failed *FailedError
		if err := j.Append(asBytes([]string{"lost"})); !errors.As(err, &failed) {
			t.Fatalf("%s: %v", name, err)
		}
		if !errors.Is(failed, broken) {
			t.Errorf("%s: %v does not say why", name, failed)
		}
		tapOf(j).sync, tapOf(j).write = nil, nil
		for range 2 {
			if err := j.Append(asBytes([]string{"more"})); !errors.As(err, &failed) {
				t.Errorf("%s: appended after the failure: %v", name, err)
			}
			if err := j.Rewrite(slices.Values(asBytes([]string{"more"}))); !errors.As(err, &failed) {
				t.Errorf("%s: rewritten after the failure: %v", name, err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		_, c := mustOpen(t, dir)
		if got := asStrings(c.Records); got[0] != "acknowledged" || slices.Contains(got, "more") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestOneSync: an Append syncs once, when all of it is written; a Rewrite syncs
// the new file before it takes the place of the former one.
func TestOneSync(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	var synced []string
	tapOf(j).sync = func(f *tappedFile) error {
		synced = append(synced, fmt.Sprintf("%s %d", f.name, f.size))
		return f.File.Sync()
	}
	want := func(what string, all ...string) {
		t.Helper()
		if !slices.Equal(synced, all) {
			t.Errorf("%s: synced %q, want %q", what, synced, all)
		}
		synced = nil
	}
	mustAppend(t, j, "a", "b", "c")
	want("append", fmt.Sprintf("%s.new %d", file, j.Size())) // the name it was opened by
	if mustAppend(t, j); j.Size() == 0 {
		t.Error("empty")
	}
	want("append of nothing")
	if err := j.Rewrite(slices.Values(asBytes([]string{"a"}))); err != nil {
		t.Fatal(err)
	}
	want("rewrite", fmt.Sprintf("%s.new %d", file, j.Size()))
	broken := errors.New("the disk is gone")
	tapOf(j).sync = func(*tappedFile) error { return broken }
	if err := j.Rewrite(slices.Values(asBytes([]string{"x"}))); !errors.Is(err, broken) {
		t.Errorf("rewrite that was not synced: %v", err)
	}
	tapOf(j).sync = nil
	mustAppend(t, j, "b")
	stored(t, j)
	_, c := mustOpen(t, dir)
	wantRecords(t, "after", c, "a", "b")
}

// TestRewriteFails: the records stay, and the journal continues.
func TestRewriteFails(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	mustAppend(t, j, "stays")
	if err := os.Mkdir(pathOf(j)+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	var failed *FailedError
	if err := j.Rewrite(slices.Values(asBytes([]string{"x"}))); err == nil || errors.As(err, &failed) {
		t.Fatalf("written over a folder: %v", err)
	}
	if err := os.Remove(pathOf(j) + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := j.Rewrite(slices.Values([][]byte{make([]byte, MaxRecordBytes+1)})); err == nil || errors.As(err, &failed) {
		t.Fatalf("large record: %v", err)
	}
	mustAppend(t, j, "goes on")
	stored(t, j)
	_, c := mustOpen(t, dir)
	wantRecords(t, "after", c, "stays", "goes on")
}

func TestFull(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir)
	j.cfg.MaxBytes, j.cfg.CompactBytes = 4_000, 1_000
	n := 0
	for ; ; n++ {
		before := j.Size()
		if want := before > 1_000; j.ShouldCompact() != want {
			t.Fatalf("at %d bytes: should compact is %v, want %v", before, !want, want)
		}
		err := j.Append([][]byte{make([]byte, 100), make([]byte, 50)})
		if errors.Is(err, ErrFull) {
			if j.Size() != before {
				t.Fatal("full, and grew")
			}
			break
		}
		if err != nil || j.Size() > 4_000 {
			t.Fatalf("%v at %d bytes", err, j.Size())
		}
	}
	if n < 15 {
		t.Fatalf("full after %d appends, want some 22", n)
	}
	if err := j.Append([][]byte{make([]byte, MaxRecordBytes+1)}); err == nil || errors.Is(err, ErrFull) {
		t.Errorf("large record: %v", err)
	}
	if err := j.Rewrite(slices.Values([][]byte{make([]byte, 4_000)})); !errors.Is(err, ErrFull) {
		t.Errorf("rewrite beyond the bound: %v", err)
	}
	if err := j.Rewrite(slices.Values([][]byte{make([]byte, 1_500)})); err != nil {
		t.Fatal(err)
	}
	if size := j.Size(); size > 1_700 || j.ShouldCompact() {
		t.Errorf("%d bytes after a rewrite with 1500, should compact again: %v", size, j.ShouldCompact())
	}
	for !j.ShouldCompact() {
		mustAppend(t, j, strings.Repeat("x", 100))
	}
	if size := j.Size(); size < 3_000 || size > 3_500 {
		t.Errorf("to be compacted at %d bytes, want twice those of the rewrite", size)
	}
}

// TestHistories plays any history of appends, rewrites, crashes that tear the
// last batch, and openings.
func TestHistories(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		j, _, err := Open(config(dir))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { j.Close() }()
		unsynced := func(*tappedFile) error { return nil } // quicker; there is no crash of the machine here
		tapOf(j).sync = unsynced
		gen := rapid.SliceOfN(rapid.StringMatching(`[a-z]{0,30}`), 0, 4)
		var want []string
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"append", "append", "rewrite", "open", "crash"}).Draw(t, "step") {
			case "append":
				batch := gen.Draw(t, "records")
				if err := j.Append(asBytes(batch)); err != nil {
					t.Fatal(err)
				}
				want = append(want, batch...)
				continue
			case "rewrite":
				want = gen.Draw(t, "records")
				if err := j.Rewrite(slices.Values(asBytes(want))); err != nil {
					t.Fatal(err)
				}
				continue
			case "crash":
				torn := closeBatch(appendRecord(openBatch(nil), []byte("never acknowledged")), 0, j.number)
				n := rapid.IntRange(1, len(torn)-1).Draw(t, "bytes")
				if _, err := j.file.Write(torn[:n]); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			var c *Contents
			if j, c, err = Open(config(dir)); err != nil {
				t.Fatal(err)
			}
			tapOf(j).sync = unsynced
			if got := asStrings(c.Records); !slices.Equal(got, want) {
				t.Fatalf("opened: %q, want %q", got, want)
			}
		}
	})
}
