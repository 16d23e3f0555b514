package quorum

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// crowd is three strict voters with room for few keys, and owners of more keys,
// of which several may take themselves for the owner of one.
type crowd struct {
	t        *rapid.T
	at       time.Duration
	room     []int // of each voter
	voters   []*Acceptor
	owners   []*crowdOwner
	peers    []route.Peer
	consumed map[crdt.Key]uint64
	shared   int // refusals with the watermarks of other keys
	lost     uint64
}

// crowdOwner counts one key as sticky/lease does: the consumption of others,
// and its own since then.
type crowdOwner struct {
	Proposer
	self        crdt.Incarnation
	key         crdt.Key
	others, own uint64
}

const (
	crowdLimit  = 6
	crowdWindow = testNow
	crowdEnd    = testNow + 3_600_000
)

func newCrowd(t *rapid.T) *crowd {
	w := &crowd{
		t: t, consumed: map[crdt.Key]uint64{}, peers: rigPeers()[:3],
		room: rapid.SliceOfN(rapid.IntRange(1, 3), 3, 3).Draw(t, "room"),
	}
	for i := range w.peers {
		w.voters = append(w.voters, w.voter(i, Start{}))
	}
	return w
}

func (w *crowd) voter(i int, start Start) *Acceptor {
	cfg := rigConfig()
	cfg.Name, cfg.MaxKeys = w.peers[i].Name, w.room[i]
	r, err := NewAcceptor(cfg, start)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Follow(0, rigLayout(), nil)
	r.Peers(w.at, w.peers[i].ID, w.peers)
	return r
}

// deliver delivers messages until there are none, but for those that are lost.
func (w *crowd) deliver(lossy bool) {
	for range 20 {
		var out []sticky.Message
		for _, r := range w.voters {
			for range 2 {
				out = append(out, r.Ready(w.at).Messages...)
				r.Stored()
			}
		}
		for i := range out {
			m := &out[i]
			if lossy && rapid.IntRange(0, 3).Draw(w.t, "lost") == 0 {
				continue
			}
			for j := range m.Accepted {
				w.accepted(&m.Accepted[j])
			}
			m.Accepted = nil
			if err := w.voters[m.To-1].Receive(w.at, testNow, m); err != nil {
				w.t.Fatal(err)
			}
		}
		if len(out) == 0 {
			return
		}
	}
}

func (w *crowd) accepted(a *sticky.Accepted) {
	if a.Shared {
		w.shared++
	}
	o := w.owners[a.Ballot.Term-1]
	if o.Accepted(a, w.voters[0].Routing()) == Lost {
		o.others, o.own = o.Known().Amount(crowdWindow), 0
	}
}

// advance has an owner ask for a watermark with some headroom.
func (w *crowd) advance(o *crowdOwner) {
	upTo := func(n uint64) sticky.Watermarks {
		return sticky.Watermarks{{Window: crowdWindow, Amount: n, End: crowdEnd}}
	}
	if o.others+o.own >= crowdLimit {
		return
	}
	o.Want(o.self, testNow, upTo(o.others), upTo(min(crowdLimit, o.others+o.own+2)))
	w.at += AcceptAgain
	o.Accepts(w.at, w.voters[0].Routing(), func(to crdt.Incarnation, a sticky.Accept) {
		a.Key = o.key
		m := sticky.Message{From: o.self, To: to, Number: 1, Accepts: []sticky.Accept{a}}
		if rapid.IntRange(0, 3).Draw(w.t, "arrives") > 0 {
			if err := w.voters[to-1].Receive(w.at, testNow, &m); err != nil {
				w.t.Fatal(err)
			}
		}
	})
	w.deliver(true)
}

// consume has an owner use all that it may.
func (w *crowd) consume(o *crowdOwner) {
	for o.others+o.own < o.Held().Amount(crowdWindow) && rapid.Bool().Draw(w.t, "hit") {
		o.own++
		if w.consumed[o.key]++; w.consumed[o.key] > crowdLimit {
			w.t.Fatalf("%d of %d of key %v are consumed", w.consumed[o.key], crowdLimit, o.key)
		}
	}
}

// loseDisk replaces a voter by one without its state, which copies that of the
// others before it votes.
func (w *crowd) loseDisk(i int) {
	w.lost++
	w.voters[i] = w.voter(i, Start{Generation: w.lost})
	for range 5 {
		w.at += requestAgain
		w.deliver(false)
	}
	if ok, why := w.voters[i].voting(); !ok {
		w.t.Fatalf("after the copy: %s", why)
	}
}

