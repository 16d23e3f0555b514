package gossip

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/georld/rld/gossip/prior"
)

// short is a window of a second.
var short = CellMeta{Rule: 3, WindowLength: 1_000}

// attack lets n windows of a second pass, in each of which every daemon counts
// 10 hits of a key and is denied as many as given.
func (r *rig) attack(k, n int, denied map[string]uint64) {
	for range n {
		r.run(time.Second - r.now%time.Second)
		for m := range r.up {
			window := r.wall(m) - r.wall(m)%1_000
			m.Add(r.mono(m), testKey(k), window, short, 10, roomy)
			Exhausted(m.Engine, r.mono(m), testKey(k), window, 1_000, denied[m.name])
		}
	}
	r.run(time.Second - r.now%time.Second)
}

// left returns how many hits of the present window a daemon leaves to others.
func (r *rig) left(m *member, k int, limit uint64) uint64 {
	window := r.wall(m) - r.wall(m)%1_000
	_, left := Expected(m.Engine, none, r.mono(m), time.Hour, testKey(k), window, window, limit, 1_000)
	return left
}

// TestLoadsReachAllDaemons: at the start of a window each daemon leaves to the
// others their part of the limit, in any topology.
func TestLoadsReachAllDaemons(t *testing.T) {
	for _, regions := range []string{"a b", "a a b", "a a b b c", "a a a a b b b c", "a a a a"} {
		r := newRig(Config{}, strings.Fields(regions)...)
		r.run(3 * time.Second)
		denied, all := map[string]uint64{}, uint64(0)
		for i, m := range r.members {
			denied[m.name] = 90 + 100*uint64(i)
			all += 10 + denied[m.name]
		}
		r.attack(1, 200, denied)
		for m := range r.up {
			own := 10 + denied[m.name]
			want := 10_000 - 10_000*own/all
			if got := r.left(m, 1, 10_000); got > want+1 || got+1 < want {
				t.Errorf("%s: %s leaves %d to others, want %d", regions, m.name, got, want)
			}
		}
		r.attack(1, 1, denied)
		r.run(900 * time.Millisecond)
		for m := range r.up {
			m.Add(r.mono(m), testKey(1), r.wall(m)-r.wall(m)%1_000, short, 1, roomy)
		}
		r.run(99 * time.Millisecond)
		r.run(12 * time.Second)
		for m := range r.up {
			if got := r.left(m, 1, 10_000); got != 0 {
				t.Errorf("%s: %s leaves %d to others that offer nothing any more", regions, m.name, got)
			}
			if n := m.state.loads.used - len(m.state.loads.free); n != 0 || m.Has(testKey(1)) {
				t.Errorf("%s: %s has %d loads of keys that are dropped", regions, m.name, n)
			}
		}
	}
}

// TestLagOfIdlePeers: a peer that sends nothing for many intervals, because its
// keys are used up, has its lag still. A silent one has none.
func TestLagOfIdlePeers(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(3 * time.Second)
	m := r.members[0]
	l := m.links[0]
	for _, idle := range []time.Duration{0, 4 * l.lag, time.Minute} {
		l.receivedAt = r.mono(m) - idle
		m.loads.lagAt = 0
		if got, silent := loadLag(m.Engine, r.mono(m)), idle == time.Minute; (got == 0) != silent {
			t.Errorf("a peer that is idle for %v has a lag of %v", idle, got)
		}
	}
}

// TestObserverMovesNoLag: a daemon measures the lag when it answers, and not
// when an observer reads it.
func TestObserverMovesNoLag(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(3 * time.Second)
	r.attack(1, 10, map[string]uint64{"a1": 90, "b1": 90})
	m := r.of("a1")
	was := r.left(m, 1, 100)
	lag, mean, at := m.loads.lag, m.loads.meanLag, m.loads.lagAt
	r.run(lagEvery)
	Observe(m.Engine, func() {
		if got := r.left(m, 1, 100); got != was {
			t.Errorf("%d hits are left to others for an observer, want %d", got, was)
		}
	})
	if l := &m.loads; l.lag != lag || l.meanLag != mean || l.lagAt != at {
		t.Errorf("an observer moved the lag from %v, mean %v, at %v to %v, %v, %v", lag, mean, at, l.lag, l.meanLag, l.lagAt)
	}
}

// TestPriorOutlastsLateMessages: a message that is late does not end the prior
// of a load that is just steady enough for the usual lag. A lag that stays long
// does.
func TestPriorOutlastsLateMessages(t *testing.T) {
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	r.attack(1, 60, map[string]uint64{"a1": 990, "b1": 990, "c1": 990})
	a := r.of("a1")
	late := func() time.Duration { // by two intervals
		a.links[0].lag = 3 * DefaultWANInterval
		r.run(lagEvery)
		return loadLag(a.Engine, r.mono(a))
	}
	usual := loadLag(a.Engine, r.mono(a))
	if lag := late(); lag < 2*usual {
		t.Fatalf("a late message prolongs the lag of %v to %v, want twice as much", usual, lag)
	}
	if got := r.left(a, 1, 300); got != 200 {
		t.Errorf("after a late message %d hits are left to others, want 200", got)
	}
	for range 2 * meanLagOver / lagEvery {
		late()
	}
	if a.loads.meanLag < 2*usual {
		t.Errorf("mean lag of %v, want twice the former one of %v", a.loads.meanLag, usual)
	}
}

