package control

import (
	"testing"
	"time"
)

// atRest returns a cluster of three voters in which nothing changes any more,
// at any moment between two heartbeats.
func atRest(t *testing.T, seed uint64, names ...string) *world {
	t.Helper()
	w := newWorld(t, seed, "a-0", "b-0", "c-0")
	for _, name := range append([]string{"a-0", "b-0", "c-0"}, names...) {
		w.add(name[:1], name, true)
	}
	w.run(time.Second)
	if err := w.find("a-0").node.Init(even("a", "b", "c"), true); err != nil {
		t.Fatal(err)
	}
	w.until("begun", 20*time.Second, func() bool { return w.leader() != nil && w.equal() })
	w.run(40*time.Second + time.Duration(w.rng.Int64N(int64(3*time.Second))))
	return w
}

// TestRestMessages counts what three voters send while nothing changes: each
// gets a heartbeat in 1.2 s, and the two that do not lead compare their
// versions now and then.
func TestRestMessages(t *testing.T) {
	w, sent := atRest(t, 1), map[[2]*machine]int{}
	w.between = func(from, to *machine) time.Duration {
		sent[[2]*machine{from, to}]++
		return 40 * time.Millisecond
	}
	w.run(time.Minute)
	for pair, n := range sent {
		most := 50 // heartbeats, or answers
		if l := w.leader(); pair[0] != l && pair[1] != l {
			most = 8
		}
		if n < most-2 || n > most+1 {
			t.Errorf("%s sent %s %d messages in a minute, want %d", pair[0].name, pair[1].name, n, most)
		}
	}
	if len(sent) != 6 {
		t.Errorf("%d of 6 pairs of daemons sent messages", len(sent))
	}
}

// TestSilentLeader: a leader that is silent for five heartbeats leads on, also
// if it was at rest before. One that stops has a successor no later than with
// heartbeats to all voters at each tick.
func TestSilentLeader(t *testing.T) {
	var sum time.Duration
	const seeds = 40
	for seed := range uint64(seeds) {
		w := atRest(t, seed)
		l := w.leader()
		if seed%2 == 0 {
			l.paused = true
			w.run(time.Second)
			l.paused = false
		} else { // what was sent just before is lost, too
			w.cut = func(from, _ *machine) bool { return from == l }
			w.run(800 * time.Millisecond)
			w.cut = func(_, _ *machine) bool { return false }
		}
		w.run(5 * time.Second)
		if w.leader() != l || !l.node.Leads() {
			t.Fatalf("seed %d: another daemon leads after a short silence", seed)
		}
		l.paused = true
		sum += w.until("succeeded", time.Minute, func() bool {
			for _, m := range w.machines {
				if m != l && m.node.Leads() {
					return true
				}
			}
			return false
		})
	}
	if mean := sum / seeds; mean > 3100*time.Millisecond { // of other draws with each change
		t.Errorf("a leader has a successor after %v on average, want 3.1s at most", mean)
	}
}

// TestRestLag: a daemon that lost an entry, and those that have it are at rest
// again, gets it without another one.
func TestRestLag(t *testing.T) {
	for _, name := range []string{"a-0", "a-1", "c-0"} {
		w := atRest(t, 1, "a-1", "b-1")
		m := w.find(name)
		w.cut = func(from, to *machine) bool { return from == m || to == m }
		w.until("another leader", 10*time.Second, func() bool {
			l := w.leader()
			return l != nil && l != m
		})
		w.submit(w.find("b-1"), Change{Note: &Note{Text: "while it was cut off"}})
		w.run(time.Minute)
		w.cut = func(_, _ *machine) bool { return false }
		if lag := w.until("equal at "+name, 20*time.Second, w.equal); lag > 5*time.Second {
			t.Errorf("%s got the entry %v after the cut, want 5s at most", name, lag)
		}
	}
}

// TestLostHeartbeat: heartbeats go on at each tick to a voter that does not
// answer, and to it alone.
func TestLostHeartbeat(t *testing.T) {
	w := atRest(t, 1)
	l := w.leader()
	var silent, other *machine
	for _, m := range w.machines {
		if m != l {
			silent, other = m, silent
		}
	}
	sent := map[*machine]int{}
	w.between = func(from, to *machine) time.Duration {
		if from == l {
			sent[to]++
		}
		return 40 * time.Millisecond
	}
	w.cut = func(from, _ *machine) bool { return from == silent }
	w.run(12 * time.Second)
	if n := sent[silent]; n < 25 {
		t.Errorf("%d heartbeats in 12 s to a voter that does not answer, want 25 or more", n)
	}
	if n := sent[other]; n > 12 {
		t.Errorf("%d heartbeats in 12 s to a voter that answers, want 12 at most", n)
	}
	if !l.node.Leads() {
		t.Error("the leader leads no more")
	}
}
