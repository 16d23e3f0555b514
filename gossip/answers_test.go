package gossip

import (
	"testing"
	"time"
)

// Few hits of a key that is far from its limit wait. The successor receives a
// copy of the aggregator's own counts, and of counts near the limit.
func TestHitsWait(t *testing.T) {
	for _, test := range []struct {
		name                  string
		writer                string
		hits                  int
		room                  Room
		aggregator, successor time.Duration // by when they have the hits, -1 for never
	}{
		{"few", "a1", 41, Room{Left: 1_000 - 41, Limit: 1_000}, smallEvery, -1},
		{"many", "a1", 42, Room{Left: 1_000 - 42, Limit: 1_000}, DefaultInterval, -1},
		{"one of a small limit", "a1", 1, Room{Left: 5, Limit: 6}, smallEvery, -1},
		{"two of a small limit", "a1", 2, Room{Left: 4, Limit: 6}, DefaultInterval, -1},
		{"few of the aggregator", "a2", 41, Room{Left: 1_000 - 41, Limit: 1_000}, 0, smallEvery},
		{"many of the aggregator", "a2", 42, Room{Left: 1_000 - 42, Limit: 1_000}, 0, DefaultInterval},
		{"few near the limit", "a1", 16, Room{Left: 400 - 16, Limit: 1_000}, smallEvery, smallEvery},
		{"many near the limit", "a1", 17, Room{Left: 400 - 17, Limit: 1_000}, DefaultInterval, DefaultInterval},
	} {
		r := newRig(Config{}, "a", "a", "a")
		r.run(3 * time.Second)
		k := r.kept("a2", "a3")
		begin := r.now
		m := r.of(test.writer)
		meta := CellMeta{WindowLength: 60_000}
		m.Add(r.mono(m), testKey(k), epoch, meta, uint64(test.hits), test.room)
		at := map[string]time.Duration{}
		for r.now-begin < 3*time.Second {
			r.run(step)
			for _, name := range []string{"a2", "a3"} {
				if _, has := at[name]; !has && r.total(name, k) == uint64(test.hits) {
					at[name] = r.now - begin
				}
			}
		}
		const delay = 3 * step
		if got, ok := at["a2"]; !ok || got > test.aggregator+delay {
			t.Errorf("%s: the aggregator has them after %v, %v, want at most %v", test.name, got, ok, test.aggregator)
		}
		if got, ok := at["a3"]; ok != (test.successor >= 0) || got > max(0, test.successor)+delay {
			t.Errorf("%s: the successor has them after %v, %v, want at most %v", test.name, got, ok, test.successor)
		}
	}
}

// Few hits of a key near its limit wait, unless others came shortly before.
func TestFastHitsNearLimit(t *testing.T) {
	for _, test := range []struct {
		apart time.Duration
		waits bool
	}{{slowHits - step, false}, {slowHits, true}} {
		r := newRig(Config{}, "a", "a", "a")
		r.run(3 * time.Second)
		k, m := r.kept("a2", "a3"), r.of("a1")
		own := func() *cell { return m.state.cells.at(m.state.find(m.ownID(testKey(k), epoch))) }
		r.addNear("a1", k, 1)
		if !own().small {
			t.Error("the first hit does not wait")
		}
		r.run(test.apart)
		if r.addNear("a1", k, 1); own().small != test.waits {
			t.Errorf("hits %v apart: the later one waits: %v, want %v", test.apart, own().small, test.waits)
		}
	}
}

// TestMessagesAnswerSeldom: most messages of a busy link neither acknowledge
// nor echo, and yet all is acknowledged within the time that an answer has.
func TestMessagesAnswerSeldom(t *testing.T) {
	r := newRig(Config{}, "a", "b")
	r.run(3 * time.Second)
	sent, answers := 0, 0
	r.sending = func(_ *member, msg *Message) {
		sent++
		if msg.Answers {
			answers++
		}
	}
	for range 100 {
		r.add("a1", 1, 5)
		r.add("b1", 2, 5)
		r.run(DefaultInterval)
	}
	if sent < 60 || answers > sent/2 {
		t.Errorf("%d of %d messages answer", answers, sent)
	}
	r.run(acknowledgeAfter + DefaultWANInterval)
	for _, name := range []string{"a1", "b1"} {
		if l := r.link(r.of(name)); l.Acked < l.Head || l.Age > 3*time.Second {
			t.Errorf("%s: acknowledged %d of %d, age %v", name, l.Acked, l.Head, l.Age)
		}
	}
}

// TestRegionsAreAsked: when one peer of a region is silent the others, which
// send rare heartbeats, must answer, and when one responds all of them.
func TestRegionsAreAsked(t *testing.T) {
	r := newRig(Config{}, "a", "a", "a", "b", "b", "b")
	r.run(20 * time.Second)
	cut := true
	r.lost = func(from, to *member) bool { return cut && from.region != to.region }
	silent := func() (n int) {
		for l := range r.of("a1").Links(r.mono(r.of("a1"))) {
			if l.Peer.Region == "b" && l.Silent {
				n++
			}
		}
		return n
	}
	r.run(5 * time.Second)
	if n := silent(); n != 3 {
		t.Errorf("%d of 3 peers are silent after 5 s", n)
	}
	cut = false
	r.run(2 * time.Second)
	if n := silent(); n != 0 {
		t.Errorf("%d of 3 peers are silent 2 s after the partition", n)
	}
}
