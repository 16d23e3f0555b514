package gossip

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// These schedules broke earlier designs or break likely mistakes. Each is
// played against the engine and against an engine with the broken rule, and
// must distinguish the two.
//
//	schedule                        the broken rule                           its outcome
//	NewestFirst                     newest change first, all acknowledged     5 of 8 cells are lost
//	RefusedTooFarAhead, -NoRoom     refused cells are acknowledged            the count is lost
//	LostFrame                       sent cells count as acknowledged          the count is lost
//	LostAck                         increments are sent instead of counts     the hits count twice
//	SumsByElement                   P and N of sums are joined each           net 50 of 100
//	PeerStops                       no news is no news                        phantom hits of 3 lags
//	AggregatorBeforeResync          a new aggregator publishes at once        later hits are masked
//	DroppedIncarnation              a sum leaves out dead incarnations        later hits are masked
//	ResetInPlace                    a window's cell is reset in place         the old window is counted
//	ReusedIncarnation               a restart keeps its incarnation           hits are masked
//	MapOrder                        frames in map order                       two runs of a seed differ
//	StaleAckAfterRejoin             versions start anew for a peer that       counts are lost
//	                                membership dropped and added again
//
// Those that need a clock or a limit are in node: a jump of the wall clock, and
// a peer that is an hour ahead.

// mutation plays a schedule on both variants. The outcomes must be these.
func mutation[T comparable](t *testing.T, play func(broken bool) T, ours, broken T) {
	t.Helper()
	if got := play(false); got != ours {
		t.Errorf("ours comes to %v, want %v", got, ours)
	}
	if got := play(true); got != broken {
		t.Errorf("the broken variant comes to %v, not %v: the schedule shows nothing", got, broken)
	}
}

func TestMutationNewestFirst(t *testing.T) {
	const cells = 8
	mutation(t, func(broken bool) int {
		r := newRig(Config{FrameCells: 3}, "a", "a")
		a1, a2 := r.of("a1"), r.of("a2")
		r.run(time.Second)
		if broken {
			r.sending = func(m *member, msg *Message) {
				if m == a1 {
					newestFirst(m.Engine, msg)
				}
			}
		}
		for i := range cells {
			r.add("a1", i, 1)
		}
		r.run(5 * time.Second)
		known := 0
		for i := range cells {
			known += int(a2.Total(testKey(i), epoch))
		}
		return known
	}, cells, 3)
}

// newestFirst rewrites a message as if the changes were walked from the newest
// one down, for as many as fit, under a claim on all of them.
func newestFirst(e *Engine, m *Message) {
	l := e.links.find(m.To)
	scope := e.scope(l)
	m.Lo, m.Cells = l.acked, nil
	for i := e.state.changes.last; i != none && len(m.Cells) < e.cfg.FrameCells; i = e.state.cells.at(i).change.prev {
		c := e.state.cells.at(i)
		if l.base+c.version <= l.acked {
			break
		}
		if scope.includes(c) {
			m.Cells = append(m.Cells, scope.cell(c))
		}
	}
	m.Hi, m.Complete = l.base+e.state.version, true
	l.sent, l.cursor = m.Hi, none
}

// unlisted is the broken rule of a receiver that acknowledges refused cells.
func unlisted(_ *member, m *Message) { m.Refused = nil }

func TestMutationRefusedTooFarAhead(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a")
		if broken {
			r.sending = unlisted
		}
		r.run(time.Second)
		// The window of a1 is more than a window and the clocks' offset ahead.
		window := epoch + 3*minute.WindowLength
		r.of("a1").Add(r.mono(r.of("a1")), testKey(1), window, minute, 10, roomy)
		r.run(3 * time.Second)
		if r.of("a2").count(CellRefused) == 0 {
			t.Error("a cell of the far future was not refused")
		}
		r.run(2 * time.Minute)
		return r.of("a2").Total(testKey(1), window)
	}, 10, 0)
}

