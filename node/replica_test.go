package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/rules"
)

// These schedules broke earlier designs. Each is played against the node and
// against a node with the broken rule. The number of hits admitted in all, of a
// limit of 10, must distinguish them. Schedules of frames and counts are in
// gossip.
//
//	schedule         the broken rule                            admitted of 10
//	LeapAndBack      windows are cut from the wall clock        20: an old window comes again
//	Leap             a leap ahead is believed at once           20: the next window is fresh
//	PeerAhead        any peer's clock is adopted                20: the next window is fresh
//	SameIncarnation  a restart keeps its incarnation            16: it never receives its own hits
func mutated(t *testing.T, play func(broken bool) int, ours, broken int) {
	t.Helper()
	if got := play(false); got != ours {
		t.Errorf("ours admits %d, want %d", got, ours)
	}
	if got := play(true); got != broken {
		t.Errorf("the broken variant admits %d, not %d: the schedule shows nothing", got, broken)
	}
}

// newCluster starts daemons of one limit and lets them find each other.
func newCluster(t *testing.T, limit string, names ...string) *cluster {
	t.Helper()
	c := &cluster{delay: time.Millisecond, wan: 40 * time.Millisecond, cuts: map[[2]string]bool{}}
	for _, name := range names {
		c.daemons = append(c.daemons, &daemon{name: name, region: name[:1]})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, "domain: d\ndescriptors:\n  - key: user\n    rate_limit: "+limit+"\n")
	c.pass(3 * time.Second)
	return c
}

// admit asks n times at a daemon and returns how many were allowed.
func (c *cluster) admit(t *testing.T, name string, n int) int {
	t.Helper()
	allowed := 0
	var call Call
	for range n {
		if c.ask(t, c.find(t, name), &call, "user=u"); call.Decision.Allowed {
			allowed++
		}
	}
	return allowed
}

const tenAMinute = "{unit: minute, requests_per_unit: 10}"

// The wall clock of a daemon leaps, windows are collected, and it is set back.
func TestMutationLeapAndBack(t *testing.T) {
	mutated(t, func(broken bool) int {
		c := newCluster(t, tenAMinute, "a1", "a2")
		a1 := c.find(t, "a1")
		pass := func(d time.Duration) {
			for end := c.now + d; c.now < end; c.pass(50 * time.Millisecond) {
				if broken {
					a1.node.clock = *hlc.NewClock(hlc.Config{})
				}
			}
		}
		admitted := c.admit(t, "a1", 20)
		a1.bend = time.Hour
		pass(15 * time.Second)
		a1.bend = 0
		pass(time.Second)
		return admitted + c.admit(t, "a1", 20)
	}, 10, 20)
}

func TestMutationLeap(t *testing.T) {
	mutated(t, func(broken bool) int {
		c := newCluster(t, tenAMinute, "a1", "a2", "a3")
		a1 := c.find(t, "a1")
		if broken {
			a1.node.clock.HoldJumps(false)
		}
		admitted := c.admit(t, "a1", 20)
		a1.bend = time.Hour
		c.pass(time.Second)
		return admitted + c.admit(t, "a1", 20)
	}, 10, 20)
}

// A daemon starts nearly an hour ahead of all others.
func TestMutationPeerAhead(t *testing.T) {
	mutated(t, func(broken bool) int {
		c := newCluster(t, tenAMinute, "a1", "a2", "a3")
		if a1 := c.find(t, "a1"); broken {
			a1.node.clock = *hlc.NewClock(hlc.Config{MaxOffset: time.Hour})
			a1.node.clock.HoldJumps(true)
		}
		admitted := c.admit(t, "a1", 20)
		a3 := c.find(t, "a3")
		a3.bend = 59 * time.Minute
		c.start(t, a3)
		c.pass(3 * time.Second)
		return admitted + c.admit(t, "a1", 20)
	}, 10, 20)
}

func TestMutationSameIncarnation(t *testing.T) {
	mutated(t, func(broken bool) int {
		c := newCluster(t, "{unit: hour, requests_per_unit: 10}", "a1", "a2")
		admitted := c.admit(t, "a1", 6)
		c.pass(time.Second)
		if broken {
			c.born = 0 // the same random numbers again
		}
		c.start(t, c.find(t, "a1"))
		c.pass(3 * time.Second)
		return admitted + c.admit(t, "a1", 20)
	}, 10, 16)
}

// What one daemon admits is off the limit of the others, with every algorithm
// and as far as the scope goes.
func TestEveryAlgorithmIsShared(t *testing.T) {
	for _, algorithm := range rules.Algorithms() {
		for _, c := range []struct {
			scope  string
			a2, b1 int
		}{
			{"global", 4, 0},
			{"region", 4, 10},
			{"node", 10, 10},
		} {
			t.Run(algorithm+" "+c.scope, func(t *testing.T) {
				limit := fmt.Sprintf("{unit: hour, requests_per_unit: 10, algorithm: %s, scope: %s}", algorithm, c.scope)
				all := newCluster(t, limit, "a1", "a2", "b1")
				if got := all.admit(t, "a1", 6); got != 6 {
					t.Fatalf("a1 admits %d of 6", got)
				}
				all.pass(2 * time.Second)
				if got := all.admit(t, "a2", 20); got != c.a2 {
					t.Errorf("a2 admits %d, want %d", got, c.a2)
				}
				all.pass(2 * time.Second)
				if got := all.admit(t, "b1", 20); got != c.b1 {
					t.Errorf("b1 admits %d, want %d", got, c.b1)
				}
			})
		}
	}
}

