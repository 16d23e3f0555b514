package quorum

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// town is real voters with real gossip: a to e of region r, x to z of s.
type town struct {
	t     *testing.T
	at    time.Duration
	all   []*Acceptor
	peers []route.Peer
	down  []crdt.Incarnation
	ahead map[string]time.Duration // clocks that are wrong, by name
}

func newTown(t *testing.T) *town {
	w := &town{t: t}
	for i, name := range strings.Split("a b c d e x y z", " ") {
		region, set := "r", 0
		if i >= 5 {
			region, set = "s", 1
		}
		l := route.Layout{Number: 1, Regions: []route.Region{{Name: "r", Weight: 1}, {Name: "s", Weight: 2}}}
		l.Regions[set].Replicas = [][]string{{"a", "b", "c"}, {"x", "y", "z"}}[set]
		r, err := NewAcceptor(Config{Region: region, Name: name, Genesis: l}, Start{First: true})
		if err != nil {
			t.Fatal(err)
		}
		w.all = append(w.all, r)
		w.peers = append(w.peers, route.Peer{ID: crdt.Incarnation(i + 1), Name: name, Region: region, Ready: true})
	}
	return w
}

// run lets rounds of 100 ms pass.
func (w *town) run(rounds int) {
	for range rounds {
		w.at += 100 * time.Millisecond
		w.meet()
		for i, r := range w.all {
			if slices.Contains(w.down, crdt.Incarnation(i+1)) {
				continue
			}
			r.Tick(w.at, w.now(i))
			messages := r.Ready(w.at).Messages
			r.Stored()
			messages = append(messages, r.Ready(w.at).Messages...)
			r.Stored()
			for _, m := range messages {
				if slices.Contains(w.down, m.To) {
					continue
				}
				if err := w.all[m.To-1].Receive(w.at, w.now(int(m.To-1)), &m); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	}
}

// now returns the clock of a daemon.
func (w *town) now(i int) int64 {
	return testNow + (w.at + w.ahead[w.all[i].cfg.Name]).Milliseconds()
}

// meet announces all live daemons to each other, and lets them measure their
// clocks.
func (w *town) meet() {
	for i, r := range w.all {
		if id := crdt.Incarnation(i + 1); !slices.Contains(w.down, id) {
			defer func() {
				var leads []Lead
				for _, p := range w.peers {
					leads = append(leads, Lead{Peer: p.ID, By: w.ahead[p.Name] - w.ahead[r.cfg.Name]})
				}
				r.Clocks(w.at, w.now(i), leads)
			}()
			r.Peers(w.at, id, slices.DeleteFunc(slices.Clone(w.peers), func(p route.Peer) bool { return slices.Contains(w.down, p.ID) }))
		}
	}
}

func (w *town) voting() string {
	out := ""
	for _, r := range w.all {
		if st := r.Status(); st.Voting {
			out += r.cfg.Name
		}
	}
	return out
}

// TestChange moves the voters of one region, with a key held by the former
// ones, and shows which daemons vote when.
func TestChange(t *testing.T) {
	w := newTown(t)
	w.meet()
	err := w.all[3].Propose(w.all[3].Layout())
	if err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("before others were heard: %v", err)
	}
	w.run(5)
	if got := w.voting(); got != "abcxyz" {
		t.Fatalf("%s vote: want the first layout's", got)
	}
	for _, r := range w.all {
		for _, region := range r.Layout().Regions {
			if len(region.Replicas) != 3 {
				t.Fatalf("%s knows of region %s only %q", r.cfg.Name, region.Name, region.Replicas)
			}
		}
	}
	key := crdt.Key{Hi: 5}
	for _, i := range []int{0, 1} { // the majority that held it
		w.all[i].records[key] = &keyState{Record: sticky.Record{Key: key, Ballot: sticky.Ballot{Round: 4, Owner: 1, Term: 1}, Watermarks: sticky.Watermarks{{Window: 1, Amount: 10 + uint64(i), End: testNow + 1000}}}}
	}
	badChanges(t, w.all[3].Layout())
	for what, set := range map[string][]string{"is not known": {"c", "d", "nobody"}, "odd": {"c", "d"}} {
		l, err := route.Change{Region: "r", Replicas: set}.Of(w.all[3].Layout())
		if err == nil {
			err = w.all[3].Propose(l)
		}
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v, want one with %q", set, err, what)
		}
	}
	l, err := route.Change{Region: "r", Replicas: []string{"e", "c", "d"}}.Of(w.all[3].Layout())
	if err != nil {
		t.Fatal(err)
	}
	l.Pins = []route.Pin{{Rule: 7, Region: "s"}}
	w.down = []crdt.Incarnation{3} // c is dead throughout
	w.run(1)
	if err := w.all[3].Propose(l); err != nil {
		t.Fatal(err)
	}
	w.run(1)
	if err := w.all[3].Propose(w.all[3].Layout()); err == nil {
		t.Error("a second change is taken before the first is in force")
	}
	w.run(20)
	if got := w.voting(); got != "cdexyz" && got != "dexyz" {
		// c is down and still thinks that it votes under layout 1.
		t.Fatalf("%s vote: want the second layout's", got)
	}
	for _, i := range []int{3, 4, 5, 6, 7} {
		if rec, _ := w.all[i].Record(key); rec.Watermarks.Amount(1) != 11 || rec.Ballot != (sticky.Ballot{Round: 4, Owner: 1, Term: 1}) {
			t.Errorf("%s holds %+v: want what a majority held", w.all[i].cfg.Name, rec)
		}
	}
	v := w.all[4].Routing()
	if v.Number() != 2 || v.Owner(key, 7, false).Region != "s" || !v.IsVoter() || len(v.Voters()) != 3 {
		t.Errorf("view of layout %d, seats %v", v.Number(), v.Voters())
	}
	w.down = nil
	w.run(20)
	if got, number := w.voting(), w.all[2].layout.Number; got != "cdexyz" || number != 2 {
		t.Errorf("%s vote, c under layout %d: want c back, under 2", got, number)
	}
}

