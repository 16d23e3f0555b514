package main

import (
	"time"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// tally is what was answered in one window.
type tally struct {
	Allowed, Refused int64
}

// tallies are those of one pipeline, by window of the wall clock, from the
// first answer on.
type tallies struct {
	window time.Duration
	first  int64 // number of the first window
	all    []tally
}

// add counts the answers of a frame. What was decided just before the end of a
// window counts in the next one, so limits must be used up before a window ends.
func (t *tallies) add(at time.Time, answers []*rldv1.CheckResponse) {
	if t == nil {
		return
	}
	n := at.UnixNano() / int64(t.window)
	if len(t.all) == 0 {
		t.first = n
	}
	for t.first+int64(len(t.all)) <= n {
		t.all = append(t.all, tally{})
	}
	w := &t.all[max(0, n-t.first)]
	for _, a := range answers {
		if a.Code == rldv1.Code_ALLOWED {
			w.Allowed++
		} else {
			w.Refused++
		}
	}
}

// whole returns the windows that lie between two instants, empty ones too.
func (t *tallies) whole(from, to time.Time) []tally {
	if t == nil {
		return nil
	}
	var out []tally
	size := int64(t.window)
	for n := (from.UnixNano() + size - 1) / size; (n+1)*size <= to.UnixNano(); n++ {
		var w tally
		if i := n - t.first; i >= 0 && i < int64(len(t.all)) {
			w = t.all[i]
		}
		out = append(out, w)
	}
	return out
}

// addTallies adds up windows of two pipelines that are of the same time. The
// first may be none.
func addTallies(sum, more []tally) []tally {
	if sum == nil {
		return more
	}
	for i := range more {
		sum[i].Allowed += more[i].Allowed
		sum[i].Refused += more[i].Refused
	}
	return sum
}
