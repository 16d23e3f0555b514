package gossip

import (
	"slices"
	"testing"
	"time"
)

// TestLeavingDaemonHandsOverCountsOfFormerOnes: a daemon counted hits and left,
// and the others have it as a member yet. When those that keep its counts
// leave, or one of them dies, the last daemon has them all.
func TestLeavingDaemonHandsOverCountsOfFormerOnes(t *testing.T) {
	for _, c := range []struct {
		name string
		dies string   // after the writer left
		then []string // leave
	}{
		{"both that keep the counts leave", "", []string{"a2", "a3"}},
		{"the aggregator dies", "a2", []string{"a3"}},
		{"the successor dies", "a3", []string{"a2"}},
	} {
		r := newRig(Config{}, "a", "a", "a", "a")
		r.run(5 * time.Second)
		k, writer := r.kept("a2", "a3"), r.of("a1")
		r.add("a1", k, 10)
		r.run(3 * time.Second)
		leave := func(name string) {
			m := r.of(name)
			m.Leave(r.mono(m))
			r.run(time.Second)
			m.down = true
		}
		leave("a1")
		if c.dies != "" {
			r.of(c.dies).down = true
			peers := append(r.peers(), writer.self)
			for m := range r.up {
				m.Peers(r.mono(m), peers)
			}
			r.run(time.Second)
		}
		for _, name := range c.then {
			leave(name)
		}
		r.run(time.Second)
		if got := r.total("a4", k); got != 10 {
			t.Errorf("%s: the last daemon has %d of 10 hits", c.name, got)
		}
	}
}

// TestLeavingDaemonHandsOverWithoutPeersThatNeverAnswered: those that keep a
// key started again according to membership, and never answered. A daemon that
// leaves hands its counts of the key to another one, and to them if they answer
// later.
func TestLeavingDaemonHandsOverWithoutPeersThatNeverAnswered(t *testing.T) {
	for _, answer := range []bool{false, true} {
		r := newRig(Config{}, "a", "a", "a", "a")
		r.run(5 * time.Second)
		k, fresh := r.kept("a2", "a3"), []*member{r.of("a2"), r.of("a3")}
		r.lost = func(from, to *member) bool { return slices.Contains(fresh, from) || slices.Contains(fresh, to) }
		for _, m := range fresh {
			r.restart(m)
		}
		peers := r.peers()
		for i := range peers {
			peers[i].Ready = true
		}
		a4 := r.of("a4")
		a4.Peers(r.mono(a4), peers)
		r.add("a4", k, 10)
		a4.Leave(r.mono(a4))
		r.run(time.Second)
		if got := r.total("a1", k); got != 10 {
			t.Errorf("the daemon that stays has %d of 10 hits", got)
		}
		if r.lost = nil; !answer {
			continue
		}
		r.run(4 * time.Second)
		for _, m := range fresh {
			if got := r.total(m.name, k); got != 10 {
				t.Errorf("%s answers now and has %d of 10 hits", m.name, got)
			}
		}
	}
}

// TestLeavingDaemonsHandOverCountsOfOneThatCrashed: a daemon counted hits and
// crashed, and before anybody notices that those that keep its counts leave.
func TestLeavingDaemonsHandOverCountsOfOneThatCrashed(t *testing.T) {
	for _, then := range [][]string{{"a2", "a3"}, {"a3", "a2"}} {
		r := newRig(Config{}, "a", "a", "a", "a")
		r.run(5 * time.Second)
		k := r.kept("a2", "a3")
		r.add("a1", k, 10)
		r.run(3 * time.Second)
		r.of("a1").down = true
		for _, name := range then {
			m := r.of(name)
			m.Leave(r.mono(m))
			r.run(time.Second)
			m.down = true
		}
		if got := r.total("a4", k); got != 10 {
			t.Errorf("after %v left: the last daemon has %d of 10 hits", then, got)
		}
	}
}
