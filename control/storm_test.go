package control

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

var storms = flag.Int("storms", 60, "storms of TestStorms")

// storm draws faults for some minutes, ends them all, and expects that the
// cluster agrees and can be changed.
func storm(t *testing.T, seed uint64) {
	w := newWorld(t, seed, "a-0", "b-0", "c-0")
	draw := func(n int) int { return w.rng.IntN(n) }
	daemons := 1 + draw(3)
	regions := []string{"a", "b", "c"}
	if seed%4 == 3 {
		regions = regions[:2] // the daemons of c are witnesses
	}
	for _, region := range []string{"a", "b", "c"} {
		for i := range daemons {
			m := &machine{name: fmt.Sprintf("%s-%d", region, i), region: region, durable: i == 0 || draw(3) > 0}
			if m.witness = !slices.Contains(regions, region); m.witness {
				m.durable = true
			}
			w.machines = append(w.machines, m)
			w.start(m)
		}
	}
	w.loss = []float64{0, 0.02, 0.2}[draw(3)]
	w.delay = []time.Duration{5, 60, 400}[draw(3)] * time.Millisecond
	disks := draw(2) == 0
	any := func() *machine { return w.machines[draw(len(w.machines))] }
	for range 20 + draw(60) {
		kinds := 16
		if disks { // once in a storm: what two old disks forgot, nobody knows
			kinds = 18
		}
		switch m := any(); draw(kinds) {
		case 0, 1:
			if m.up {
				_ = m.node.Init(even(regions...), true)
			}
		case 2, 3:
			w.crash(m)
		case 4, 5, 6:
			w.start(m)
		case 7:
			m.paused = !m.paused
		case 8:
			m.failing = !m.failing
		case 9: // one region is partitioned, in both directions or in one
			cut, out := m.region, draw(2) == 0
			w.cut = func(from, to *machine) bool {
				return from.region != to.region && (to.region == cut || out && from.region == cut)
			}
		case 10: // two daemons are
			o := any()
			w.cut = func(from, to *machine) bool { return from == m && to == o || from == o && to == m }
		case 11, 12:
			w.cut = func(_, _ *machine) bool { return false }
		case 13:
			if m.up {
				_, _ = m.node.Submit(Request{Author: "storm", Change: Change{Region: &RegionChange{
					Op: []RegionOp{AddRegion, WeighRegion, DrainRegion, RemoveRegion}[draw(4)], Name: string(rune('a' + draw(6))), Weight: uint32(draw(Whole)),
				}}})
			}
		case 14:
			if m.up {
				_, _ = m.node.Submit(Request{Author: "storm", Change: Change{Note: &Note{fmt.Sprint(draw(100))}}})
			}
		case 15: // a compaction by its driver
			if m.up && m.writing == nil && m.durable {
				m.disk = m.node.Snapshot()
			}
		case 16: // an earlier state of the disk comes back
			disks = false
			copied := slices.Clone(m.disk)
			w.run(time.Duration(draw(10_000)) * time.Millisecond)
			w.crash(m)
			m.disk = copied
			w.start(m)
		case 17: // another machine starts with a copy of the disk
			if o := any(); o != m && o.durable {
				disks = false
				copied := slices.Clone(m.disk)
				w.run(time.Duration(draw(5_000)) * time.Millisecond)
				w.crash(o)
				o.disk = copied
				w.start(o)
			}
		}
		w.run(time.Duration(draw(4_000)) * time.Millisecond)
	}
	w.cut = func(_, _ *machine) bool { return false }
	w.loss, w.delay = 0, min(w.delay, 100*time.Millisecond)
	for _, m := range w.machines {
		m.paused, m.failing = false, false
		w.start(m)
	}
	w.run(5 * time.Second)
	if err := w.machines[0].node.Init(even(regions...), true); err == nil {
		w.until("begun", 30*time.Second, func() bool { return w.machines[0].node.Record() != nil })
	}
	w.until("known", 30*time.Second, w.equal)
	w.run(10 * time.Second) // so that ids end that run twice
	if m := w.minority(); m != nil {
		if err := m.node.Recover(RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("one leader", 30*time.Second, func() bool { return w.leader() != nil })
	if r := w.submit(any(), Change{Note: &Note{"over"}}); r.Err != nil {
		t.Error(r.Err)
	}
	w.until("equal", 60*time.Second, w.equal)
	w.until("confirmed", 60*time.Second, func() bool {
		for _, m := range w.machines {
			if m.node.Starting() {
				return false
			}
		}
		return true
	})
}

func TestStorms(t *testing.T) {
	n := *storms
	if testing.Short() {
		n /= 10
	}
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { storm(t, seed) })
	}
}
