package gossip

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
)

// TestLaws drives engines of one or two regions through a network that loses,
// duplicates and reorders messages, with frames of a few cells, clocks that
// refuse windows, and restarts; then it heals the network. Before that no count
// is invented and no bound exceeded. After it all daemons know all counts.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"add":     w.add,
			"wait":    w.wait,
			"deliver": w.deliver,
			"drop":    w.drop,
			"repeat":  w.repeat,
			"restart": w.restart,
			"flap":    w.flap,
			"":        w.check,
		})
		w.heal(t)
	})
}

// world is a rig and what truly happened in it.
type world struct {
	*rig
	truth  map[CellID]uint64             // by the incarnations that counted, dead ones too
	seen   map[CellID]map[string]crdt.PN // by daemon, the greatest value observed there
	places map[crdt.Incarnation]string   // the region of each incarnation
}

func drawWorld(t *rapid.T) *world {
	regions := []string{"a", "a"}
	for range rapid.IntRange(0, 2).Draw(t, "more daemons") {
		regions = append(regions, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "region"))
	}
	cfg := Config{
		FrameCells:  rapid.IntRange(1, 3).Draw(t, "frame"),
		Quiet:       rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "quiet"),
		DigestEvery: time.Second,
	}
	return &world{
		rig: newRig(cfg, regions...), truth: map[CellID]uint64{},
		seen: map[CellID]map[string]crdt.PN{}, places: map[crdt.Incarnation]string{},
	}
}

func (w *world) draw(t *rapid.T) *member {
	return w.members[rapid.IntRange(0, len(w.members)-1).Draw(t, "daemon")]
}

// add counts hits now, or in a window that the others refuse for now.
func (w *world) add(t *rapid.T) {
	m, i := w.draw(t), rapid.IntRange(0, 7).Draw(t, "key")
	k, span, window := testKey(i), minute, epoch
	switch {
	case i > 5:
		span = hour
	case rapid.IntRange(0, 3).Draw(t, "far") == 3:
		window += 3 * minute.WindowLength
	}
	n := rapid.Uint64Range(1, 5).Draw(t, "n")
	left := rapid.SampledFrom([]uint64{0, 10, ample}).Draw(t, "left")
	span.Carry = rapid.SampledFrom([]int64{600_000, 700_000}).Draw(t, "carry")
	if !m.Add(w.mono(m), k, window, span, n, Room{left, ample}) {
		t.Fatal("no room")
	}
	w.truth[CellID{k, window, Daemon, m.self.ID}] += n
	w.speak(m)
}

func (w *world) wait(t *rapid.T) {
	w.now += time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond
	for m := range w.up {
		w.tick(m)
	}
}

func (w *world) pick(t *rapid.T) int {
	if len(w.flight) == 0 {
		t.Skip("nothing is on its way")
	}
	return rapid.IntRange(0, len(w.flight)-1).Draw(t, "message")
}

// deliver also finds messages to and from incarnations that are gone, which
// are refused.
func (w *world) deliver(t *rapid.T) { _ = w.rig.deliver(w.pick(t)) }

func (w *world) drop(t *rapid.T) {
	i := w.pick(t)
	w.flight = slices.Delete(w.flight, i, i+1)
}

func (w *world) repeat(t *rapid.T) { w.flight = append(w.flight, w.flight[w.pick(t)]) }

func (w *world) restart(t *rapid.T) {
	if w.born > 12 {
		t.Skip("enough restarts")
	}
	w.rig.restart(w.draw(t))
}

// flap makes one daemon lose sight of another and find it again.
func (w *world) flap(t *rapid.T) {
	m, o := w.draw(t), w.draw(t)
	var peers []Peer
	for p := range w.up {
		if p != o {
			peers = append(peers, p.self)
		}
	}
	m.Peers(w.mono(m), peers)
	w.speak(m)
	m.Peers(w.mono(m), append(peers, o.self))
	w.speak(m)
}

// known is the most that a sum of some incarnations may be.
func (w *world) known(k crdt.Key, window int64, of func(crdt.Incarnation) bool) uint64 {
	sum := uint64(0)
	for id, n := range w.truth {
		if id.Key == k && id.Window == window && of(id.Incarnation) {
			sum += n
		}
	}
	return sum
}

// in selects the incarnations of a region.
func (w *world) in(region string) func(crdt.Incarnation) bool {
	return func(id crdt.Incarnation) bool { return w.places[id] == region }
}

// check checks the properties that hold at every time.
func (w *world) check(t *rapid.T) {
	for m := range w.up {
		w.places[m.self.ID] = m.region
		for _, c := range m.Cells(w.wall(m), nil) {
			w.checkCell(t, m, c)
		}
		w.checkBounds(t, m)
	}
	w.checkFrames(t)
}

func (w *world) checkCell(t *rapid.T, m *member, c Cell) {
	most, own := w.truth[c.CellID], c.Incarnation == m.self.ID
	switch {
	case c.Kind == RegionSum:
		for _, region := range []string{"a", "b"} {
			if RegionIncarnation(region) == c.Incarnation {
				most = w.known(c.Key, c.Window, w.in(region))
			}
		}
	case c.Kind == Others:
		own = false
		most = w.known(c.Key, c.Window, func(id crdt.Incarnation) bool { return id != m.self.ID })
	case c.Incarnation == m.restoration.lost:
		most = w.known(c.Key, c.Window, w.in(m.region))
	}
	if c.Value.P > most || own && c.Value.P != most {
		t.Fatalf("%s holds %v, of truly %d", m.name, c, most)
	}
	held := w.seen[c.CellID]
	if held == nil {
		held = map[string]crdt.PN{}
		w.seen[c.CellID] = held
	}
	who := fmt.Sprint(m.name, m.self.ID)
	if c.Value.P < held[who].P {
		t.Fatalf("%s went back from %v to %v", m.name, held[who], c)
	}
	held[who] = c.Value
}

