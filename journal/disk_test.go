package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/disk/simdisk"
)

var errDisk = errors.New("input/output error")

// diskWorld is a journal on a disk that fails, and the records that it may
// have: those that were acknowledged, then some of those on their way.
type diskWorld struct {
	t       *rapid.T
	disk    *simdisk.Disk
	mount   *simdisk.Mount
	journal *Journal
	sure    []string
	perhaps []string   // after sure, any number of the first ones
	other   [][]string // contents of rewrites that failed
	next    int
}

// open opens the journal in a new process and checks its content.
func (w *diskWorld) open() {
	w.mount = w.disk.Mount()
	j, c, err := Open(Config{Folder: w.mount, Name: file, Owner: me, MaxBytes: 3_000, CompactBytes: 500})
	if err != nil {
		w.t.Fatalf("the journal cannot be opened, although nothing changed it: %v", err)
	}
	got := asStrings(c.Records)
	if !w.fits(got) {
		w.t.Fatalf("%q is there, want %q and some of %q, or one of %q", got, w.sure, w.perhaps, w.other)
	}
	w.journal, w.sure, w.perhaps, w.other = j, got, nil, nil
}

func (w *diskWorld) fits(got []string) bool {
	if slices.ContainsFunc(w.other, func(o []string) bool { return slices.Equal(o, got) }) {
		return true
	}
	n := len(w.sure)
	return len(got) >= n && slices.Equal(got[:n], w.sure) && len(got) <= n+len(w.perhaps) &&
		slices.Equal(got[n:], w.perhaps[:len(got)-n])
}

// records draws some that were not there before.
func (w *diskWorld) records() (out []string) {
	for range rapid.IntRange(0, 3).Draw(w.t, "records") {
		w.next++
		out = append(out, fmt.Sprintf("%d%*s", w.next, rapid.IntRange(0, 700).Draw(w.t, "width"), "."))
	}
	return out
}

// append appends records. It returns false if the journal failed.
func (w *diskWorld) append() bool {
	records := w.records()
	switch err := w.journal.Append(asBytes(records)); {
	case err == nil:
		w.sure = append(w.sure, records...)
	case !errors.Is(err, ErrFull):
		w.perhaps = append(w.perhaps, records...)
		return false
	}
	return true
}

// rewrite rewrites the journal. It returns false if the journal failed.
func (w *diskWorld) rewrite() bool {
	records := w.records()
	err := w.journal.Rewrite(slices.Values(asBytes(records)))
	if err == nil {
		w.sure = records
		return true
	}
	w.other = append(w.other, records)
	_, failed := errors.AsType[*FailedError](err)
	return !failed
}

// TestDisks plays appends and rewrites on a disk that fails, fills up, loses
// power and has its processes killed at any call. What was acknowledged is
// there, nothing is there that was not written, and no file is damaged.
func TestDisks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		w := &diskWorld{t: t, disk: simdisk.New(rand.New(rand.NewPCG(seed, 0)))}
		w.open()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			write := rapid.SampledFrom([]func() bool{w.append, w.append, w.rewrite}).Draw(t, "write")
			w.disk.Faults = rapid.SampledFrom([]simdisk.Faults{
				{}, {}, {}, {Write: errDisk}, {Sync: errDisk}, {Full: true}, {Write: errDisk, Sync: errDisk, PPM: 300_000},
			}).Draw(t, "faults")
			if rapid.IntRange(0, 3).Draw(t, "end") == 0 {
				w.mount.EndAfter(rapid.IntRange(0, 8).Draw(t, "calls"))
				write()
				w.end()
			} else if !write() {
				w.end()
			}
		}
	})
}

// end ends the process or the machine, and starts another.
func (w *diskWorld) end() {
	if w.mount.End(); rapid.Bool().Draw(w.t, "power loss") {
		w.disk.PowerLoss(rapid.SampledFrom([]int{0, 500_000, 1_000_000}).Draw(w.t, "survives"))
	}
	w.disk.Faults = simdisk.Faults{}
	w.open()
}