// TestLoadsOfHitsWithoutCells: hits for which a daemon has no room for a cell
// are a part of its load.
func TestLoadsOfHitsWithoutCells(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(3 * time.Second)
	denied := map[string]uint64{"a1": 90, "b1": 90}
	r.attack(1, 200, denied)
	a1, b1 := r.of("a1"), r.of("b1")
	most := a1.state.max
	a1.state.max = 0
	for range 3 {
		window := r.wall(a1) - r.wall(a1)%1_000
		for range 10 {
			if a1.Add(r.mono(a1), testKey(1), window, short, 10, roomy) {
				t.Fatal("a1 has room for a cell")
			}
		}
		Exhausted(a1.Engine, r.mono(a1), testKey(1), window, 1_000, 1)
		b1.Add(r.mono(b1), testKey(1), window, short, 10, roomy)
		Exhausted(b1.Engine, r.mono(b1), testKey(1), window, 1_000, 90)
		r.run(time.Second - r.now%time.Second)
	}
	a1.state.max = most
	if got := r.left(a1, 1, 300); got < 140 || got > 160 {
		t.Errorf("a1 leaves %d hits to others, want 150", got)
	}
}

// TestPriorEnds: the prior ends 1.5 lags after the first hit of a window,
// whether others come or are silent.
func TestPriorEnds(t *testing.T) {
	r := newRig(Config{}, "a", "b", "c")
	r.run(3 * time.Second)
	denied := map[string]uint64{"a1": 90, "b1": 90, "c1": 90}
	r.attack(1, 200, denied)
	a := r.of("a1")
	r.lost = func(from, _ *member) bool { return from != a }
	a.Add(r.mono(a), testKey(1), r.wall(a)-r.wall(a)%1_000, short, 1, roomy)
	for start := r.now; r.now-start < 900*time.Millisecond; r.run(step) {
		lag := loadLag(a.Engine, r.mono(a))
		got := r.left(a, 1, 300)
		if ended := 2*(r.now-start) > 3*lag; got != 0 && ended || got == 0 && !ended {
			t.Fatalf("after %v, with a lag of %v, %d hits are left to others", r.now-start, lag, got)
		}
		if lag > mostLate*DefaultWANInterval+200*time.Millisecond {
			t.Fatalf("lag of %v: silent peers prolong it", lag)
		}
	}
}

// TestLoadsOfLiars: whatever peers report, the hits that are left to others
// never exceed the limit, no peer has more than one report, and no more is
// queued than keys have loads.
func TestLoadsOfLiars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		regions := strings.Fields(rapid.SampledFrom([]string{"a b", "a a b c", "a a a b b b"}).Draw(t, "regions"))
		r := newRig(Config{}, regions...)
		r.run(3 * time.Second)
		denied := map[string]uint64{"a1": 90, "b1": 90}
		r.attack(1, 6, denied)
		a := r.of("a1")
		for i := range rapid.IntRange(1, 30).Draw(t, "messages") {
			from := rapid.SampledFrom(r.members[1:]).Draw(t, "from")
			lie := Message{From: from.self.ID, To: a.self.ID, Shards: 1, Header: Header{Nonce: nonceOf(r.now) + uint64(i)}}
			for range rapid.IntRange(1, 300).Draw(t, "loads") {
				lie.Loads = append(lie.Loads, LoadReport{
					Key: testKey(rapid.IntRange(0, 2).Draw(t, "key")), Others: rapid.Bool().Draw(t, "others"),
					Window: rapid.OneOf(rapid.Int64(), rapid.Int64Range(r.wall(a)-5_000, r.wall(a)+1_000)).Draw(t, "window"),
					Load:   prior.Load{Offered: rapid.Uint64().Draw(t, "offered"), Doubted: rapid.Uint64().Draw(t, "doubted")},
				})
			}
			if err := r.hand(lie); err != nil {
				t.Fatal(err)
			}
			if limit := uint64(1_000); r.left(a, 1, limit) > limit {
				t.Fatal("more is left to others than the limit")
			}
			if n := a.state.loads.used; len(a.loads.queue) > n || n > 1 {
				t.Fatalf("%d loads and %d queued ones of one key", n, len(a.loads.queue))
			}
			n := a.state.loadOf(a.state.keyOf(testKey(1))).sources.Len()
			if n > len(r.members)+len(a.roles.regions) {
				t.Fatalf("%d sources of %d daemons", n, len(r.members))
			}
			for _, l := range a.links {
				if len(l.loads) > maxQueuedLoads {
					t.Fatalf("%d loads wait for one peer", len(l.loads))
				}
			}
			r.run(time.Duration(rapid.IntRange(0, 300).Draw(t, "wait")) * time.Millisecond)
		}
		// A silent or corrected peer has an effect no longer than a report
		// counts.
		r.lost = func(from, _ *member) bool { return from != a }
		r.run(10 * time.Second)
		if got := r.left(a, 1, 1_000); got != 0 {
			t.Fatalf("%d hits are left to silent peers", got)
		}
	})
}

// TestLoadsWithoutPeers: hits that a daemon denies while it has no peers are a
// part of its load, so that it leaves no more to others when they are back.
func TestLoadsWithoutPeers(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(3 * time.Second)
	denied := map[string]uint64{"a1": 90, "b1": 90}
	r.attack(1, 200, denied)
	a1, peers := r.of("a1"), r.peers()
	for range 5 {
		window := r.wall(a1) - r.wall(a1)%1_000
		a1.Peers(r.mono(a1), nil)
		for m := range r.up {
			m.Add(r.mono(m), testKey(1), window, short, 10, roomy)
			Exhausted(m.Engine, r.mono(m), testKey(1), window, 1_000, denied[m.name])
		}
		a1.Peers(r.mono(a1), peers)
		r.run(time.Second)
	}
	if got := r.left(a1, 1, 300); got != 150 {
		t.Errorf("a1 leaves %d hits to others, want 150", got)
	}
}