func (w *world) checkBounds(t *rapid.T, m *member) {
	if len(m.retries.list) > maxRetries || len(m.restoration.checks) > maxChecks {
		t.Fatalf("%s remembers %d refusals and %d checks", m.name, len(m.retries.list), len(m.restoration.checks))
	}
	for _, l := range m.links {
		if l.acked > l.sent || l.sent > l.base+m.state.version {
			t.Fatalf("%s to %v: acked %d, sent %d, of %d", m.name, l.peer.ID, l.acked, l.sent, l.base+m.state.version)
		}
		if len(l.refused) > MaxRefused || l.inflight > maxInflight*m.cfg.FrameCells {
			t.Fatalf("%s to %v: %d refused, %d cells on their way", m.name, l.peer.ID, len(l.refused), l.inflight)
		}
		if len(l.rated) > m.state.cells.used {
			t.Fatalf("%s to %v: %d cells rated, of %d", m.name, l.peer.ID, len(l.rated), m.state.cells.used)
		}
	}
	last := uint64(0)
	for i := m.state.changes.first; i != none; i = m.state.cells.at(i).change.next {
		if c := m.state.cells.at(i); c.version <= last || c.version > m.state.version {
			t.Fatalf("%s: version %d after %d", m.name, c.version, last)
		} else {
			last = c.version
		}
	}
}

func (w *world) checkFrames(t *rapid.T) {
	for i := range w.flight {
		m := &w.flight[i]
		if len(m.Cells) > w.cfg.FrameCells || m.Lo > m.Hi {
			t.Fatalf("a message of %d cells over (%d, %d]", len(m.Cells), m.Lo, m.Hi)
		}
		for j := 1; j < len(m.Cells); j++ {
			a, b := &m.Cells[j-1], &m.Cells[j]
			if a.Kind == b.Kind && a.Incarnation == b.Incarnation && a.Short && !b.Short {
				continue // short keys come first
			}
			if a.CellID.Compare(b.CellID) >= 0 {
				t.Fatalf("cells out of order: %v, %v", m.Cells[j-1], m.Cells[j])
			}
		}
	}
}

// heal lets the network work for long enough, until the refused window is
// accepted too, and checks that all daemons know all counts.
func (w *world) heal(t *rapid.T) {
	w.flight = nil
	w.run(20 * time.Second)
	for m := range w.up {
		m.skew = 3 * minute.WindowLength
	}
	w.run(20 * time.Second)
	w.check(t)
	for m := range w.up {
		w.complete(t, m)
		if m.count(BucketRepaired) > 0 {
			t.Fatalf("%s repaired %d buckets that were not broken", m.name, m.count(BucketRepaired))
		}
		for _, c := range m.Cells(w.wall(m), nil) {
			if c.Rate != 0 && c.Kind != Others { // the slope of an estimate ages
				t.Fatalf("%s expects %d hits a second of %v, where nothing happens", m.name, c.Rate, c)
			}
		}
	}
	first := map[string]*member{}
	for m := range w.up {
		if o := first[m.region]; o == nil {
			first[m.region] = m
		} else if is, want := w.common(m, o), w.common(o, m); !slices.Equal(is, want) {
			t.Fatalf("%s and %s differ:\n%v\n%v", m.name, o.name, is, want)
		}
	}
}

// common returns the cells of a daemon that another one keeps too.
func (w *world) common(m, o *member) []Cell {
	return slices.DeleteFunc(w.cells(m), func(c Cell) bool {
		return !Keeps(m.Engine, c.CellID) || !Keeps(o.Engine, c.CellID)
	})
}

// complete demands of a daemon the counts that it keeps of all that are up.
func (w *world) complete(t *rapid.T, m *member) {
	for id, n := range w.truth {
		o := w.holder(id.Incarnation)
		if o == nil || o.region != m.region || o != m && !Keeps(m.Engine, id) {
			continue
		}
		at := m.state.find(id)
		if at == none || m.state.cells.at(at).Value.P != n {
			t.Fatalf("%s lacks %v of %s, %d hits", m.name, id, o.name, n)
		}
	}
	for o := range w.up {
		if o.region == m.region {
			continue
		}
		for _, c := range o.Cells(w.wall(o), nil) {
			ofKey := CellID{Key: c.Key, Kind: RegionSum}
			if !Keeps(o.Engine, ofKey) || !Keeps(m.Engine, ofKey) {
				continue
			}
			sum, _ := o.state.sum(o.state.cells.at(o.state.find(c.CellID)))
			at := m.state.find(CellID{c.Key, c.Window, RegionSum, o.Engine.region})
			if sum == (crdt.Sum{}) {
				continue // no daemon there knows the counts that this one remembers
			}
			if at == none || crdt.Sum(m.state.cells.at(at).Value) != sum {
				t.Fatalf("%s lacks the sum %v of %s under %v", m.name, sum, o.region, c)
			}
		}
	}
}
