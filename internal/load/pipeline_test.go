package load

import (
	"slices"
	"testing"
	"time"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

func TestFramesArePlannedEvenly(t *testing.T) {
	begin := time.Unix(100, 0)
	o := &Pipelines{Rate: 8_000, Frame: 8, Length: 10 * time.Millisecond}
	var all []time.Time
	for i := range 4 {
		o.frames(i, 4, begin).Unsent(begin.Add(time.Hour), func(due time.Time) { all = append(all, due) })
	}
	slices.SortFunc(all, time.Time.Compare)
	if len(all) != 10 {
		t.Fatalf("%d frames of 8 in 10 ms, want 10 for 8,000 checks a second", len(all))
	}
	for i, at := range all {
		want := begin.Add(time.Duration(i) * time.Millisecond)
		if off := at.Sub(want).Abs(); off > time.Microsecond {
			t.Errorf("frame %d at %v, want %v", i, at, want)
		}
	}
}

// TestParts: pipelines share the descriptors when each is asked once, and each
// asks for all of them otherwise.
func TestParts(t *testing.T) {
	o := &Pipelines{Descriptors: make([][]*rldv1.Descriptor, 5)}
	if n := len(o.part(1, 2)); n != 5 {
		t.Errorf("for a time a pipeline asks for %d, want all", n)
	}
	if o.Once = true; len(o.part(0, 2)) != 3 || len(o.part(1, 2)) != 2 {
		t.Errorf("once two ask for %d and %d, want 3 and 2", len(o.part(0, 2)), len(o.part(1, 2)))
	}
}