// A key that had calls before others counted it follows the counts of others
// into the next windows, and no count of an old window is held against it.
func TestWindowsRollTogether(t *testing.T) {
	c := newCluster(t, tenAMinute, "a1", "a2")
	for minute := range 3 {
		if got := c.admit(t, "a2", 1); got != 1 {
			t.Fatalf("minute %d: a2 admits none", minute)
		}
		if got := c.admit(t, "a1", 7); got != 7 {
			t.Fatalf("minute %d: a1 admits %d of 7", minute, got)
		}
		c.pass(time.Second)
		if got := c.admit(t, "a2", 20); got != 2 {
			t.Fatalf("minute %d: a2 admits %d, want 2", minute, got)
		}
		c.pass(time.Minute - time.Second)
	}
}

// A peer falls silent under a heavy load, and the window rolls: its possible
// counts do not matter in the next one.
func TestSilentPeerAndTheNextWindow(t *testing.T) {
	c := newCluster(t, "{unit: minute, requests_per_unit: 1000}", "a1", "b1")
	c.pass(54*time.Second - c.now)
	for range 50 {
		c.admit(t, "b1", 10)
		c.pass(100 * time.Millisecond)
	}
	c.cuts[[2]string{"b", "a"}] = true
	c.pass(time.Minute + time.Millisecond - c.now)
	if got := c.admit(t, "a1", 1000); got != 1000 {
		t.Errorf("a1 admits %d of 1000 in a window in which it heard of nobody", got)
	}
}

// Cells of a rule that is not in force here are kept and forwarded, and counted
// once it is.
func TestUnknownRulesAreKept(t *testing.T) {
	c := newCluster(t, tenAMinute, "a1", "a2")
	a2 := c.find(t, "a2")
	none, err := rules.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	set := c.set
	a2.node.SetRules(a2.instant(c.now), none)
	c.admit(t, "a1", 6)
	c.pass(time.Second)
	if len(a2.node.Cells(a2.instant(c.now), nil)) != 1 {
		t.Fatal("a2 holds no cell of a rule it does not know")
	}
	a2.node.SetRules(a2.instant(c.now), set)
	c.pass(time.Second)
	if got := c.admit(t, "a2", 20); got != 4 {
		t.Errorf("a2 admits %d, want 4", got)
	}
	diverged := 0
	for _, e := range a2.events {
		if e.Kind == gossip.RulesDiverged {
			diverged++
		}
	}
	if diverged != 1 {
		t.Errorf("it was said %d times that rules differ", diverged)
	}
}

// A bucket that a daemon did not know is learned from all counts of a message
// at once, so that none of them counts twice.
func TestABucketIsLearnedOnce(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "leaky_bucket"} {
		t.Run(algorithm, func(t *testing.T) {
			c := newCluster(t, "{unit: minute, requests_per_unit: 60, algorithm: "+algorithm+"}", "a1", "a2")
			c.find(t, "a2").node = nil
			c.members()
			c.pass(58*time.Second - c.now)
			c.admit(t, "a1", 10)
			c.pass(4 * time.Second) // into the next window of its counts
			c.admit(t, "a1", 10)
			c.start(t, c.find(t, "a2"))
			c.pass(3 * time.Second)
			own, got := c.remaining(t, "a1", "user=u"), c.remaining(t, "a2", "user=u")
			if got > own || got < own-5 { // the time of a hit in its window is not known
				t.Errorf("a2 has %d left, and a1, which admitted all hits, %d", got, own)
			}
		})
	}
}

// Answers of a daemon that all peers refuse are degraded, of limits whose hits
// are replicated.
func TestAloneIsDegraded(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "a2")
	a1 := c.daemons[0]
	var call Call
	for _, alone := range []bool{true, false} {
		want := NotDegraded
		if a1.node.SetAlone(alone); alone {
			want = Alone
		}
		if c.ask(t, a1, &call, "k=v"); call.Statuses[0].Degraded != want || !call.Decision.Allowed {
			t.Errorf("alone %v: %+v, want an admitted call with the reason %q", alone, call.Statuses[0], want)
		}
	}
}

// TestLeavingMessagesAreOfTheirTime: messages that a node sends as it leaves
// have the time at which it leaves, also if it had no work for a while.
func TestLeavingMessagesAreOfTheirTime(t *testing.T) {
	c := newCluster(t, tenAMinute, "a1", "a2", "a3", "b1")
	a1 := c.find(t, "a1")
	c.admit(t, "a1", 3)
	c.now += 150 * time.Millisecond
	at := a1.instant(c.now)
	a1.node.Leave(at)
	messages := a1.node.Ready().Messages
	for i := range messages {
		if got := time.Duration(messages[i].Nonce) * gossip.NonceUnit; got != at.Mono.Truncate(gossip.NonceUnit) {
			t.Errorf("a message of %v leaves at %v", got, at.Mono)
		}
	}
	if len(messages) == 0 {
		t.Error("no message")
	}
}
