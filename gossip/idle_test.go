package gossip

import (
	"slices"
	"testing"
	"time"
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
	b := r.holder(a1.roles.winner(a1.links.find(r.of("b1").self.ID), testKey(k)))
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
