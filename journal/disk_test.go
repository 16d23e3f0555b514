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
	t interface {
		Fatalf(format string, args ...any)
	}
	choose  func(name string, n int) int // one of 0 to n-1
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
	for range w.choose("records", 4) {
		w.next++
		out = append(out, fmt.Sprintf("%d%*s", w.next, w.choose("width", 701), "."))
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
		w.choose = func(name string, n int) int { return rapid.IntRange(0, n-1).Draw(t, name) }
		w.open()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			w.step()
		}
	})
}

// TestFirstSteps plays all first steps on a new disk and on one with a record,
// with the choices that TestDisks met when a sync was left out: a file that was
// empty after a power loss, and a record that was lost by one.
func TestFirstSteps(t *testing.T) {
	few := map[string][]int{"records": {0, 2}, "width": {0, 699}}
	runs := 0
	for _, before := range [][]string{nil, {"first"}} {
		var chosen, of []int // the choices of a run, and how many there are
		for more := true; more; runs++ {
			at := 0
			w := &diskWorld{t: t, disk: simdisk.New(rand.New(rand.NewPCG(1, 0)))}
			w.choose = func(name string, n int) int {
				values := few[name]
				if values != nil {
					n = len(values)
				}
				if at == len(chosen) {
					chosen, of = append(chosen, 0), append(of, n)
				}
				at++
				if values != nil {
					return values[chosen[at-1]]
				}
				return chosen[at-1]
			}
			w.open()
			if before != nil {
				if err := w.journal.Append(asBytes(before)); err != nil {
					t.Fatal(err)
				}
				w.sure = before
			}
			w.step()
			w.end()
			for more = false; len(chosen) > 0 && !more; {
				last := len(chosen) - 1
				if chosen[last]++; chosen[last] < of[last] {
					more = true
				} else {
					chosen, of = chosen[:last], of[:last]
				}
			}
		}
	}
	if runs < 10_000 {
		t.Errorf("%d runs", runs)
	}
}

// step writes once, on a disk with faults, and may end the process meanwhile.
func (w *diskWorld) step() {
	write := []func() bool{w.append, w.append, w.rewrite}[w.choose("write", 3)]
	w.disk.Faults = []simdisk.Faults{
		{}, {}, {}, {Write: errDisk}, {Sync: errDisk}, {Full: true}, {Write: errDisk, Sync: errDisk, PPM: 300_000},
	}[w.choose("faults", 7)]
	if w.choose("end", 4) == 0 {
		w.mount.EndAfter(w.choose("calls", 9))
		write()
		w.end()
	} else if !write() {
		w.end()
	}
}

// end ends the process or the machine, and starts another.
func (w *diskWorld) end() {
	if w.mount.End(); w.choose("power loss", 2) == 1 {
		w.disk.PowerLoss([]int{0, 500_000, 1_000_000}[w.choose("survives", 3)])
	}
	w.disk.Faults = simdisk.Faults{}
	w.open()
}
