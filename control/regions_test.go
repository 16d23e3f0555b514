package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// TestRightsOfTheRecord begins a cluster, and changes its regions: each entry
// carries the epoch that follows, with the weights of the record.
func TestRightsOfTheRecord(t *testing.T) {
	w := begin(t)
	l := w.leader()
	r := l.node.Record()
	if len(r.Genesis) != len(r.Regions) || r.FirstGeneration() != r.Regions[0].Generation {
		t.Fatalf("genesis %+v of generation %v, regions %+v", r.Genesis, r.FirstGeneration(), r.Regions)
	}
	for _, g := range r.Regions {
		if len(g.Founders) != 1 || g.ID() == 0 || g.Founders[0].Member() == 0 {
			t.Errorf("founders %v of region %q: want its daemon", g.Founders, g.Name)
		}
	}
	gone := r.Regions[0].Name
	if gone == l.region {
		gone = r.Regions[1].Name
	}
	id := r.Region(gone).ID()
	remove := Change{Region: &RegionChange{Op: RemoveRegion, Name: gone, Stopped: true}}
	if res := w.submit(l, remove); res.Err == nil {
		t.Error("a region was removed whose daemon runs")
	}
	for _, m := range w.machines {
		if m.region == gone {
			w.crash(m)
		}
	}
	w.run(time.Minute + time.Second)
	l = w.leader()
	if res := w.submit(l, remove); res.Err != nil {
		t.Fatal(res.Err)
	}
	r = l.node.Record()
	if len(r.Epochs) != 1 || r.Epochs[0].Has(id) || r.Epochs[0].Total() != epoch.Whole || len(r.Epochs[0].Retired) != 1 ||
		r.Epochs[0].Retired[0].ID != id || r.Epochs[0].Retired[0].From < l.node.wall {
		t.Fatalf("epochs %+v: want one without the region, which it retires", r.Epochs)
	}
	for _, m := range w.machines {
		if m.region == gone {
			w.start(m)
		}
	}
	w.run(5 * time.Second)
	if res := w.submit(l, Change{Region: &RegionChange{Op: AddRegion, Name: gone, Weight: 200_000}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	r = l.node.Record()
	g, e := r.Region(gone), r.Epochs[1]
	if g.ID() == id || len(g.Founders) != 1 || e.AmountOf(0, g.ID()) != 200_000 || len(e.Retired) != 1 {
		t.Errorf("region %+v, epoch %+v: want a new generation, and the retirement until it is settled", g, e)
	}
	RightsOf(l.node).Settled(e.ID)
	next := e
	next.ID, next.Pred, next.Retired = epoch.ID{Stamp: e.ID.Stamp.Next()}, e.ID, nil
	next.Rules = []epoch.RuleShares{{Rule: 7, Shares: make([]uint32, len(next.Members))}}
	history := len(r.History)
	if res := w.submit(l, Change{Epoch: &next}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if r = l.node.Record(); len(r.Epochs) != 3 || len(r.History) != history {
		t.Errorf("%d epochs, %d commands instead of %d: want the epoch alone", len(r.Epochs), len(r.History), history)
	}
	if res := w.submit(l, Change{Region: &RegionChange{Op: WeighRegion, Name: gone, Weight: 300_000}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if e := l.node.Record().Epochs[3]; e.Pred != r.Epochs[1].ID || len(e.Retired) > 0 {
		t.Errorf("epoch %+v: want what is settled as its predecessor", e)
	}
}

// TestEpochRefused: an epoch of other regions or weights, or of the past, is no
// entry.
func TestEpochRefused(t *testing.T) {
	w := begin(t)
	l := w.leader()
	newest, err := l.node.Record().Newest()
	if err != nil {
		t.Fatal(err)
	}
	good := func() epoch.Epoch {
		e := newest.Without(0)
		e.ID = epoch.ID{Stamp: hlc.New(1, 0), Proposer: 1}
		return e
	}
	for what, change := range map[string]func(*epoch.Epoch){
		"of the founding": func(e *epoch.Epoch) { e.ID = epoch.ID{} },
		"without a region": func(e *epoch.Epoch) {
			*e = e.Without(e.Members[0].ID)
			e.ID = good().ID
		},
		"with other weights": func(e *epoch.Epoch) { e.Members[0].Amount--; e.Members[1].Amount++ },
		"with a horizon":     func(e *epoch.Epoch) { e.Horizon = 5 },
		"without an order":   func(e *epoch.Epoch) { e.Pred = e.ID },
	} {
		e := good()
		change(&e)
		if res := w.submit(l, Change{Epoch: &e}); res.Err == nil {
			t.Errorf("an epoch %s is accepted", what)
		}
	}
	e := good()
	if res := w.submit(l, Change{Epoch: &e}); res.Err != nil {
		t.Error(res.Err)
	}
}

// TestHold: the statement that a daemon has a record of rights counts when it
// is on disk, survives a restart, and ends with its id.
func TestHold(t *testing.T) {
	w := begin(t)
	m := w.machines[0]
	g := Holding{m.node.Record().Regions[0].Generation, 7}
	for range 2 {
		wrote := m.node.disk.number
		if RightsOf(m.node).Hold(g) {
			t.Error("a statement counts before it is stored")
		}
		w.run(time.Second)
		former := Holding{g.Generation, g.Number - 1}
		if !RightsOf(m.node).Hold(g) || !RightsOf(m.node).Hold(former) || RightsOf(m.node).Holds() != g || m.node.disk.number == wrote {
			t.Errorf("holds %v, %d writes after %d: want %v", RightsOf(m.node).Holds(), m.node.disk.number, wrote, g)
		}
		g.Number++
	}
	g.Number--
	w.crash(m)
	w.start(m)
	w.run(time.Second)
	if RightsOf(m.node).Holds() != g || !RightsOf(m.node).Hold(g) {
		t.Error("a restart forgets a statement")
	}
	former := m.node.ID()
	RightsOf(m.node).Renew("its record of rights is lost")
	w.run(10 * time.Second)
	if m.node.ID() == former || RightsOf(m.node).Holds() != (Holding{}) || !w.leader().node.Dead(former) {
		t.Errorf("id %v after %v, holds %v, the former is dead: %v", m.node.ID(), former, RightsOf(m.node).Holds(), w.leader().node.Dead(former))
	}
}

// TestRemovalAsksAll: a region is not removed that any daemon heard a short
// time ago, also when the record changed since that daemon stated it, nor while
// one that was heard may have stated it for other regions.
func TestRemovalAsksAll(t *testing.T) {
	w := begin(t)
	l := w.leader()
	var gone, other *machine
	for _, m := range w.machines {
		switch {
		case m == l:
		case gone == nil:
			gone = m
		default:
			other = m
		}
	}
	remove := Change{Region: &RegionChange{Op: RemoveRegion, Name: gone.region, Stopped: true}}
	w.cut = func(from, to *machine) bool { return from == gone && to == l || from == l && to == gone }
	w.run(2 * time.Minute)
	if w.leader() != l {
		t.Fatal("the leader changed: want the same for the test")
	}
	w.crash(gone)
	if _, err := l.node.Submit(Request{Author: "test", Change: Change{Note: &Note{Text: "another version"}}}); err != nil {
		t.Fatal(err)
	}
	res := w.submit(l, remove)
	if res.Err == nil || !strings.Contains(res.Err.Error(), other.name+" heard") {
		t.Fatalf("%v: want a refusal, since %s heard the region", res.Err, other.name)
	}
	w.run(time.Minute + time.Second)
	p := l.node.byID(other.node.ID())
	p.sender.HeardOf++
	if err := RightsOf(l.node).heardBy(gone.region); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("%v: want that it is not known whether %s heard the region", err, other.name)
	}
	w.run(30 * time.Second)
	if res := w.submit(w.leader(), remove); res.Err != nil {
		t.Error(res.Err)
	}
}

// TestRemovalOfALiveDaemon: a daemon that only others hear is not removed, also
// by a leader that never heard it itself.
func TestRemovalOfALiveDaemon(t *testing.T) {
	w := begin(t, "a-1")
	gone := w.find("a-1")
	id := gone.node.ID()
	l := w.leader()
	by := w.find("b-0")
	if l == by {
		by = w.find("c-0")
	}
	w.cut = func(from, to *machine) bool { return from == gone && to == l || from == l && to == gone }
	w.run(2 * time.Minute)
	remove := Change{Dead: &DeadID{ID: id, Stopped: true}}
	refused := func(want string) {
		t.Helper()
		if w.leader() != l {
			t.Fatal("the leader changed: want the same for the test")
		}
		if res := w.submit(by, remove); res.Err == nil || !strings.Contains(res.Err.Error(), want) {
			t.Errorf("%v: want %q", res.Err, want)
		}
	}
	refused("other daemons hear it")
	RightsOf(l.node).known = map[ID]known{}
	p := l.node.peer(gone.address)
	*p = peer{Peer: p.Peer, heardAt: -1}
	refused("does not know its id yet")
	w.crash(gone)
	w.run(time.Minute + time.Second)
	if res := w.submit(by, remove); res.Err != nil {
		t.Error(res.Err)
	}
}

// TestEndedBound: a record without room for the end of a region states how it
// gets some, and does.
func TestEndedBound(t *testing.T) {
	var r Record
	for i := range MaxEnded {
		if err := r.endRegion(&RegionChange{Name: fmt.Sprintf("r%03d", i), End: 5, Until: int64(3_000 - i)}); err != nil {
			t.Fatal(err)
		}
	}
	next := &RegionChange{Name: "next"}
	if err := r.endRegion(next); err == nil || !strings.Contains(err.Error(), `drops that of region "r255" at 1970-01-01T00:00:02.745Z`) {
		t.Errorf("%v: want the region that is dropped first, and when", err)
	}
	r.dropEnded(2_745)
	if err := r.endRegion(next); err != nil {
		t.Error(err)
	}
	if err := r.endRegion(&RegionChange{Name: "other"}); err == nil || !strings.Contains(err.Error(), `add "next" again`) {
		t.Errorf("%v: want the region whose end stays", err)
	}
	if _, err := r.restart(&RegionChange{Op: AddRegion, Name: "next", Stopped: true, End: 9}); err != nil {
		t.Error(err)
	}
	if err := r.endRegion(&RegionChange{Name: "next", End: 10, Until: 20}); err != nil || r.validateEnded() != nil {
		t.Error(err, r.validateEnded())
	}
	if r.dropEnded(20); len(r.Ended) != MaxEnded-1 {
		t.Errorf("%d ended regions: want all but one", len(r.Ended))
	}
}

// A founder keeps the id of its latest message: one that is not live any more,
// that started again after it, that leaves, or that was stopped with its region
// may have lost it.
func TestFoundersKeepTheirIDs(t *testing.T) {
	heard := func() (*witness, *Message) {
		w := newWitness(t)
		w.at += time.Second
		m := &Message{From: 2, To: 1, Statement: Statement{Sender: w.sender(0, 0, 1)}}
		if err := w.node.Receive(w.at, 1, m); err != nil {
			t.Fatal(err)
		}
		return w, m
	}
	for what, change := range map[string]func(w *witness, m *Message){
		"was heard a minute ago": func(w *witness, _ *Message) {
			w.at += time.Minute
			w.node.Tick(w.at, 60_001)
		},
		"leaves": func(w *witness, m *Message) {
			m.Sender.Leaving = true
			if err := w.node.Receive(w.at, 1, m); err != nil {
				t.Fatal(err)
			}
		},
		"started again": func(w *witness, _ *Message) {
			w.at += time.Second
			all := []Peer{{Address: 2, Name: "b-2", Region: "b"}, {Address: 9, Name: "b-2", Region: "b"}}
			w.node.Peers(w.at, 1, all)
		},
		"was stopped with its region": func(w *witness, _ *Message) {
			w.node.record = &Record{Regions: []Region{{Name: "a"}, {Name: "b"}}}
			w.at += time.Second
			w.node.clock(w.at)
			w.node.rights.follow(&Record{Regions: []Region{{Name: "a"}}, Ended: []EndedRegion{{Name: "b", End: 1}}})
		},
	} {
		w, m := heard()
		if got := w.node.rights.durable("b"); len(got) != 1 || got[0] != m.Sender.ID {
			t.Fatalf("founders %v, want %v", got, m.Sender.ID)
		}
		if change(w, m); len(w.node.rights.durable("b")) != 0 {
			t.Errorf("a daemon that %s is a founder", what)
		}
	}
	w, _ := heard()
	if w.node.leaving = true; len(w.node.rights.durable("a")) != 0 {
		t.Error("the asked daemon is a founder while it leaves")
	}
}
