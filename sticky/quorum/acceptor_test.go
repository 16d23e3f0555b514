package quorum

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

const testNow = int64(1_800_000_000_000)

// rig is voter a of a, b and c in region r, incarnations 1 to 3. Daemon d,
// incarnation 4, is of the region and no voter; x, incarnation 5, is the one of
// region s.
type rig struct {
	t   *testing.T
	r   *Acceptor
	at  time.Duration
	now int64
	log []Entry
}

func rigConfig() Config {
	return Config{Region: "r", Name: "a", MaxKeys: 3}
}

func rigLayout() *route.Layout {
	return &route.Layout{Number: 1, Regions: []route.Region{
		{Name: "r", Weight: 1, Replicas: []string{"a", "b", "c"}}, {Name: "s", Weight: 1},
	}}
}

func rigPeers() []route.Peer {
	return []route.Peer{
		{ID: 1, Name: "a", Region: "r", Ready: true},
		{ID: 2, Name: "b", Region: "r", Ready: true},
		{ID: 3, Name: "c", Region: "r", Ready: true},
		{ID: 4, Name: "d", Region: "r", Ready: true},
		{ID: 5, Name: "x", Region: "s", Ready: true},
	}
}

func newRig(t *testing.T, start Start) *rig {
	t.Helper()
	return newRigAt(t, start, testNow)
}

func newRigAt(t *testing.T, start Start, now int64) *rig {
	t.Helper()
	r, err := NewAcceptor(rigConfig(), start)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, r: r, now: now}
	r.Follow(0, rigLayout(), nil)
	r.Peers(0, 1, rigPeers())
	g.clocks()
	g.ready()
	return g
}

// clocks lets the acceptor measure that all clocks are equal, but for those
// that are ahead by incarnation.
func (g *rig) clocks(ahead ...Lead) {
	for _, p := range rigPeers()[1:] {
		if !slices.ContainsFunc(ahead, func(l Lead) bool { return l.Peer == p.ID }) {
			ahead = append(ahead, Lead{Peer: p.ID})
		}
	}
	g.r.Clocks(g.at, g.now, ahead)
}

// pass lets time pass on all clocks.
func (g *rig) pass(d time.Duration) {
	g.at += d
	g.now += d.Milliseconds()
}

// ready stores all pending entries, and returns all messages.
func (g *rig) ready() []sticky.Message {
	var out []sticky.Message
	for range 5 {
		rd := g.r.Ready(g.at)
		out = append(out, rd.Messages...)
		if rd.Wake <= g.at {
			g.t.Fatalf("wake at %v, now is %v", rd.Wake, g.at)
		}
		if rd.Store == nil {
			return out
		}
		g.log = append(g.log, rd.Store...)
		g.r.Stored()
	}
	g.t.Fatal("stores without end")
	return nil
}

func (g *rig) receive(m sticky.Message) error {
	m.To = 1
	if m.Number == 0 {
		m.Number = 1
	}
	return g.r.Receive(g.at, g.now, &m)
}

// rigKey returns a key by its number. All share one overflow record.
func rigKey(n uint64) crdt.Key { return crdt.Key(n * overflowRecords) }

func (g *rig) accept(owner crdt.Incarnation, round, key uint64, known, watermarks sticky.Watermarks) sticky.Accepted {
	g.t.Helper()
	err := g.receive(sticky.Message{From: owner, Accepts: []sticky.Accept{{
		Key: rigKey(key), Ballot: sticky.Ballot{Round: round, Owner: owner, Term: 1}, Seq: 1, Known: known, Watermarks: watermarks,
	}}})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, m := range g.ready() {
		if len(m.Accepted) == 1 && m.To == owner {
			return m.Accepted[0]
		}
	}
	g.t.Fatal("no vote")
	return sticky.Accepted{}
}

// watermark is the watermark of the window that ends in so many seconds.
func (g *rig) watermark(ends int64, amount uint64) sticky.Watermarks {
	return sticky.Watermarks{{Window: ends, Amount: amount, End: testNow + ends*1_000}}
}