// TestOverflow plays owners of more keys than the voters have room for: owners
// that follow each other, or do not know of each other, lost messages, and
// voters that lose their disks. No key is consumed beyond its limit.
func TestOverflow(t *testing.T) {
	shared := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newCrowd(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case len(w.owners) == 0 || what == 0:
				// Two of the six keys share each overflow record.
				n := rapid.Uint64Range(0, 5).Draw(t, "key")
				w.owners = append(w.owners, &crowdOwner{
					Proposer: Proposer{Term: uint64(len(w.owners) + 1)}, self: crdt.Incarnation(rapid.IntRange(1, 3).Draw(t, "owner")),
					key: crdt.Key(n<<10 | n%3),
				})
			case what == 1 && w.lost < 3:
				w.loseDisk(rapid.IntRange(0, 2).Draw(t, "voter"))
			case what == 2: // other keys have ended
				i := rapid.IntRange(0, 2).Draw(t, "voter")
				w.room[i] = 9
				w.voters[i].cfg.MaxKeys = w.room[i]
			default:
				o := rapid.SampledFrom(w.owners).Draw(t, "of")
				w.advance(o)
				w.consume(o)
			}
		}
		for i, r := range w.voters {
			if n := len(r.records); n > max(w.room[i], 6)+3 {
				t.Fatalf("%d records of 6 keys at a voter with room for %d", n, w.room[i])
			}
		}
		shared += w.shared
	})
	if shared == 0 {
		t.Error("no voter ran out of room")
	}
}

// TestCollidingOwners has two owners, which do not know of each other, of two
// keys with one hash. Together they consume at most the limit, and both reach
// its end: none waits for the other one.
func TestCollidingOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newCrowd(t)
		for i := range 2 {
			w.owners = append(w.owners, &crowdOwner{Proposer: Proposer{Term: uint64(i + 1)}, self: crdt.Incarnation(i + 1), key: 7})
		}
		for range 100 {
			for _, o := range w.owners {
				w.advance(o)
				w.consume(o)
			}
		}
		for i, o := range w.owners {
			if o.others+o.own < crowdLimit {
				t.Fatalf("owner %d knows of %d consumed by others and %d of its own, %d are left", i+1, o.others, o.own, crowdLimit-o.others-o.own)
			}
		}
	})
}

// TestOverflowIsReported informs owners that a watermark is shared, until its
// window is over.
func TestOverflowIsReported(t *testing.T) {
	g := newRig(t, Start{})
	for key := range uint64(3) {
		g.expect("room", g.accept(2, 1, key, nil, g.watermark(60, 5)).OK, true)
	}
	g.expect("shares a record", g.accept(2, 1, 3, nil, g.watermark(60, 5)).OK, true)
	v := g.accept(3, 2, 4, nil, g.watermark(60, 5))
	g.expect("must know it", v.Reason, sticky.Outvoted)
	g.expect("shared", v.Shared, true)
	g.expect("held", v.Held.Amount(60), uint64(5))
	g.expect("knows it", g.accept(3, 2, 4, g.watermark(60, 5), g.watermark(60, 9)).OK, true)
	v = g.accept(2, 3, 1, nil, g.watermark(60, 9))
	g.expect("a key with a record", v.OK && !v.Shared, true)
	g.r.cfg.MaxKeys = 9 // there is room before the window is over
	v = g.accept(4, 3, 4, nil, g.watermark(60, 9))
	g.expect("a new record begins with what was shared", v.Held.Amount(60), uint64(9))
	g.expect("and that is shared", v.Shared, true)
	g.expect("knows that", g.accept(4, 3, 4, g.watermark(60, 9), g.watermark(60, 12)).OK, true)
	rec, _ := g.r.Record(rigKey(4))
	g.expect("a record before the end", rec.Watermarks.Amount(60), uint64(12))
	g.pass(5 * time.Minute)
	g.clocks()
	g.r.Tick(g.at, g.now)
	g.expect("keys", g.r.Status().Keys, 0)
	v = g.accept(2, 4, 4, nil, g.watermark(600, 5))
	g.expect("room again", v.OK && !v.Shared, true)
	_, own := g.r.Record(rigKey(4))
	g.expect("a record of its own", own, true)
}

// TestOverflowIsSpread copies the record of a key from one voter, and the
// overflow record of the key from another one that had no room for it.
func TestOverflowIsSpread(t *testing.T) {
	g := newRig(t, Start{Generation: 5})
	ballot := sticky.Ballot{Round: 3, Owner: 2, Term: 1}
	for key, amount := range map[crdt.Key]uint64{8<<10 | 3: 2, 8<<10 | 4: 2, overflowKey(8<<10 | 3): 6} {
		g.r.join(&sticky.Record{Key: key, Ballot: ballot, Watermarks: g.watermark(60, amount)})
		ballot.Term++
	}
	g.r.finish()
	g.ready()
	rec, _ := g.r.Record(8<<10 | 3)
	g.expect("joined", rec.Watermarks.Amount(60), uint64(6))
	g.expect("known to nobody", rec.Ballot.Owner, crdt.Incarnation(0))
	rec, _ = g.r.Record(8<<10 | 4)
	g.expect("another one", rec.Watermarks.Amount(60), uint64(2))
}
