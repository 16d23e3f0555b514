package daemon

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// TestStrictProtocolErrors sends a daemon frames that no daemon of its region
// sends: they are rejected and counted, and the limit still holds.
func TestStrictProtocolErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), "us", "eu")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		owner := w.ownerOf(w.residents[0], "login", "bob")
		peer, self := otherIn(w, owner, owner.region), owner.cluster.self.ID
		if !peer.check(descriptor(1, "login", "bob")).Decision.Allowed {
			t.Fatal("refused at once")
		}
		c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "login", "bob")}}
		var x attempt
		err := owner.cluster.engine.open(&c, &x)
		if err != nil {
			t.Fatal(err)
		}
		key, rule := x.hits[0].Key, x.hits[0].Rule.Shared()
		window := time.Now().Truncate(time.Minute).UnixMilli()
		forge := func(from crdt.Incarnation, change func(*sticky.Message)) []byte {
			m := sticky.Message{From: from, To: self, Number: 1, Stamp: hlc.Timestamp(0)}
			change(&m)
			frame, err := wire.EncodeStrict(nil, &m)
			if err != nil {
				t.Fatal(err)
			}
			return frame
		}
		hello := link.Hello{Member: peer.cluster.self}
		unknown := link.Hello{Member: gossip.Member{Peer: gossip.Peer{ID: 77, Name: "mallory", Region: "us"}}}

		var bad *link.ProtocolError
		good := forge(peer.cluster.self.ID, func(*sticky.Message) {})
		for what, frame := range map[string][]byte{
			"cut":              good[:len(good)-1],
			"a foreign sender": forge(owner.cluster.self.ID, func(*sticky.Message) {}),
		} {
			if err := owner.cluster.Frame(hello, frame); !errors.As(err, &bad) {
				t.Errorf("%s: %v, want a protocol error", what, err)
			}
		}
		elsewhere := forge(hello.Member.ID, func(m *sticky.Message) { m.To = 4711 })
		if err := owner.cluster.Frame(hello, elsewhere); !errors.Is(err, replica.ErrOther) {
			t.Errorf("for another incarnation: %v", err)
		}

		before := w.stricts[owner.name].engine.StrictStats().Rejected
		rejected := func() uint64 {
			n := w.stricts[owner.name].acceptor
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.rejected
		}
		refused := rejected()
		ask := func(holder crdt.Incarnation, want uint64) func(*sticky.Message) {
			return func(m *sticky.Message) {
				m.Requests = []sticky.LeaseRequest{{ID: 1 << 40, Lessee: holder, Key: key, Rule: rule, Window: window, Want: want, Need: want}}
			}
		}
		accept := func(m *sticky.Message) {
			m.Accepts = []sticky.Accept{{
				Key: key, Ballot: sticky.Ballot{Round: 9, Owner: m.From, Term: 1}, Seq: 1,
				Watermarks: sticky.Watermarks{{Window: window, Amount: 5, End: window + 60_000}},
			}}
		}
		for what, frame := range map[string]struct {
			from link.Hello
			data []byte
		}{
			"a request in another's name": {hello, forge(hello.Member.ID, ask(4711, 5))},
			"a grant to itself": {hello, forge(hello.Member.ID, func(m *sticky.Message) {
				m.Grants = []sticky.LeaseGrant{{ID: 1, Owner: self, Key: key, Rule: rule, Window: window, Until: window + 60_000, Total: 1_000}}
			})},
			"accepted by an unknown daemon": {unknown, forge(77, func(m *sticky.Message) {
				m.Accepted = []sticky.Accepted{{Key: 1, Voter: 5, OK: true}}
			})},
			"an accept of an unknown daemon": {unknown, forge(77, accept)},
			"an accept under another's ballot": {hello, forge(hello.Member.ID, func(m *sticky.Message) {
				accept(m)
				m.Accepts[0].Ballot.Owner = self
			})},
		} {
			if err := owner.cluster.Frame(frame.from, frame.data); errors.As(err, &bad) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n := w.stricts[owner.name].engine.StrictStats().Rejected - before; n != 3 {
			t.Errorf("%d items were rejected by shards, want 3", n)
		}
		if n := rejected() - refused; n != 2 {
			t.Errorf("%d accepts were rejected, want 2", n)
		}
		for _, from := range []link.Hello{hello, unknown} {
			name := owner.cluster.name(from.Member.ID)
			if got := owner.lines("items about strict keys are rejected", "peer="+name); len(got) != 1 {
				t.Errorf("%d lines name %s", len(got), name)
			}
		}
		passed := 1
		for i := range 18 {
			if w.residents[i%6].check(descriptor(1, "login", "bob")).Decision.Allowed {
				passed++
			}
		}
		if passed > 5 {
			t.Errorf("%d passed, limit 5", passed)
		}
	})
}

