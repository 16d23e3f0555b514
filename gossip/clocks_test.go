package gossip

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
)

// clocksOf are the clocks of peers that are ahead by these milliseconds.
func clocksOf(leads ...int64) Clocks {
	c := NewClocks(250 * time.Millisecond)
	for i, lead := range leads {
		c.peers = append(c.peers, peerClock{id: crdt.Incarnation(i + 1), low: lead, high: lead + 1})
	}
	return c
}

// unmeasured is clocksOf for peers whose round trip is not known.
func unmeasured(leads ...int64) Clocks {
	c := clocksOf(leads...)
	for i := range c.peers {
		c.peers[i].high = math.MaxInt64
	}
	return c
}

// TestJumpNeedsMajority: a jump of an hour is adopted if most peers had it.
func TestJumpNeedsMajority(t *testing.T) {
	const hour = 3_600_000
	e := New(Config{}, Peer{ID: 9, Name: "a1", Region: "a"}, 0, 1)
	for _, tt := range []struct {
		name    string
		clocks  Clocks
		adopted bool
	}{
		{"alone", clocksOf(), true},
		{"none of two", clocksOf(0, 0), false},
		{"one of one", clocksOf(hour), true},
		{"none of one", clocksOf(0), false},
		{"one of two", clocksOf(0, hour), true},
		{"one of three", clocksOf(0, hour, 0), false},
		{"two of three", clocksOf(hour, 0, hour), true},
		{"unknown", Clocks{maxOffset: 250, peers: []peerClock{{id: 1, high: math.MaxInt64}}}, false},
	} {
		clock := hlc.NewClock(hlc.Config{})
		clock.HoldJumps(true)
		at := func(mono, wall time.Duration) hlc.Instant {
			return hlc.Instant{Mono: mono, Wall: epoch*int64(time.Millisecond) + int64(wall)}
		}
		clock.Now(at(0, 0))
		clock.Now(at(time.Second, time.Hour+time.Second))
		if clock.Held() != time.Hour {
			t.Fatalf("%v is held", clock.Held())
		}
		tt.clocks.Tick(time.Second, clock, e)
		clock.Now(at(2*time.Second, time.Hour+2*time.Second))
		if adopted := clock.Held() == 0; adopted != tt.adopted {
			t.Errorf("%s: adopted %v", tt.name, adopted)
		}
	}
}

// TestOutlier: a clock is an outlier if more than half of the cluster
// contradicts it.
func TestOutlier(t *testing.T) {
	e := New(Config{}, Peer{ID: 9, Name: "a1", Region: "a"}, 0, 1)
	for _, tt := range []struct {
		clocks  Clocks
		outlier bool
	}{
		{clocksOf(0, 0, 0), false},
		{clocksOf(1_000, 0), false},
		{clocksOf(1_000, 1_000), true},
		{clocksOf(-1_000, -1_000, 0), false},
		{clocksOf(-1_000, -1_000, -1_000, 0), true},
		{clocksOf(-1_000, 1_000, 0), false},
		{unmeasured(-61_000, -61_000), true},
		{unmeasured(-60_000, -60_000), false}, // old messages, perhaps
	} {
		tt.clocks.count()
		tt.clocks.Tick(time.Second, hlc.NewClock(hlc.Config{}), e)
		if tt.clocks.Outlier() != tt.outlier {
			t.Errorf("%v: outlier %v", tt.clocks.peers, tt.clocks.Outlier())
		}
	}
}

// TestSilentPeersMakeNoOutlier: a region whose clocks were off is silent
// since. A daemon that the others agree with is no outlier for it.
func TestSilentPeersMakeNoOutlier(t *testing.T) {
	r := newRig(Config{}, "a", "b", "c", "c", "c")
	a1, clock := r.of("a1"), hlc.NewClock(hlc.Config{})
	c := NewClocks(250 * time.Millisecond)
	r.taking = func(m *member, msg *Message) {
		if from := r.holder(msg.From); m == a1 && msg.Stamp != 0 {
			lead := map[string]int64{"c": -1_000}[from.region]
			c.peers = slices.DeleteFunc(c.peers, func(p peerClock) bool { return p.id == msg.From })
			c.peers = append(c.peers, peerClock{id: msg.From, low: lead, high: lead + 1})
			c.count()
		}
	}
	outlier := func() bool {
		c.Tick(r.mono(a1), clock, a1.Engine)
		return c.Outlier()
	}
	r.run(3 * time.Second)
	if !outlier() {
		t.Fatal("three of four contradict it, and it is no outlier")
	}
	r.lost = func(from, _ *member) bool { return from.region == "c" }
	r.run(15 * time.Second)
	if outlier() {
		t.Error("silent peers contradict it")
	}
	r.lost = nil
	r.run(15 * time.Second)
	if !outlier() {
		t.Error("peers that answer again do not contradict it")
	}
}

// TestRoundTripFollows: the round trip falls at once and grows slowly.
func TestRoundTripFollows(t *testing.T) {
	l := &link{rtt: -1}
	trip := func(d time.Duration) {
		l.measureRTT(time.Second+d, &Message{Header: Header{Echo: nonceOf(time.Second)}})
	}
	trip(20 * time.Millisecond)
	trip(100 * time.Millisecond)
	if l.rtt != 25*time.Millisecond {
		t.Errorf("%v after one long trip, want 25 ms", l.rtt)
	}
	for range 200 {
		trip(100 * time.Millisecond)
	}
	if l.rtt < 99*time.Millisecond {
		t.Errorf("%v after many long trips", l.rtt)
	}
	if trip(10 * time.Millisecond); l.rtt != 10*time.Millisecond {
		t.Errorf("%v after a short trip", l.rtt)
	}
}

// TestLeaveSendsDelayedCounts: a daemon that leaves sends what quiet delayed.
func TestLeaveSendsDelayedCounts(t *testing.T) {
	r := newRig(Config{Quiet: 30 * time.Second}, "a", "a")
	r.run(3 * time.Second)
	r.add("a1", 0, 1)
	r.run(100 * time.Millisecond)
	if r.total("a2", 0) != 0 {
		t.Fatal("a quiet count was sent at once")
	}
	a := r.of("a1")
	a.Leave(r.mono(a))
	r.run(500 * time.Millisecond)
	if got := r.total("a2", 0); got != 1 {
		t.Errorf("a2 knows %d of 1 hit of a daemon that left", got)
	}
}
