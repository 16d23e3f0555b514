package gossip

import (
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
