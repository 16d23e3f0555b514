package node

import (
	"testing"
	"time"
)

const sliding100 = "unit: minute, unit_multiplier: 10, requests_per_unit: 100, algorithm: sliding_window, overage_budget: 0%"

// restart stops a daemon and starts its next run.
func (c *cluster) restart(t testing.TB, d *daemon) {
	t.Helper()
	c.stop(t, d)
	c.pass(time.Second)
	c.start(t, d)
}

// A run that starts uses what is left of the rights of the stopped one, over
// any number of stops, with keys that it did not touch.
func TestNextRunTakesUpAccounts(t *testing.T) {
	for _, rule := range []string{fixed100, sliding100} {
		c := rightsCluster(t, rule, "a1", "b1")
		a1 := c.daemons[0]
		c.cuts[[2]string{"a", "b"}] = true
		for _, step := range []struct {
			key       string
			ask, want int
		}{
			{"k=few", 5, 5},
			{"k=many", 30, 30},
			{"k=many", 15, 15},
			{"k=many", 10, 5},
			{"k=few", 100, 45},
			{"k=new", 100, 50},
		} {
			if got := c.grant(t, a1, step.key, step.ask); got != uint64(step.want) {
				t.Errorf("%s: %s: %d of %d admitted, want %d", rule, step.key, got, step.ask, step.want)
			}
			c.restart(t, a1)
		}
	}
}

// A run whose accounts nobody took up leaves none of its windows to the run
// after the next one.
func TestCrashEndsAccounts(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "b1")
	a1 := c.daemons[0]
	c.cuts[[2]string{"a", "b"}] = true
	c.grant(t, a1, "k=v", 20)
	c.restart(t, a1)
	a1.node = nil
	c.members()
	c.start(t, a1)
	c.restart(t, a1)
	if got := c.grant(t, a1, "k=v", 20); got != 0 {
		t.Errorf("%d admitted in the window of a run that crashed, want none", got)
	}
}

// A node that handed on its accounts uses no rights.
func TestHandOnEndsUse(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1", "a2")
	a1, a2 := c.daemons[0], c.daemons[1]
	c.grant(t, a1, "k=v", 20)
	a1.left = &Accounts{}
	if !a1.node.HandOn(a1.instant(c.now), a1.left) {
		t.Fatal("no room")
	}
	if got := c.grant(t, a1, "k=v", 10); got != 0 {
		t.Errorf("%d admitted afterwards, want none", got)
	}
	if c.grant(t, a2, "k=v", 60); a1.node.Stats().Given > 0 {
		t.Errorf("%d transferred afterwards, want none", a1.node.Stats().Given)
	}
}

// Accounts are dropped when their windows are over.
func TestFormerAccountsEnd(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1")
	a1 := c.daemons[0]
	c.grant(t, a1, "k=v", 20)
	c.restart(t, a1)
	if n := len(a1.node.keys.former.keys); n != 1 {
		t.Fatalf("%d accounts taken up, want 1", n)
	}
	c.pass(11 * time.Minute)
	c.grant(t, a1, "k=w", 1)
	c.pass(time.Second)
	if n := len(a1.node.keys.former.keys); n != 0 {
		t.Errorf("%d accounts after their window, want none", n)
	}
}

func TestTakenUpDecisionsAllocateNothing(t *testing.T) {
	c := rightsCluster(t, fixed100, "a1")
	a1 := c.daemons[0]
	c.grant(t, a1, "k=v", 20)
	c.restart(t, a1)
	var call Call
	c.resolve(t, &call, "k=v")
	at := a1.instant(c.now)
	a1.node.Take(at, call.Hits(), call.Statuses)
	if n := testing.AllocsPerRun(100, func() { a1.node.Take(at, call.Hits(), call.Statuses) }); n != 0 {
		t.Errorf("%v allocations a decision, want none", n)
	}
}

// TestReceivedWaitsForResume: the use of a stopped run counts at once; rights
// that it received are used after Resume.
func TestReceivedWaitsForResume(t *testing.T) {
	for _, resumedAfter := range []int{0, 10} {
		c := rightsCluster(t, fixed100, "a1", "a2")
		a1 := c.daemons[0]
		c.cuts[[2]string{"a1", "a2"}] = true
		c.grant(t, a1, "k=v", 5)
		c.stop(t, a1)
		left, until := a1.left, a1.until
		a1.left = nil
		left.Keys[0].Back = 20 // received
		c.pass(time.Second)
		c.start(t, a1)
		a1.node.TakeUp(left, until)
		if got := c.grant(t, a1, "k=v", resumedAfter); got != 0 {
			t.Errorf("%d admitted before it goes on, want none", got)
		}
		a1.node.Resume()
		if got := c.grant(t, a1, "k=v", 100); got != 20-5 {
			t.Errorf("%d admitted once it goes on, want %d", got, 20-5)
		}
	}
}
