package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHeapOrder: events come out by time, and those of one time in the order
// in which they were made, however pushes and pops are mixed.
func TestHeapOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap
		var last event
		pushed, popped := 0, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if h.len() > 0 && rapid.Bool().Draw(t, "pop") {
				e := h.pop()
				if popped++; popped > 1 && e.before(&last) {
					t.Fatalf("%v after %v", e, last)
				}
				last = e
				continue
			}
			// Never before what already happened, as in a run.
			at := last.at + time.Duration(rapid.IntRange(0, 5).Draw(t, "in"))
			h.push(at, evWake, int32(pushed))
			pushed++
		}
		for ; h.len() > 0; popped++ {
			e := h.pop()
			if e.before(&last) {
				t.Fatalf("%v after %v", e, last)
			}
			last = e
		}
		if popped != pushed {
			t.Fatalf("%d came out of %d", popped, pushed)
		}
	})
}

func BenchmarkHeap(b *testing.B) {
	var h heap
	for i := range 1024 {
		h.push(time.Duration(i*7919%1024), evWake, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		e := h.pop()
		h.push(e.at+time.Duration(e.seq*7919%1024), evWake, 0)
	}
}
