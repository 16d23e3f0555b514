package gossip

import (
	"testing"
	"time"
)

// busyWith reports whether a daemon takes another to share the region's work.
func busyWith(m, of *member) bool {
	for k := range 1_000 {
		if m.roles.regions[m.links.find(of.self.ID).region].aggregator(testKey(k)) == of.self.ID {
			return true
		}
	}
	return false
}

// A daemon restarts, and one of its shards is ready long before another one:
// every second frame holds both. A peer that received its readiness must keep
// it. Otherwise the members of regions differ, and resyncs repeat for as long
// as that takes.
func TestSlowShardTakesNothingBack(t *testing.T) {
	r := newRig(Config{}, "a", "a", "b")
	a2 := r.of("a2")
	frames := map[*member]int{}
	r.sending = func(m *member, msg *Message) {
		if m != a2 || r.now > 5*time.Second {
			return
		}
		to := r.holder(msg.To)
		if frames[to]++; frames[to]%2 == 0 {
			return
		}
		slow := Message{From: msg.From, To: msg.To, Shard: 1, Header: msg.Header}
		slow.Ready = false
		frame := []Message{*msg, slow}
		Unite(frame)
		*msg = frame[0]
	}
	r.run(2 * time.Second)
	r.restart(a2)
	was := map[string]bool{}
	for r.now < 10*time.Second {
		r.run(step)
		for _, name := range []string{"a1", "b1"} {
			is := busyWith(r.of(name), a2)
			if was[name] && !is {
				t.Fatalf("%s thinks at %v that a2 is not ready any more", name, r.now)
			}
			was[name] = is
		}
	}
	if !was["a1"] || !was["b1"] {
		t.Errorf("who thinks that a2 is ready: %v", was)
	}
}

// The leaving of a daemon soon after its start counts immediately if membership
// reports it. By messages alone it counts once no shard can be slow to start.
func TestLeavingSoonAfterTheStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		member bool // membership reports it
		within time.Duration
	}{
		{"said by the membership", true, 100 * time.Millisecond},
		{"said by messages", false, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(Config{}, "a", "a")
			a1, a2 := r.of("a1"), r.of("a2")
			tell := func(ready bool) {
				a1.Peers(r.mono(a1), []Peer{a1.self, {ID: a2.self.ID, Name: a2.name, Region: a2.region, Ready: ready}})
			}
			tell(true)
			r.run(time.Second)
			if !busyWith(a1, a2) {
				t.Fatal("a2 takes no share")
			}
			a2.Leave(r.mono(a2))
			r.run(time.Second)
			if !busyWith(a1, a2) {
				t.Error("a2's messages alone are believed: they may hold a shard that starts")
			}
			if c.member {
				tell(false)
			}
			r.run(c.within)
			if busyWith(a1, a2) {
				t.Errorf("a1 does not know after %v that a2 leaves", c.within)
			}
		})
	}
}