func TestMutationRefusedNoRoom(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{MaxCells: 4}, "a", "a")
		if broken {
			r.sending = unlisted
		}
		r.run(time.Second)
		second := CellMeta{Rule: 3, WindowLength: 1_000}
		for i := range 4 {
			r.of("a2").Add(r.mono(r.of("a2")), testKey(100+i), epoch, second, 1, roomy)
		}
		r.add("a1", 1, 10)
		r.run(2 * time.Second)
		if r.total("a2", 1) != 0 || r.of("a2").count(CellRefused) == 0 {
			t.Error("a cell was taken for which there is no room")
		}
		r.run(10 * time.Second) // what fills a2 is over
		return r.total("a2", 1)
	}, 10, 0)
}

func TestMutationLostFrame(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a")
		if broken {
			r.taking = func(m *member, msg *Message) { msg.Ack = m.links.find(msg.From).sent }
		}
		r.run(time.Second)
		r.add("a1", 1, 10)
		r.lost = func(from, _ *member) bool { return from.name == "a1" }
		r.run(3 * time.Second)
		r.lost = nil
		r.run(5 * time.Second)
		return r.total("a2", 1)
	}, 10, 0)
}

// A message comes, its acknowledgement does not, and it is sent again.
func TestMutationLostAck(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a")
		if broken {
			sendIncrements(r)
		}
		r.run(time.Second)
		r.add("a1", 1, 10)
		r.lost = func(from, _ *member) bool { return from.name == "a2" }
		r.run(1500 * time.Millisecond)
		r.lost = nil
		r.run(3 * time.Second)
		r.add("a1", 1, 5)
		r.run(time.Second)
		if r.of("a1").count(Resent) == 0 {
			t.Error("nothing was sent again")
		}
		return r.total("a2", 1)
	}, 15, 25)
}

// sendIncrements makes a1 send the increments since the latest acknowledgement
// and a2 add them up: counts as operations and not as states.
func sendIncrements(r *rig) {
	acked := map[CellID]uint64{}
	sent := map[uint64]map[CellID]uint64{} // by Hi
	r.sending = func(m *member, msg *Message) {
		if m.name != "a1" || len(msg.Cells) == 0 {
			return
		}
		is := map[CellID]uint64{}
		for i := range msg.Cells {
			c := &msg.Cells[i]
			is[c.CellID] = c.Value.P
			c.Value.P -= acked[c.CellID]
		}
		sent[msg.Hi] = is
	}
	r.taking = func(m *member, msg *Message) {
		if m.name == "a1" {
			for id, p := range sent[msg.Ack] {
				acked[id] = p
			}
			return
		}
		for i := range msg.Cells {
			c := &msg.Cells[i]
			if at := m.state.find(c.CellID); at != none {
				c.Value.P += m.state.cells.at(at).Value.P
			}
		}
	}
}

// One aggregator knows of 100 hits, another of 50 that were refunded.
func TestMutationSumsByElement(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a", "b")
		b := r.of("b1")
		if broken {
			r.taking = func(m *member, msg *Message) {
				for i := range msg.Cells {
					c := &msg.Cells[i]
					if at := m.state.find(c.CellID); at != none {
						have := m.state.cells.at(at).Value
						c.Value = crdt.PN{P: max(have.P, c.Value.P), N: max(have.N, c.Value.N)}
					}
				}
			}
		}
		for i, v := range []crdt.PN{{P: 100}, {P: 50, N: 50}} {
			from := r.members[i].self.ID
			id := CellID{testKey(1), epoch, RegionSum, RegionIncarnation("a")}
			_ = r.hand(Message{
				From: from, To: b.self.ID, Shards: 1, Header: Header{Nonce: 1},
				Part: Part{Hi: 1, Cells: []Cell{{CellID: id, CellMeta: minute, Value: v}}},
			})
		}
		return b.Total(testKey(1), epoch)
	}, 100, 50)
}

// a2 restarts and would be the aggregator of a key. It receives nothing, only
// a3 knows the hits of a1, and b has a greater sum than a2's.
func TestMutationAggregatorBeforeResync(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a", "a", "b")
		r.run(3 * time.Second)
		k := r.kept("a2", "a3")
		r.addNear("a1", k, 10)
		r.run(3 * time.Second)
		if r.total("b1", k) != 10 {
			t.Errorf("b knows %d of 10", r.total("b1", k))
		}
		r.crash(r.of("a1"))
		if broken {
			r.cfg.ReadyWithin = 1 // is ready without any message
		}
		r.restart(r.of("a2"))
		r.lost = func(_, to *member) bool { return to.name == "a2" }
		r.run(500 * time.Millisecond)
		r.add("a2", k, 5)
		r.run(time.Second)
		return r.total("b1", k)
	}, 15, 10)
}