// otherIn returns a daemon of a region other than one.
func otherIn(w *strictWorld, than *resident, region string) *resident {
	for _, r := range w.in(region) {
		if r != than {
			return r
		}
	}
	panic("no other daemon in " + region)
}

// TestStrictTooMany decides by on_failure when too many calls wait.
func TestStrictTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 1, strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		s := w.stricts["us-0"]
		full := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "login", "bob")}}
		if err := s.engine.open(&full, &attempt{}); err != nil {
			t.Fatal(err)
		}
		full.Decision.Allowed, full.Statuses[0].Wait = true, true
		var all []*replica.StrictCall
		s.With(func(p *replica.Process) {
			for p.Waiters.Refused() == 0 {
				x := &replica.StrictCall{}
				x.Start(&full)
				p.Waiters.Next(0, x)
				all = append(all, x)
			}
		})
		c := w.residents[0].check(descriptor(1, "login", "bob"))
		if c.Decision.Allowed || c.Statuses[0].Degraded != node.OwnerUnreachable || s.StrictStats().Unqueued != 2 {
			t.Errorf("%+v, %d refused", c.Statuses[0], s.StrictStats().Unqueued)
		}
		s.With(func(p *replica.Process) {
			for _, x := range all {
				p.Waiters.End(x)
			}
		})
		if !w.residents[0].check(descriptor(1, "login", "bob")).Decision.Allowed {
			t.Error("refused when there is room again")
		}
	})
}

// TestStrictTryCheck charges nothing for a call that has to wait.
func TestStrictTryCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStrictWorld(t, 3, strictRules(t, rules.Node{Key: "login", Limit: perMinute(5, rules.Deny)}), "us")
		defer w.closeDisks()
		untilInto(5 * time.Second)
		owner := w.ownerOf(w.residents[0], "login", "bob")
		e := otherIn(w, owner, "us").cluster.engine
		c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{descriptor(1, "login", "bob")}}
		if decided, err := e.TryCheck(&c); decided || err != nil {
			t.Errorf("decided %v, %v", decided, err)
		}
		c.Refundable = true
		if decided, err := e.TryCheck(&c); decided || err != nil || c.Receipts[0].Hits != 0 {
			t.Errorf("decided %v, %v, receipts %+v", decided, err, c.Receipts)
		}
		err := e.Check(t.Context(), &c)
		to := c.Receipts
		if err != nil || !c.Decision.Allowed || to[0].Hits != 1 {
			t.Errorf("%v, %+v, receipts %+v", err, c.Statuses, to)
		}
		for range 4 {
			if !owner.check(descriptor(1, "login", "bob")).Decision.Allowed {
				t.Error("refused: a call that was only tried was charged")
			}
		}
		if owner.check(descriptor(1, "login", "bob")).Decision.Allowed {
			t.Error("more than the limit")
		}
		if got := e.Refund(&to[0], 1); got.Hits != 1 {
			t.Errorf("refund: %+v", got)
		}
		w.within(2*time.Second, "the refunded hit can be used", func() bool {
			return owner.check(descriptor(1, "login", "bob")).Decision.Allowed
		})
	})
}
