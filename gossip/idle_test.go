package gossip

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
)

// regionsOf returns the regions of newRig for several of n daemons each.
func regionsOf(n int, names ...string) (all []string) {
	for _, name := range names {
		all = append(all, slices.Repeat([]string{name}, n)...)
	}
	return all
}

// TestResyncWithoutCells: a resync sends messages to the peers that keep a cell
// of the daemon, and none to the others.
func TestResyncWithoutCells(t *testing.T) {
	r := newRig(Config{}, regionsOf(6, "a", "b")...)
	r.run(8 * time.Second)
	a1, k := r.of("a1"), r.kept("a1", "a2")
	r.add("a1", k, 3)
	r.run(8 * time.Second)
	sent, done := map[string]int{}, a1.count(ResyncDone)
	r.sending = func(m *member, msg *Message) {
		if m == a1 && (len(msg.Cells) > 0 || !msg.Answers) { // else it is a heartbeat
			sent[r.holder(msg.To).name]++
		}
	}
	for _, l := range a1.links {
		a1.resync(r.mono(a1), l)
	}
	r.run(3 * time.Second)
	b := r.holder(a1.roles.regions[a1.links.find(r.of("b1").self.ID).region].aggregator(testKey(k)))
	if len(sent) != 2 || sent["a2"] == 0 || sent[b.name] == 0 {
		t.Errorf("changes were sent to %v, want a2 and %s", sent, b.name)
	}
	if n := a1.count(ResyncDone) - done; n != len(a1.links) {
		t.Errorf("%d of %d resyncs are done", n, len(a1.links))
	}
	r.add("a1", k, 4)
	r.run(2 * time.Second)
	if r.total("a2", k) != 7 || b.Total(testKey(k), epoch) != 7 {
		t.Errorf("a2 has %d, %s has %d", r.total("a2", k), b.name, b.Total(testKey(k), epoch))
	}
}

// TestIdleDaemon bounds the messages of a daemon without changes, and no peer
// seems to be silent for lack of them.
func TestIdleDaemon(t *testing.T) {
	for _, tt := range []struct {
		daemons int
		most    float64 // messages a second
	}{{3, 4.5}, {20, 14}} {
		r := newRig(Config{}, regionsOf(tt.daemons, "a", "b", "c")...)
		r.run(5 * time.Second)
		a1, sent := r.of("a1"), 0
		r.sending = func(m *member, _ *Message) {
			if m == a1 {
				sent++
			}
		}
		r.run(30 * time.Second)
		if rate := float64(sent) / 30; rate > tt.most {
			t.Errorf("%d daemons a region: %.1f messages a second, want %.1f at most", tt.daemons, rate, tt.most)
		}
		for _, m := range r.members {
			if n := m.count(PeerSilent); n > 0 {
				t.Errorf("%d daemons a region: %d peers of %s were silent", tt.daemons, n, m.name)
			}
		}
	}
}

// TestHeartbeatsAfterOtherMessages: a daemon that sends changes every 300 ms
// sends no heartbeats in between, but each second one of its messages echoes
// its peer. Once it sends no changes, a heartbeat follows within 1.5 s.
func TestHeartbeatsAfterOtherMessages(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(5 * time.Second)
	a1, sent, beats, echoes := r.of("a1"), 0, 0, 0
	r.sending = func(m *member, msg *Message) {
		if m == a1 {
			sent++
			if len(msg.Cells) == 0 {
				beats++
			}
			if msg.Answers && msg.Echo > 0 {
				echoes++
			}
		}
	}
	for range 40 {
		r.add("a1", 1, 1)
		r.run(300 * time.Millisecond)
	}
	if sent < 30 || beats > 0 {
		t.Errorf("%d messages with changes and %d heartbeats, want 30 or more and none", sent-beats, beats)
	}
	if echoes < 8 {
		t.Errorf("%d messages in 12 s echo the peer, want 8 or more", echoes)
	}
	r.run(1750 * time.Millisecond)
	if beats == 0 {
		t.Error("no heartbeat follows")
	}
}

