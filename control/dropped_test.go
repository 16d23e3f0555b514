package control

import (
	"fmt"
	"testing"
	"time"
)

// A record after several recoveries contains a part of each.
func TestContains(t *testing.T) {
	in := func(number uint32, index uint64) Version {
		return Version{Recovery{number, Number(number + 1)}, index}
	}
	r := &Record{
		Version: in(3, 20), First: 13, From: in(2, 12),
		Earlier: []Beginning{{in(1, 0).Recovery, in(0, 5)}, {in(2, 0).Recovery, in(1, 9)}},
	}
	for _, tt := range []struct {
		at   Version
		want bool
	}{
		{in(3, 20), true},
		{in(3, 21), false},
		{in(2, 12), true},
		{in(2, 13), false},
		{in(1, 9), true},
		{in(1, 10), false},
		{in(0, 5), true},
		{in(0, 6), false},
		{in(4, 1), false},
		{Version{Recovery{2, 99}, 1}, false}, // of a split
	} {
		if got := r.Contains(tt.at); got != tt.want {
			t.Errorf("contains %v: %t, want %t", tt.at, got, tt.want)
		}
	}
}

// A daemon that alone knows of dropped commands ends before it can report them.
// It reports them after its next start.
func TestDroppedSurvive(t *testing.T) {
	w := begin(t, "a-1")
	m := w.find("a-0")
	w.cut = func(from, to *machine) bool { return from == w.find("a-1") || to == w.find("a-1") }
	for i := range 6 {
		w.submit(m, Change{Note: &Note{Text: fmt.Sprint(i)}})
	}
	w.until("received", time.Minute, func() bool { return w.find("c-0").node.Record().Version == m.node.Record().Version })
	for _, name := range []string{"b-0", "c-0", "a-0"} {
		w.crash(w.find(name))
	}
	w.start(w.find("c-0")) // it has the entries, and dies again before it can report them
	if err := w.find("a-1").node.Recover(RecoverRequest{Behind: true, Stopped: true}); err != nil {
		t.Fatal(err)
	}
	w.cut = func(_, _ *machine) bool { return false }
	w.until("adopted", time.Minute, func() bool { return w.find("c-0").node.Record().Version.Recovery.Number == 1 })
	w.cut = func(from, _ *machine) bool { return from == w.find("c-0") }
	w.run(5 * time.Second)
	w.crash(w.find("c-0"))
	w.cut = func(_, _ *machine) bool { return false }
	w.run(10 * time.Second)
	if n := len(w.find("a-1").node.Record().Dropped); n != 0 {
		t.Fatalf("%d commands are reported: the test shows nothing", n)
	}
	w.start(w.find("c-0"))
	w.until("reported", 20*time.Second, func() bool { return len(w.find("a-1").node.Record().Dropped) == 6 })
}