func badChanges(t *testing.T, l route.Layout) {
	t.Helper()
	if _, err := (route.Change{Region: "r", Replicas: []string{"e", "d"}}).Of(l); err != nil {
		t.Error(err)
	}
	for _, bad := range []route.Change{{Region: "mars", Replicas: []string{"a"}}, {Region: "r", Replicas: nil}, {Region: "r", Replicas: []string{"a", "b", "c", "d"}}, {Region: "r", Replicas: []string{"a", "a", "b"}}} {
		if _, err := bad.Of(l); err == nil {
			t.Errorf("%+v: taken", bad)
		}
	}
}

// TestChangeConflict proposes two layouts at once: a voter that sealed for one
// sends no snapshot for the other.
func TestChangeConflict(t *testing.T) {
	w := newTown(t)
	w.run(5)
	for i, set := range [][]string{{"a", "d", "e"}, {"b", "c", "d"}} {
		l, err := route.Change{Region: "r", Replicas: set}.Of(w.all[i].Layout())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.all[i].Propose(l); err != nil {
			t.Fatal(err)
		}
	}
	conflicts := uint64(0)
	for range 30 {
		w.at += 100 * time.Millisecond
		for _, r := range w.all {
			messages := r.Ready(w.at).Messages
			r.Stored()
			messages = append(messages, r.Ready(w.at).Messages...)
			r.Stored()
			for _, m := range messages {
				_ = w.all[m.To-1].Receive(w.at, testNow, &m)
			}
		}
	}
	voters := map[string]int{}
	for _, r := range w.all[:5] {
		conflicts += r.stats.Rejected[Conflict]
		if ok, _ := r.voting(); ok && r.layout.Number == 2 {
			voters[strings.Join(r.layout.VotersOf("r"), "")]++
		}
	}
	if conflicts == 0 || len(voters) > 1 {
		t.Errorf("%d conflicts, voters %v: want some, and one of the layouts at most", conflicts, voters)
	}
}
