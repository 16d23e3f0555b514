package gossip

import (
	"slices"
	"testing"
	"time"
)

// TestSilentAggregator: the successor sums and informs while the aggregator of
// a key receives and sends nothing, and membership does not know that yet.
func TestSilentAggregator(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "a", "b")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	r.lost = func(from, to *member) bool { return from.name == "a1" || to.name == "a1" }
	r.run(2 * time.Second)
	for _, left := range []uint64{5, 0} {
		r.room = Room{Left: left, Limit: 10}
		r.of("a3").Add(r.mono(r.of("a3")), testKey(k), epoch, minute, 5, r.room)
		r.run(1500 * time.Millisecond)
	}
	for _, m := range r.members {
		if got := r.total(m.name, k); m.name != "a1" && got != 10 {
			t.Errorf("%s knows %d of 10 hits", m.name, got)
		}
	}
	r.lost = nil
	r.run(3 * time.Second)
	if got := r.total("a1", k); got != 10 || !r.of("a1").Aggregates(testKey(k)) || !r.of("a3").roles.regions[0].pair(testKey(k)).has(r.of("a1").self.ID) {
		t.Errorf("the aggregator knows %d of 10 hits when it is back", got)
	}
}

// TestSuccessorsThatRespond: the successor of a silent aggregator receives the
// earlier counts of others, also if it was silent itself meanwhile.
func TestSuccessorsThatRespond(t *testing.T) {
	for _, both := range []bool{false, true} {
		r := newRig(Config{}, "a", "a", "a", "a")
		r.run(3 * time.Second)
		k := r.kept("a1", "a2")
		r.add("a3", k, 10)
		r.run(smallEvery + DefaultInterval)
		if r.total("a1", k) != 10 || r.total("a2", k) != 0 {
			t.Fatalf("a1 knows %d hits and a2 %d, want 10 and 0", r.total("a1", k), r.total("a2", k))
		}
		silent := map[string]bool{"a1": true, "a2": both}
		r.lost = func(from, to *member) bool { return silent[from.name] || silent[to.name] }
		r.run(20 * time.Second)
		silent["a2"] = false
		r.run(10 * time.Second)
		if got := r.total("a2", k); got != 10 {
			t.Errorf("both silent %v: the successor knows %d of 10 hits", both, got)
		}
	}
}

// TestNewDaemonIsInformed: a daemon that joins learns of exhausted limits of
// keys that it does not keep.
func TestNewDaemonIsInformed(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a")
	r.run(3 * time.Second)
	r.room = Room{Left: 0, Limit: 10}
	const keys = 50
	for k := range keys {
		r.of("a1").Add(r.mono(r.of("a1")), testKey(k), epoch, minute, 10, r.room)
	}
	r.run(time.Second)
	r.join("a")
	r.meet()
	r.run(3 * time.Second)
	for k := range keys {
		if got := r.total("a4", k); got != 10 {
			t.Errorf("a4 knows %d of 10 hits of key %d", got, k)
		}
	}
}

// TestDaemonThatIsBackIsInformed: a daemon that received nothing for a while
// learns of a key that the region was informed of meanwhile, whether its peers
// took it for gone and lost their first messages to it, or it was silent.
func TestDaemonThatIsBackIsInformed(t *testing.T) {
	for _, gone := range []bool{false, true} {
		r := newRig(Config{}, "a", "a", "a", "a")
		r.run(3 * time.Second)
		k := r.kept("a1", "a2")
		a4 := r.of("a4")
		r.lost = func(from, to *member) bool { return from == a4 || to == a4 }
		if gone { // its peers alone notice
			a4.down = true
			r.meet()
			a4.down = false
		}
		r.room = Room{Left: 0, Limit: 10}
		r.of("a3").Add(r.mono(r.of("a3")), testKey(k), epoch, minute, 10, r.room)
		r.run(15 * time.Second)
		if gone {
			r.meet()
			r.run(300 * time.Millisecond)
		}
		r.lost = nil
		r.run(4 * time.Second)
		if got := r.total("a4", k); got != 10 {
			t.Errorf("a4, gone %v, knows %d of 10 hits", gone, got)
		}
	}
}