func (g *rig) expect(what string, got, want any) {
	g.t.Helper()
	if got != want {
		g.t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func TestAcceptorVotes(t *testing.T) {
	g := newRig(t, Start{})
	g.expect("first", g.accept(2, 5, 1, nil, g.watermark(60, 20)).OK, true)
	g.expect("more", g.accept(2, 5, 1, nil, g.watermark(60, 40)).OK, true)
	v := g.accept(3, 4, 1, g.watermark(60, 40), g.watermark(60, 50))
	g.expect("below", v.Reason, sticky.Outvoted)
	g.expect("promised", v.Promised, sticky.Ballot{Round: 5, Owner: 2, Term: 1})
	g.expect("held", v.Held.Amount(60), uint64(40))
	g.expect("does not know", g.accept(3, 6, 1, g.watermark(60, 39), g.watermark(60, 50)).Reason, sticky.Outvoted)
	g.expect("knows", g.accept(3, 6, 1, g.watermark(60, 40), g.watermark(60, 50)).OK, true)
	g.expect("outvoted", g.accept(2, 5, 1, nil, g.watermark(60, 45)).Reason, sticky.Outvoted)
	g.expect("others", g.accept(2, 1, 2, nil, g.watermark(60, 1)).OK, true)
	g.expect("others", g.accept(2, 1, 3, nil, g.watermark(60, 1)).OK, true)
	g.expect("no room, and a shared record", g.accept(2, 1, 4, nil, g.watermark(60, 1)).OK, true)
	g.expect("room for those held", g.accept(2, 1, 3, nil, g.watermark(60, 2)).OK, true)
	st := g.r.Status()
	g.expect("keys", st.Keys, 4)
	g.expect("votes", st.Stats.Votes, uint64(7))
	g.expect("refusals", st.Stats.Refusals[sticky.Outvoted], uint64(3))
}

// TestAcceptorUnconfirmed checks that a voter that started does not vote before
// its record of the cluster is confirmed: its region may have been removed.
func TestAcceptorUnconfirmed(t *testing.T) {
	g := newRig(t, Start{})
	g.r.Confirmed(false)
	g.expect("unconfirmed", g.accept(2, 5, 1, nil, g.watermark(60, 20)).Reason, sticky.NotVoting)
	g.r.Confirmed(true)
	g.expect("confirmed", g.accept(2, 5, 1, nil, g.watermark(60, 20)).OK, true)
}

// TestAcceptorGroupCommit checks that what comes during a store goes into the
// next one together, and that no vote leaves before its watermarks are stored.
func TestAcceptorGroupCommit(t *testing.T) {
	g := newRig(t, Start{})
	send := func(key uint64) {
		if err := g.receive(sticky.Message{From: 2, Accepts: []sticky.Accept{{Key: rigKey(key), Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Seq: 1, Watermarks: g.watermark(60, key)}}}); err != nil {
			t.Fatal(err)
		}
	}
	send(1)
	first := g.r.Ready(0)
	send(2)
	send(3)
	send(1) // held already, and not stored yet
	between := g.r.Ready(0)
	g.expect("stores", len(first.Store), 2) // with the number of the write
	g.expect("votes before the store", len(first.Messages)+len(between.Messages)+len(between.Store), 0)
	g.r.Stored()
	second := g.r.Ready(0)
	g.expect("stores", len(second.Store), 3)
	g.expect("votes", len(second.Messages[0].Accepted), 1)
	g.r.Stored()
	third := g.r.Ready(0)
	g.expect("stores", len(third.Store), 0)
	g.expect("votes", len(third.Messages[0].Accepted), 3)
}

func TestAcceptorStoreFails(t *testing.T) {
	g := newRig(t, Start{})
	_ = g.receive(sticky.Message{From: 2, Accepts: []sticky.Accept{{Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Seq: 1, Watermarks: g.watermark(60, 1)}}})
	g.r.Ready(0)
	g.r.Failed(errors.New("disk full"))
	rd := g.r.Ready(0)
	g.expect("votes", len(rd.Messages), 0)
	g.expect("event", rd.Events[0].Kind, StoreFailed)
	g.expect("vote", g.accept(2, 1, 2, nil, g.watermark(60, 1)).Reason, sticky.NotVoting)
	st := g.r.Status()
	if st.Voting || !strings.Contains(st.Reason, "disk full") {
		t.Errorf("voting %v, %q: want the error", st.Voting, st.Reason)
	}
	next := rigLayout()
	next.Number = 2
	g.r.Follow(0, rigLayout(), next)
	if is := g.r.Report(); g.r.Layout().Number != 2 || is.Number != 1 || is.Copied {
		t.Errorf("layout %d, report %+v: want layout 2 for owners, and nothing new on disk", g.r.Layout().Number, is)
	}
}

func TestAcceptorEnded(t *testing.T) {
	g := newRig(t, Start{})
	g.accept(2, 1, 1, nil, g.watermark(10, 20))
	g.accept(2, 1, 2, nil, g.watermark(500, 20))
	g.expect("known", g.accept(3, 2, 1, nil, g.watermark(60, 1)).Reason, sticky.Outvoted)
	// Window 10 is over on this voter's clock: it need not be known any more,
	// and nobody gets it again.
	g.pass(12 * time.Second)
	g.expect("over", g.accept(3, 2, 1, nil, g.watermark(60, 1)).OK, true)
	g.expect("again", g.accept(4, 3, 1, g.watermark(60, 1), g.watermark(10, 1)).Reason, sticky.Ended)
	rec, _ := g.r.Record(rigKey(1))
	g.expect("marks", len(rec.Watermarks), 1)

	g.pass(3 * time.Minute)
	g.r.Tick(g.at, g.now)
	g.expect("keys", g.r.Status().Keys, 1)
	g.expect("for all ledgers", g.accept(4, 9, 7, nil, g.watermark(60, 1)).Reason, sticky.Ended)
	var s Stored
	for _, e := range g.log {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	g.expect("stored", s.Meta.Ended, g.r.meta.Ended)
	again := newRigAt(t, Start{Stored: &s}, g.now-10_000) // the clocks went back
	again.pass(witnessFor)
	again.ready()
	again.expect("after a restart", again.accept(4, 9, 7, nil, again.watermark(60, 1)).Reason, sticky.Ended)
}

func TestAcceptorRefuses(t *testing.T) {
	good := func() sticky.Accept {
		return sticky.Accept{Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Seq: 1, Watermarks: sticky.Watermarks{{Window: 1, Amount: 1, End: testNow + 1_000}}}
	}
	accept := func(change func(*sticky.Message, *sticky.Accept)) sticky.Message {
		r := good()
		m := sticky.Message{From: 2}
		change(&m, &r)
		m.Accepts = []sticky.Accept{r}
		return m
	}
	copyOf := sticky.SnapshotRequest{Voter: route.NameHash("b"), Number: 1, Begin: true}
	for _, c := range []struct {
		what string
		m    sticky.Message
		want Rejection
	}{
		{"a stranger", accept(func(m *sticky.Message, _ *sticky.Accept) { m.From = 77 }), UnknownPeer},
		{"another region", accept(func(m *sticky.Message, r *sticky.Accept) { m.From, r.Ballot.Owner = 5, 5 }), OtherRegion},
		{"ballot of another", accept(func(_ *sticky.Message, r *sticky.Accept) { r.Ballot.Owner = 3 }), BadBallot},
		{"ballot of nobody", accept(func(_ *sticky.Message, r *sticky.Accept) { r.Ballot.Owner = 0 }), BadBallot},
		{"round 0", accept(func(_ *sticky.Message, r *sticky.Accept) { r.Ballot.Round = 0 }), BadBallot},
		{"round beyond all", accept(func(_ *sticky.Message, r *sticky.Accept) { r.Ballot.Round = sticky.MaxRound + 1 }), BadBallot},
		{"no marks", accept(func(_ *sticky.Message, r *sticky.Accept) { r.Watermarks = nil }), BadWatermarks},
		{"too many marks", accept(func(_ *sticky.Message, r *sticky.Accept) {
			r.Watermarks = make(sticky.Watermarks, sticky.MaxWatermarks+1)
		}), BadWatermarks},
		{"known out of order", accept(func(_ *sticky.Message, r *sticky.Accept) { r.Known = sticky.Watermarks{{Window: 2}, {Window: 2}} }), BadWatermarks},
		{"too many raises", sticky.Message{From: 2, Accepts: make([]sticky.Accept, sticky.MaxItems+1)}, TooMany},
		{"too many pages", sticky.Message{From: 2, SnapshotChunks: make([]sticky.SnapshotChunk, sticky.MaxSnapshotChunks+1)}, TooMany},
		{"copy for another", sticky.Message{From: 3, SnapshotRequests: []sticky.SnapshotRequest{copyOf}}, BadSnapshotRequest},
		{"copy of no replica", sticky.Message{From: 4, Layouts: []route.Layout{*rigLayout()}, SnapshotRequests: []sticky.SnapshotRequest{{Voter: route.NameHash("d"), Number: 1}}}, BadSnapshotRequest},
	} {
		g := newRig(t, Start{})
		if err := g.receive(c.m); err == nil {
			t.Errorf("%s: taken", c.what)
		}
		if n := g.r.Status().Stats.Rejected[c.want]; n != 1 {
			t.Errorf("%s: %d refused as %s, want 1: %v", c.what, n, c.want, g.r.Status().Stats.Rejected)
		}
	}
}

func TestAcceptorOtherNumbers(t *testing.T) {
	g := newRig(t, Start{})
	m := sticky.Message{From: 2, Number: 7, Accepts: []sticky.Accept{{Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Seq: 1, Watermarks: g.watermark(60, 1)}}}
	if err := g.receive(m); err != nil {
		t.Fatal(err)
	}
	g.expect("another layout", g.ready()[0].Accepted[0].Reason, sticky.OtherLayout)
	c := sticky.Message{From: 2, SnapshotRequests: []sticky.SnapshotRequest{{Voter: route.NameHash("b"), Number: 7, Begin: true}}}
	_ = g.receive(c)
	g.expect("another layout", g.ready()[0].SnapshotChunks[0].Reason, sticky.OtherLayout)
	c = sticky.Message{From: 2, SnapshotRequests: []sticky.SnapshotRequest{{Voter: route.NameHash("b"), Number: 1, Begin: true}}}
	_ = g.receive(c)
	g.expect("a copy without its layout", g.ready()[0].SnapshotChunks[0].Reason, sticky.OtherLayout)
}

// TestAcceptorPages checks that a voter merges no chunk but the one it
// requested.
func TestAcceptorPages(t *testing.T) {
	g := newRig(t, Start{Generation: 9})
	page := func(name string, change func(*sticky.SnapshotChunk)) {
		p := sticky.SnapshotChunk{Voter: route.NameHash(name), Number: 1, Begin: true, Last: true}
		change(&p)
		_ = g.receive(sticky.Message{From: crdt.Incarnation(name[0]-'a') + 1, SnapshotChunks: []sticky.SnapshotChunk{p}})
	}
	k := func(n uint64) sticky.Record {
		return sticky.Record{Key: rigKey(n), Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Watermarks: g.watermark(60, n)}
	}
	for _, bad := range []func(*sticky.SnapshotChunk){
		func(p *sticky.SnapshotChunk) { p.Begin = false },
		func(p *sticky.SnapshotChunk) { p.After = 1 },
		func(p *sticky.SnapshotChunk) { p.Number = 2 },
		func(p *sticky.SnapshotChunk) { p.Reason = sticky.NotVoting },
		func(p *sticky.SnapshotChunk) { p.Voter++ },
		func(p *sticky.SnapshotChunk) { p.Last = false },
		func(p *sticky.SnapshotChunk) { p.Records = []sticky.Record{k(2), k(1)} },
		func(p *sticky.SnapshotChunk) { p.Records = make([]sticky.Record, sticky.MaxRecords+1) },
		func(p *sticky.SnapshotChunk) {
			p.Records = []sticky.Record{{Watermarks: make(sticky.Watermarks, sticky.MaxWatermarks+1)}}
		},
		func(p *sticky.SnapshotChunk) {
			p.Generations = route.Generations{{Voter: 2, Generation: 1}, {Voter: 1, Generation: 1}}
		},
	} {
		page("b", bad)
	}
	page("d", func(*sticky.SnapshotChunk) {})
	g.expect("taken", g.r.Status().Keys, 0)
	page("b", func(p *sticky.SnapshotChunk) { p.Records, p.Last = []sticky.Record{k(1)}, false })
	page("b", func(p *sticky.SnapshotChunk) {
		p.Begin, p.After, p.Records = false, rigKey(1), []sticky.Record{k(2)}
	})
	page("b", func(p *sticky.SnapshotChunk) {
		p.Begin, p.After, p.Records = false, rigKey(1), []sticky.Record{k(3)}
	})
	g.expect("keys", g.r.Status().Keys, 2)
	g.expect("votes", g.r.Status().Voting, false)
	page("c", func(p *sticky.SnapshotChunk) { p.Ended = 55 })
	g.expect("votes", g.r.Status().Voting, true)
	g.expect("ended", g.r.meta.Ended, int64(55))
	g.expect("store number", g.r.Status().Generation, uint64(9))
}

// TestAcceptorPaging copies more than a chunk holds between two voters.
func TestAcceptorPaging(t *testing.T) {
	cfg := rigConfig()
	cfg.MaxKeys = 10_000
	from, err := NewAcceptor(cfg, Start{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 2_500
	for i := range uint64(n) {
		key := crdt.Key(rendezvous.Mix(i))
		from.records[key] = &keyState{Record: sticky.Record{Key: key, Ballot: sticky.Ballot{Round: 1, Owner: 2, Term: 1}, Watermarks: sticky.Watermarks{{Window: 1, Amount: i, End: testNow}, {Window: 2, Amount: i, End: testNow}}}}
	}
	cfg.Name = "b"
	to, err := NewAcceptor(cfg, Start{Generation: 1})
	if err != nil {
		t.Fatal(err)
	}
	from.Follow(0, rigLayout(), nil)
	to.Follow(0, rigLayout(), nil)
	from.Peers(0, 1, rigPeers())
	to.Peers(0, 2, rigPeers())
	pages := 0
	for range 20 {
		for _, r := range []*Acceptor{from, to} {
			rd := r.Ready(time.Second)
			r.Stored()
			for _, m := range rd.Messages {
				pages += len(m.SnapshotChunks)
				if other := map[crdt.Incarnation]*Acceptor{1: from, 2: to}[m.To]; other != nil {
					if err := other.Receive(time.Second, testNow, &m); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if len(to.records) != n || pages != 3 {
		t.Errorf("%d records in %d pages: want %d in 3", len(to.records), pages, n)
	}
}

// TestAcceptorLone checks that a voter without others never votes again once it
// lost its disk.
func TestAcceptorLone(t *testing.T) {
	cfg := rigConfig()
	l := rigLayout()
	l.Regions[0].Replicas = []string{"a"}
	r, err := NewAcceptor(cfg, Start{Generation: 4})
	if err != nil {
		t.Fatal(err)
	}
	r.Follow(0, l, nil)
	r.Peers(0, 1, rigPeers())
	for i := range 20 {
		r.Ready(time.Duration(i) * time.Second)
		r.Stored()
	}
	st := r.Status()
	if st.Voting || !strings.Contains(st.Reason, "no other voter") {
		t.Errorf("voting %v, %q", st.Voting, st.Reason)
	}
}

func TestNewAcceptorErrors(t *testing.T) {
	for what, change := range map[string]func(*Config, *Start){
		"no name":   func(c *Config, _ *Start) { c.Name = "" },
		"no region": func(c *Config, _ *Start) { c.Region = "" },
		"offset":    func(c *Config, _ *Start) { c.MaxOffset = -1 },
		"keys":      func(c *Config, _ *Start) { c.MaxKeys = -1 },
		"record": func(_ *Config, s *Start) {
			s.Stored = &Stored{Records: []sticky.Record{{Watermarks: make(sticky.Watermarks, sticky.MaxWatermarks+1)}}}
		},
		"layout":          func(_ *Config, s *Start) { s.Stored = &Stored{Layout: route.Layout{Number: 1}} },
		"next not higher": func(_ *Config, s *Start) { s.Stored = &Stored{Layout: *rigLayout(), Next: rigLayout()} },
	} {
		cfg, start := rigConfig(), Start{}
		change(&cfg, &start)
		if _, err := NewAcceptor(cfg, start); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}

// TestStoredPrefix cuts the log of a voter that starts without memory after
// each entry: the rest never votes, and is never accepted as a first start.
func TestStoredPrefix(t *testing.T) {
	g := newRig(t, Start{Generation: 3})
	for n := 1; n <= len(g.log); n++ {
		var s Stored
		for _, e := range g.log[:n] {
			if err := s.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		again := newRig(t, Start{Stored: &s})
		if st := again.r.Status(); st.Voting || n > 0 && st.Generation != 3 {
			t.Errorf("after %d entries: voting %v, store number %d", n, st.Voting, st.Generation)
		}
	}
	for _, e := range []Entry{
		{},
		{Meta: &Meta{}, Record: &sticky.Record{}},
		{Layout: &route.Layout{}},
		{Next: &route.Layout{}},
		{Meta: &Meta{Ended: -1}},
		{Record: &sticky.Record{Watermarks: make(sticky.Watermarks, sticky.MaxWatermarks+1)}},
	} {
		if err := new(Stored).Apply(e); err == nil {
			t.Errorf("entry %+v: taken", e)
		}
	}
}

// TestSnapshot checks that a snapshot and the log hold the same state.
func TestSnapshot(t *testing.T) {
	g := newRig(t, Start{})
	for i := range uint64(3) {
		g.accept(2, i+1, i, nil, g.watermark(60, i+1))
		g.accept(2, i+2, i, nil, g.watermark(60, i+2))
	}
	var log, snap Stored
	for _, e := range g.log {
		if err := log.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	g.r.Snapshot(func(e Entry) {
		if err := snap.Apply(e); err != nil {
			t.Fatal(err)
		}
	})
	log.index, snap.index = nil, nil
	if a, b := fmt.Sprintf("%+v", log), fmt.Sprintf("%+v", snap); a != b {
		t.Errorf("log\n%s\nsnapshot\n%s", a, b)
	}
}
