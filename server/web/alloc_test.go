//go:build !race

package web

import (
	"net/http"
	"testing"
)

// The race detector empties pools at random, which is why this file is left
// out there.

// maxAllocs is what a question and its answer may allocate: the text and the
// values of the headers, and the length of the body, twice (text and value).
const maxAllocs = 4

func TestCheckAllocates(t *testing.T) {
	for _, over := range []bool{false, true} {
		e := newFixed()
		e.status.Over = over
		h, r, w := New(Options{Engine: e}), hotRequest(), &sink{http.Header{}}
		n := testing.AllocsPerRun(200, func() { h.ServeHTTP(w, r) })
		t.Logf("over %v: %v allocations", over, n)
		if n > maxAllocs {
			t.Errorf("%v allocations, want at most %d", n, maxAllocs)
		}
	}
}