func TestMutationDroppedIncarnation(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a", "b")
		r.run(3 * time.Second)
		r.add("a1", 1, 10)
		r.run(time.Second)
		dead := r.of("a1").self.ID
		r.crash(r.of("a1"))
		if a2 := r.of("a2"); broken {
			a2.state.drop(a2.state.find(CellID{testKey(1), epoch, Daemon, dead}))
		}
		r.run(time.Second)
		r.add("a2", 1, 5)
		r.run(3 * time.Second)
		return r.total("b1", 1)
	}, 15, 10)
}

// A window ends and the next one begins in the same cell.
func TestMutationResetInPlace(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a")
		r.run(time.Second)
		r.add("a1", 1, 10)
		r.run(time.Minute)
		a1, next := r.of("a1"), epoch+minute.WindowLength
		if broken {
			next = epoch
			i := a1.state.find(CellID{testKey(1), epoch, Daemon, a1.self.ID})
			a1.state.cells.at(i).Value = crdt.PN{}
		}
		a1.Add(r.mono(a1), testKey(1), next, minute, 3, roomy)
		r.run(time.Second)
		return r.of("a2").Total(testKey(1), next)
	}, 3, 10)
}

func TestMutationReusedIncarnation(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{}, "a", "a")
		r.run(time.Second)
		r.add("a1", 1, 10)
		r.run(time.Second)
		a1 := r.of("a1")
		if incarnation := a1.self.ID; broken {
			r.crash(a1)
			r.start(a1, incarnation)
			r.meet()
		} else {
			r.restart(a1)
		}
		r.run(time.Second)
		r.add("a1", 1, 4)
		r.run(3 * time.Second)
		return r.total("a2", 1)
	}, 14, 10)
}

// Each seed is run twice; a leak of map order shows as two traces.
func TestMutationMapOrder(t *testing.T) {
	for seed := range uint64(20) {
		mutation(t, func(broken bool) bool {
			once, twice := trace(seed, broken), trace(seed, broken)
			return once == twice
		}, true, false)
	}
}

// trace hashes every message of a short run.
func trace(seed uint64, mapOrder bool) uint64 {
	h := fnv.New64a()
	r := newRig(Config{FrameCells: 32}, "a", "a", "b")
	r.sending = func(_ *member, m *Message) {
		if mapOrder {
			byID := map[CellID]Cell{}
			for _, c := range m.Cells {
				byID[c.CellID] = c
			}
			m.Cells = m.Cells[:0]
			for _, c := range byID {
				m.Cells = append(m.Cells, c)
			}
		}
		fmt.Fprintln(h, *m)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 10 {
		for range 40 {
			r.add(r.members[rng.IntN(3)].name, rng.IntN(1_000), 1+rng.IntN(9))
		}
		r.run(100 * time.Millisecond)
	}
	return h.Sum64()
}

// a1 drops a2 and adds it again, after two resyncs of a2: a2 still acknowledges
// the versions of the first one.
func TestMutationStaleAckAfterRejoin(t *testing.T) {
	mutation(t, func(broken bool) uint64 {
		r := newRig(Config{FrameCells: 1}, "a", "a", "a")
		a1, a2, a3 := r.of("a1"), r.of("a2"), r.of("a3")
		for i := range 5 {
			r.add("a1", i, 1)
		}
		r.run(3 * time.Second)
		r.crash(a3) // the members change, and all peers receive a resync
		r.run(3 * time.Second)
		a1.Peers(r.mono(a1), []Peer{a1.self})
		for i := range 5 {
			r.add("a1", 10+i, 1)
		}
		a1.Peers(r.mono(a1), []Peer{a1.self, a2.self})
		if broken {
			a1.links.find(a2.self.ID).base = 0
		}
		r.run(10 * time.Second)
		known := uint64(0)
		for i := range 5 {
			known += r.total("a2", i) + r.total("a2", 10+i)
		}
		return known
	}, 10, 8)
}
