//go:build !race

package web

import (
	"net/http"
	"testing"
)

// The race detector empties pools at random, which is why this file is left
// out there.

// maxAllocs bounds the allocations of a question and its answer. The bodies are
// written by encoding/json, so it is generous: a step that multiplies the work
// of a call, and not one that adds to it, is to be found.
const maxAllocs = 100

func TestCheckAllocates(t *testing.T) {
	for _, over := range []bool{false, true} {
		e := newFixed()
		e.status.Over = over
		h, r, w := New(Options{Engine: e}), hotRequest(), &sink{http.Header{}}
		n := testing.AllocsPerRun(200, func() { h.ServeHTTP(w, r) })
		if n > maxAllocs {
			t.Errorf("%v allocations, want at most %d", n, maxAllocs)
		}
	}
}
