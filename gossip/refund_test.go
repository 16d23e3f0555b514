package gossip

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

func (r *rig) refund(name string, k int, n uint64) uint64 {
	m := r.of(name)
	return m.Refund(r.mono(m), testKey(k), epoch, n)
}

func TestRefundIsBoundedByWhatWasCounted(t *testing.T) {
	r := newRig(Config{}, "a", "a")
	if got := r.refund("a1", 0, 5); got != 0 {
		t.Errorf("%d refunded of a label that nothing was counted in", got)
	}
	r.add("a1", 0, 10)
	r.add("a2", 0, 10)
	r.run(time.Second)
	for i, want := range []uint64{4, 4, 2, 0} {
		if got := r.refund("a1", 0, 4); got != want {
			t.Errorf("refund %d gave back %d, want %d: no more than a1 itself counted", i+1, got, want)
		}
	}
	if got := r.of("a1").Own(testKey(0), epoch); got != (crdt.PN{P: 10, N: 10}) {
		t.Errorf("own cell is %v", got)
	}
	r.of("a2").Add(r.mono(r.of("a2")), testKey(1), epoch, minute, crdt.Max, roomy)
	if got := r.refund("a2", 1, 1); got != 0 {
		t.Errorf("%d refunded of a saturated count", got)
	}
}

// A refund reaches the daemons of the region, and other regions as part of the
// region's sum, through any daemon; each learns of it once.
func TestRefundsReachAll(t *testing.T) {
	for _, quiet := range []time.Duration{0, time.Second} {
		r := newRig(Config{Quiet: quiet}, "a", "a", "b", "b")
		less := map[string]uint64{}
		r.add("a1", 0, 10)
		r.add("a2", 0, 5)
		r.add("b1", 0, 7)
		r.run(5 * time.Second)
		r.refund("a1", 0, 4)
		r.refund("a2", 0, 5)
		for end := r.now + 5*time.Second; r.now < end; r.now += step {
			for len(r.flight) > 0 {
				msg := r.flight[0]
				to := r.holder(msg.To)
				changes, err := to.Receive(r.mono(to), r.wall(to), 250, 7, &msg)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range changes {
					less[to.name] += c.Less
					if c.Gain != 0 {
						t.Errorf("%s gained %d of a refund", to.name, c.Gain)
					}
				}
				r.flight = r.flight[1:]
			}
			for m := range r.up {
				r.tick(m)
			}
		}
		want := map[string]uint64{"a1": 5, "a2": 4, "b1": 9, "b2": 9}
		for _, m := range r.members {
			if got := r.total(m.name, 0); got != 13 {
				t.Errorf("quiet %v: %s knows of %d hits, want 13", quiet, m.name, got)
			}
			if less[m.name] != want[m.name] {
				t.Errorf("quiet %v: %s was told of %d refunds, want %d", quiet, m.name, less[m.name], want[m.name])
			}
		}
	}
}

// refunds is a world in which hits are given back.
type refunds struct {
	*world
	back map[CellID]uint64
}

func (w *refunds) refund(t *rapid.T) {
	m, i := w.draw(t), rapid.IntRange(0, 7).Draw(t, "key")
	id := CellID{testKey(i), epoch, Daemon, m.self.ID}
	n := rapid.Uint64Range(1, 8).Draw(t, "n")
	got, want := m.Refund(w.mono(m), id.Key, id.Window, n), min(n, w.truth[id]-w.back[id])
	if got != want {
		t.Fatalf("%s gave back %d of %d, want %d", m.name, got, n, want)
	}
	if got > 0 {
		w.back[id] += got
	}
	w.speak(m)
}

// check checks that no daemon knows of refunds that were not made, that no net
// count is below each net count that its writer ever had, and that refunds of
// daemons are never lost.
func (w *refunds) check(t *rapid.T) {
	before := map[CellID]map[string]crdt.PN{}
	for id, held := range w.seen {
		before[id] = map[string]crdt.PN{}
		for who, v := range held {
			before[id][who] = v
		}
	}
	w.world.check(t)
	for id, held := range w.seen {
		for who, v := range held {
			if v.N > v.P {
				t.Fatalf("%s holds %v", who, v)
			}
			if id.Kind == Daemon && v.N < before[id][who].N {
				t.Fatalf("%s went back from %v to %v refunds", who, before[id][who], v)
			}
			if most, ours := w.back[id]; ours && v.N > most {
				t.Fatalf("%s knows of %d refunds, of truly %d", who, v.N, most)
			}
		}
	}
}

// TestRefundLaws is TestLaws with refunds: after any order of hits and refunds
// and whatever is lost, repeated, reordered or restarted, all that keep a key
// know the same net counts once the network is whole.
func TestRefundLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &refunds{drawWorld(t), map[CellID]uint64{}}
		t.Repeat(map[string]func(*rapid.T){
			"add": w.add, "refund": w.refund, "wait": w.wait, "deliver": w.deliver, "drop": w.drop,
			"repeat": w.repeat, "restart": w.restart, "flap": w.flap, "": w.check,
		})
		w.heal(t) // demands of all regions the same pairs, and of all daemons what each of them counted
		w.check(t)
		for id, n := range w.back {
			o := w.holder(id.Incarnation)
			if o == nil {
				continue
			}
			for m := range w.up {
				keeps := m.region == o.region && (m == o || Keeps(m.Engine, id))
				if at := m.state.find(id); keeps && (at == none || m.state.cells.at(at).Value.N != n) {
					t.Fatalf("%s lacks %d refunds of %s", m.name, n, o.name)
				}
			}
		}
	})
}

// A region's sum may arrive with more hits and fewer refunds than were known,
// from another daemon of the region. The changes still add up to the known
// count.
func TestChangesOfSumsAddUp(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	net := uint64(0)
	id := CellID{testKey(0), epoch, RegionSum, RegionIncarnation("b")}
	for i, v := range []crdt.PN{{P: 10, N: 9}, {P: 11, N: 2}, {P: 11, N: 9}, {P: 10, N: 10}, {P: 12, N: 12}, {P: 13}} {
		a, b := r.of("a1"), r.of("b1")
		m := Message{From: b.self.ID, To: a.self.ID, Shards: 1}
		m.Nonce, m.Cells = uint64(i+1), []Cell{{CellID: id, CellMeta: minute, Value: v}}
		changes, err := a.Receive(r.mono(a), r.wall(a), 250, 7, &m)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			net += c.Gain - c.Less
		}
		if is := a.Total(testKey(0), epoch); net != is {
			t.Errorf("after %v changes add up to %d, and %d is known", v, int64(net), is)
		}
	}
}
