package control

import (
	"fmt"
	"slices"
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
	w.run(5 * tick) // and stored
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

// addDropped returns a cluster to which region d was added, and then a recovery
// at b-0 dropped that.
func addDropped(t *testing.T) (w *world, added Region) {
	w = begin(t)
	d, b := w.add("d", "d-0", true), w.find("b-0")
	w.run(5 * time.Second)
	w.cut = func(from, to *machine) bool { return from == b || to == b }
	w.until("another leader", time.Minute, func() bool { l := w.leader(); return l != nil && l != b })
	if res := w.submit(w.leader(), Change{Region: &RegionChange{Op: AddRegion, Name: "d", Weight: 100_000, Force: true}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.until("added", time.Minute, func() bool { return d.node.Record().Region("d") != nil })
	added = *d.node.Record().Region("d")
	if err := b.node.Recover(RecoverRequest{Behind: true, Stopped: true}); err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	if b.node.Record().Region("d") != nil {
		t.Fatal("the recovery has the region")
	}
	return w, added
}

// TestDroppedRegion: a region whose addition a recovery dropped is there again
// as the same participant, once: daemons acknowledged an epoch with it.
func TestDroppedRegion(t *testing.T) {
	w, added := addDropped(t)
	w.cut = func(_, _ *machine) bool { return false }
	again := func(m *machine) bool {
		g := m.node.Record().Region("d")
		return g != nil && m.node.Record().Version.Recovery.Number == 1
	}
	for _, m := range w.machines {
		w.until("again at "+m.name, time.Minute, func() bool { return again(m) })
	}
	w.run(10 * time.Second)
	r := w.leader().node.Record()
	g := r.Region("d")
	if g.ID() != added.ID() || g.From <= added.From || !slices.Equal(g.Founders, added.Founders) || g.Horizon != added.Horizon || g.Weight != added.Weight {
		t.Errorf("region %+v, want %+v", g, added)
	}
	if len(r.Dropped) != 1 || len(r.Epochs) != 1 || !r.Epochs[0].Has(added.ID()) {
		t.Errorf("%d dropped commands, epochs %+v: want the addition, once", len(r.Dropped), r.Epochs)
	}
	w.crash(w.find("d-0"))
	w.run(time.Minute + time.Second)
	if res := w.submit(w.leader(), Change{Region: &RegionChange{Op: RemoveRegion, Name: "d", Stopped: true}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.run(10 * time.Second)
	r = w.leader().node.Record()
	if e := r.Epochs[len(r.Epochs)-1]; r.Region("d") != nil || len(e.Retired) != 1 || e.Retired[0].ID != added.ID() {
		t.Errorf("region %+v, epoch %+v: want it removed, and retired once", r.Region("d"), e)
	}
}

// TestDroppedRegionOfAName: a region that was added again before a daemon
// reports the addition that was dropped stays; its removal retires both.
func TestDroppedRegionOfAName(t *testing.T) {
	w, added := addDropped(t)
	b, d := w.find("b-0"), w.find("d-0")
	w.crash(d)
	d.disk = nil
	w.start(d)
	w.cut = func(from, to *machine) bool { return from != b && from != d || to != b && to != d }
	w.until("heard", time.Minute, func() bool { return d.node.Record() != nil })
	w.run(time.Second)
	if res := w.submit(b, Change{Region: &RegionChange{Op: AddRegion, Name: "d", Weight: 200_000, Force: true}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	is := b.node.Record().Region("d").ID()
	w.cut = func(_, _ *machine) bool { return false }
	w.until("named", time.Minute, func() bool { return len(b.node.Record().Dropped) == 1 })
	if is == added.ID() || b.node.Record().Region("d").ID() != is {
		t.Errorf("region %+v: want the one that was added last", b.node.Record().Region("d"))
	}
	w.crash(d)
	w.run(time.Minute + time.Second)
	if res := w.submit(w.leader(), Change{Region: &RegionChange{Op: RemoveRegion, Name: "d", Stopped: true}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	e, err := w.leader().node.Record().Newest()
	ids := []uint64{is, added.ID()}
	slices.Sort(ids)
	if err != nil || len(e.Retired) != 2 || e.Retired[0].ID != ids[0] || e.Retired[1].ID != ids[1] {
		t.Errorf("epoch %+v, %v: want %v retired", e, err, ids)
	}
}

// TestDroppedRemoval: a region that was added and removed again is not added by
// a recovery that dropped both.
func TestDroppedRemoval(t *testing.T) {
	at := func(i uint64) Version { return Version{Recovery{1, 1}, i} }
	add := Command{Request: 1, Version: at(5), Added: &RegionChange{Op: AddRegion, Name: "d"}}
	here := &Record{Version: at(6), From: Version{Recovery{0, 1}, 3}, History: []Command{add, {Request: 2, Version: at(6)}}}
	next := &Record{Version: Version{Recovery{2, 2}, 5}, From: at(4)}
	if lost := here.droppedBy(next); len(lost) != 2 || lost[0].Added != nil {
		t.Errorf("dropped: %+v: want two commands and no region", lost)
	}
	here.Regions = []Region{{Name: "d", Generation: at(5)}}
	if lost := here.droppedBy(next); len(lost) != 2 || lost[0].Added == nil || here.History[0].Added == nil {
		t.Errorf("dropped: %+v: want the region", lost)
	}
}