// TestReadyTogether: peers of a large cluster that announce at about the same
// time that they are ready make a daemon assign the work once or twice, and not
// once for each.
func TestReadyTogether(t *testing.T) {
	r := newRig(Config{}, regionsOf(manyLinks+10, "a")...)
	r.run(2 * time.Second)
	a1 := r.of("a1")
	for _, l := range a1.links {
		l.ready = false
	}
	a1.reassign(r.mono(a1))
	was := a1.roles.version
	for _, m := range r.members[1:] {
		m.links.find(a1.self.ID).owe(r.mono(m))
	}
	r.run(100 * time.Millisecond)
	if n := len(a1.roles.regions[0].ids); n != len(r.members) {
		t.Errorf("%d of %d daemons share the work", n, len(r.members))
	}
	if n := a1.roles.version - was; n > 3 {
		t.Errorf("the work was assigned %d times", n)
	}
}

// TestFirstMessages: in a large cluster, two daemons of different regions
// exchange their first messages with a heartbeat. Until then, membership alone
// announces that a peer is ready, and no resync is counted.
func TestFirstMessages(t *testing.T) {
	r := newRig(Config{}, regionsOf(manyLinks/2+1, "a", "b")...)
	a1, b1 := r.of("a1"), r.of("b1")
	known := func() (n int) {
		for _, l := range a1.links {
			if !l.local && l.rtt >= 0 {
				n++
			}
		}
		return n
	}
	r.run(2 * time.Second)
	for m := range r.up {
		m.self.Ready = true
	}
	r.meet()
	if n := len(a1.roles.regions[1].ids); n != manyLinks/2+1 {
		t.Errorf("a1 knows of %d ready daemons of b, want all %d", n, manyLinks/2+1)
	}
	if n := known(); n > manyLinks/4 || a1.links.find(b1.self.ID).rtt < 0 {
		t.Errorf("a1 exchanged messages with %d daemons of b, want %d at most and b1", n, manyLinks/4)
	}
	if n := a1.count(ResyncStarted); n > 0 {
		t.Errorf("%d resyncs without cells", n)
	}
	unused := 0
	for l := range a1.Links(r.mono(a1)) {
		if l.Unused && !l.Silent && l.Age < 0 {
			unused++
		}
	}
	if unused < manyLinks/4 {
		t.Errorf("%d links are unused, want %d at least", unused, manyLinks/4)
	}
	r.run(20 * time.Second)
	if n := known(); n != manyLinks/2+1 {
		t.Errorf("a1 exchanged messages with %d daemons of b, want all %d", n, manyLinks/2+1)
	}
}

// TestFirstCells: a daemon that has cells for a peer does not wait for its
// first heartbeat, and may be asked for rights before.
func TestFirstCells(t *testing.T) {
	r := newRig(Config{}, append(regionsOf(manyLinks/2+1, "a", "b"), "b")...)
	for m := range r.up {
		m.self.Ready = true
	}
	r.meet()
	a1 := r.of("a1")
	r.run(time.Second)
	k, to := -1, (*link)(nil)
	for to == nil || !to.unused {
		for k++; !a1.Aggregates(testKey(k)); k++ {
		}
		to = linkOf(a1.Engine, a1.roles.regions[a1.links[manyLinks].region].aggregator(testKey(k)))
	}
	for _, other := range RemoteRegions(a1.Engine, nil, testKey(k), epoch) {
		if other.Silent || other.Aggregator != to.peer.ID {
			t.Errorf("%+v, want %v, which is not silent", other, to.peer.ID)
		}
	}
	r.add("a1", k, 3)
	r.run(time.Second)
	if b := r.holder(to.peer.ID); b.Total(testKey(k), epoch) != 3 {
		t.Errorf("%s has %d hits, want 3", b.name, b.Total(testKey(k), epoch))
	}
}

// TestQueue compares the queue of links with a sorted list.
func TestQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	q := queue{}
	var all links
	for i := range 100 {
		all = append(all, &link{cfg: &Config{}, informsBy: never, peer: Peer{ID: crdt.Incarnation(i + 1)}, lastSent: -time.Hour})
	}
	for range 10_000 {
		switch l := all[rng.IntN(len(all))]; {
		case rng.IntN(4) == 0:
			q.remove(l)
		default:
			l.due = time.Duration(rng.IntN(50))
			q.fix(l)
		}
		now, first := time.Duration(rng.IntN(50)), never
		var want []*link
		for _, l := range all {
			if l.queued > 0 {
				first = min(first, l.due)
				if l.due <= now {
					want = append(want, l)
				}
			}
		}
		if got := q.due(now, nil); !slices.Equal(got, want) || q.first() != first {
			t.Fatalf("%d links are due at %d, the first one at %d; want %d and %d", len(got), now, q.first(), len(want), first)
		}
	}
}
