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

// town is real voters with a log of layouts: a to e of region r, x to z of s.
type town struct {
	t     *testing.T
	at    time.Duration
	all   []*Acceptor
	peers []route.Peer
	down  []crdt.Incarnation
	log   Layouts
	ahead map[string]time.Duration // clocks that are wrong, by name
}

func newTown(t *testing.T) *town {
	w := &town{t: t}
	w.log.Begin(route.Layout{Regions: []route.Region{
		{Name: "r", Weight: 1, Replicas: []string{"a", "b", "c"}}, {Name: "s", Weight: 2, Replicas: []string{"x", "y", "z"}},
	}}, w.report)
	for i, name := range strings.Split("a b c d e x y z", " ") {
		region := "r"
		if i >= 5 {
			region = "s"
		}
		r, err := NewAcceptor(Config{Region: region, Name: name}, Start{})
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
		w.log.Turn(testNow+w.at.Milliseconds(), w.report)
		for i, r := range w.all {
			if slices.Contains(w.down, crdt.Incarnation(i+1)) {
				continue
			}
			r.Follow(w.at, w.log.Active, w.log.Announced)
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

// report returns what a live voter has on disk.
func (w *town) report(region, name string) (Report, bool) {
	for i, r := range w.all {
		if r.cfg.Region == region && r.cfg.Name == name && !slices.Contains(w.down, crdt.Incarnation(i+1)) {
			return r.Report(), true
		}
	}
	return Report{}, false
}

// announce announces other voters of region r.
func (w *town) announce(voters ...string) error {
	l := w.log.Active.Clone()
	l.Regions[0].Replicas = voters
	return w.log.Announce(l, w.report)
}

// TestChange moves the voters of one region, with a key held by the former
// ones, and shows which daemons vote when.
func TestChange(t *testing.T) {
	w := newTown(t)
	w.run(5)
	if got := w.voting(); got != "abcxyz" {
		t.Fatalf("%s vote: want the first layout's", got)
	}
	key := crdt.Key(5)
	for _, i := range []int{0, 1} { // the majority that held it
		w.all[i].records[key] = &keyState{Record: sticky.Record{Key: key, Ballot: sticky.Ballot{Round: 4, Owner: 1, Term: 1}, Watermarks: sticky.Watermarks{{Window: 1, Amount: 10 + uint64(i), End: testNow + 1000}}}}
	}
	for _, bad := range [][]string{{"nobody", "d"}, {"a", "b", "c", "d"}, {"a", "a", "b"}} {
		if err := w.announce(bad...); err == nil {
			t.Errorf("%q: announced", bad)
		}
	}
	w.down = []crdt.Incarnation{3} // c is dead throughout
	w.run(1)
	l := w.log.Active.Clone()
	l.Regions[0].Replicas, l.Pins = []string{"c", "d", "e"}, []route.Pin{{Rule: 7, Region: "s"}}
	if err := w.log.Announce(l, w.report); err != nil {
		t.Fatal(err)
	}
	for range 20 { // nobody votes under a layout that is not active
		w.run(1)
		if got := w.voting(); w.log.Announced != nil && strings.ContainsAny(got, "de") {
			t.Fatalf("%s vote before layout 2 is active", got)
		}
	}
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
	if v.Number() != 2 || v.Owner(key, 7, false, 0).Region != "s" || !v.IsVoter() || len(v.Voters()) != 3 {
		t.Errorf("view of layout %d, voters %v", v.Number(), v.Voters())
	}
	w.down = nil
	w.run(20)
	if got, number := w.voting(), w.all[2].layout.Number; got != "cdexyz" || number != 2 {
		t.Errorf("%s vote, c under layout %d: want c back, under 2", got, number)
	}
}

// TestLayoutOverruled: a layout that is overruled before it is active has
// sealed the former one, and the next voters copy from that once more.
func TestLayoutOverruled(t *testing.T) {
	w := newTown(t)
	w.run(5)
	key := crdt.Key(5)
	for _, i := range []int{0, 1} {
		w.all[i].records[key] = &keyState{Record: sticky.Record{Key: key, Watermarks: sticky.Watermarks{{Window: 1, Amount: 10, End: testNow + 1000}}}}
	}
	if err := w.announce("a", "d", "e"); err != nil {
		t.Fatal(err)
	}
	w.down = []crdt.Incarnation{4, 5} // before they copied
	w.run(10)
	if got := w.voting(); got != "" {
		t.Fatalf("%s vote under a layout that they sealed", got)
	}
	w.down = []crdt.Incarnation{1, 4, 5}
	if err := w.announce("b", "d", "e"); err == nil {
		t.Error("announced without a majority of its voters")
	}
	w.down = []crdt.Incarnation{1}
	if err := w.announce("b", "d", "e"); err != nil {
		t.Fatal(err)
	}
	w.run(20)
	if got := w.voting(); got != "bdexyz" {
		t.Errorf("%s vote: want those of layout 3", got)
	}
	if rec, _ := w.all[3].Record(key); rec.Watermarks.Amount(1) != 10 {
		t.Errorf("d holds %+v: want what the voters of layout 1 held", rec)
	}
}

// TestUnknownLayout: an acceptor that sealed a layout which the next one does
// not know of, since a recovery dropped it, does not seal that next one. It
// reports the one that it has.
func TestUnknownLayout(t *testing.T) {
	g := newRig(t, Start{})
	layout := func(number, log uint64, formers ...route.Former) *route.Layout {
		l := rigLayout()
		l.Number, l.Log, l.Formers = number, route.Log{Number: log, Random: 5 + log}, formers
		return l
	}
	first := layout(1, 0)
	first.Log = route.Log{}
	dropped := layout(2, 0, first.Former())
	g.r.Follow(0, first, dropped)
	g.ready()
	g.expect("sealed for", g.r.Layout().Number, uint64(2))
	next := layout(3, 1, first.Former())
	g.r.Follow(0, first, next)
	g.ready()
	g.expect("sealed for", g.r.Layout().Number, uint64(2))
	if u := g.r.Report().Unknown; u == nil || u.Number != 2 || u.Log != dropped.Log {
		t.Fatalf("report %+v: want layout 2 as unknown", g.r.Report())
	}
	next = layout(4, 1, first.Former(), dropped.Former())
	g.r.Follow(0, first, next)
	g.ready()
	g.expect("sealed for", g.r.Layout().Number, uint64(4))
	if g.r.Report().Unknown != nil {
		t.Errorf("report %+v: want nothing unknown", g.r.Report())
	}
}

// TestDroppedActivation: a recovery dropped that a layout is active, and with
// that its numbers of reserves. The acceptor keeps them, and reports the layout
// until the next one has them.
func TestDroppedActivation(t *testing.T) {
	g := newRig(t, Start{})
	announced := rigLayout()
	announced.Reserves = nil
	active := announced.WithReserves(0)
	g.r.Follow(0, nil, announced)
	g.ready()
	g.r.Follow(0, &active, nil)
	g.ready()
	for _, next := range []*route.Layout{announced, {Number: 2, Log: route.Log{Number: 1}, Regions: active.Regions, Formers: []route.Former{active.Former()}}} {
		g.r.Follow(0, nil, next)
		g.ready()
		if is := g.r.Layout(); !slices.EqualFunc(is.Reserves, active.Reserves, sameReserves) || is.Number != active.Number {
			t.Errorf("layout %+v: want that of before, %+v", is, active)
		}
		if u := g.r.Report().Unknown; u == nil || !u.HasReserves(&active) {
			t.Errorf("report %+v: want the active layout as unknown", g.r.Report())
		}
	}
	next := active.Clone()
	next.Number, next.Log, next.Formers = 3, route.Log{Number: 1}, []route.Former{active.Former()}
	g.r.Follow(0, nil, &next)
	g.ready()
	g.expect("sealed for", g.r.Layout().Number, uint64(3))
	if g.r.Report().Unknown != nil {
		t.Errorf("report %+v: want nothing unknown", g.r.Report())
	}
}

func sameReserves(a, b route.Reserves) bool { return a.From == b.From && a.Regions == b.Regions }