// TestRefundsRevokeAnExhaustedLimit: daemons that know of an exhausted limit
// from the aggregator alone learn of refunds too, whichever daemon makes them.
func TestRefundsRevokeAnExhaustedLimit(t *testing.T) {
	for _, by := range []string{"a1", "a2"} {
		r := newRig(Config{}, "a", "a", "a", "a")
		r.run(3 * time.Second)
		k := r.kept("a1", "a3")
		r.room = Room{Left: 0, Limit: 10}
		r.of(by).Add(r.mono(r.of(by)), testKey(k), epoch, minute, 10, r.room)
		r.run(time.Second)
		if got := r.total("a4", k); got != 10 {
			t.Fatalf("a4 knows %d of 10 hits of %s", got, by)
		}
		r.refund(by, k, 4)
		r.run(time.Second)
		if got := r.total("a4", k); got != 6 {
			t.Errorf("a4 knows %d hits after refunds of %s, want 6", got, by)
		}
	}
}

// TestNewDaemonIsInformedByTheSuccessor: a daemon that joins learns of a key
// that only the former aggregator had informed the region of.
func TestNewDaemonIsInformedByTheSuccessor(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "a")
	r.run(3 * time.Second)
	k := r.kept("a1", "a2")
	r.room = Room{Left: 0, Limit: 10}
	r.of("a3").Add(r.mono(r.of("a3")), testKey(k), epoch, minute, 10, r.room)
	r.run(time.Second)
	r.crash(r.of("a1"))
	r.meet()
	r.run(3 * time.Second)
	r.join("a")
	r.meet()
	r.run(3 * time.Second)
	newest := r.members[len(r.members)-1]
	if newest.Aggregates(testKey(k)) || r.keeps(newest, k) {
		t.Fatalf("%s keeps the key: the schedule shows nothing", newest.name)
	}
	if got := r.total(newest.name, k); got != 10 {
		t.Errorf("%s knows %d of 10 hits", newest.name, got)
	}
}

// TestLeavingDaemonBelievesThoseThatLeave: a daemon that leaves sends its
// counts to those that stay, also if a peer joined lately and leaves again.
func TestLeavingDaemonBelievesThoseThatLeave(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a")
	r.run(2 * time.Second)
	a1, a2 := r.of("a1"), r.of("a2")
	a1.Leave(r.mono(a1))
	a2.Leave(r.mono(a2))
	r.run(200 * time.Millisecond)
	for m, o := range map[*member]*member{a1: a2, a2: a1} {
		if l := m.links.find(o.self.ID); !l.starting(r.mono(m)) || l.ready {
			t.Errorf("%s: %s is ready %v, starting %v", m.name, o.name, l.ready, l.starting(r.mono(m)))
		}
	}
}

// TestLeavingDaemonHandsOverWithoutSilentPeers: the pair of a key died
// and are members yet. A daemon that leaves hands its counts of it to others,
// and takes back one that answers again.
func TestLeavingDaemonHandsOverWithoutSilentPeers(t *testing.T) {
	for _, returns := range []bool{false, true} {
		r := newRig(Config{}, "a", "a", "a", "a", "a", "a")
		r.run(5 * time.Second)
		k, dead := r.kept("a1", "a2"), []*member{r.of("a1"), r.of("a2")}
		r.lost = func(from, to *member) bool { return slices.Contains(dead, from) || slices.Contains(dead, to) }
		r.add("a6", k, 10)
		a6 := r.of("a6")
		a6.Leave(r.mono(a6))
		r.run(time.Second)
		holders := 0
		for _, name := range []string{"a3", "a4", "a5"} {
			if r.total(name, k) == 10 {
				holders++
			}
		}
		if holders != 2 {
			t.Errorf("%d of the daemons that stay have the hits, want 2", holders)
		}
		if r.lost = nil; !returns {
			continue
		}
		r.run(4 * time.Second)
		for _, m := range dead {
			if got := r.total(m.name, k); got != 10 {
				t.Errorf("%s answers again and has %d of 10 hits", m.name, got)
			}
		}
	}
}
