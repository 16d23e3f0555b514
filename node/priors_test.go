package node

import (
	"testing"
	"time"
)

// TestLoadOfAKeyWithoutRoom: hits of a key that has no room at a daemon are a
// part of its load: when the key has room again, the daemon admits its share at
// the start of a window.
func TestLoadOfAKeyWithoutRoom(t *testing.T) {
	c := newCluster(t, "{unit: second, requests_per_unit: 30}", "a1", "b1")
	a1 := c.find(t, "a1")
	second := func() (admitted int) {
		c.pass(time.Second - c.now%time.Second)
		admitted = c.admit(t, "a1", 50)
		c.admit(t, "b1", 50)
		return admitted
	}
	for range 60 {
		second()
	}
	if got := second(); got < 14 || got > 16 {
		t.Fatalf("a1 admits %d hits of 30, want 15", got)
	}
	shares, added := &a1.node.keys.shares, 0
	for range 3 {
		c.pass(time.Second - c.now%time.Second)
		for a1.node.keys.live.Len() > 0 {
			a1.node.keys.sweep(a1.node.millis(a1.instant(c.now)), 1_000)
			c.pass(100 * time.Millisecond)
		}
		for ; shares.Len() < shares.Room(); added++ {
			shares.Add(-1)
		}
		var call Call
		for range 50 {
			if c.ask(t, a1, &call, "user=u"); call.Statuses[0].Degraded != KeysFull {
				t.Fatalf("the key has room: %+v", call.Statuses[0])
			}
		}
		c.admit(t, "b1", 50)
	}
	for range added {
		shares.Remove(-1)
	}
	if got := second(); got < 14 || got > 16 {
		t.Errorf("a1 admits %d hits of 30, want 15", got)
	}
}

// TestLoadOfDeniedHitsThatAreCharged: hits that are denied and charged are
// offered once. The load of a daemon with more of them is no greater.
func TestLoadOfDeniedHitsThatAreCharged(t *testing.T) {
	c := newCluster(t, "{unit: second, requests_per_unit: 300, charge_denied: true}", "a1", "b1")
	admitted := 0
	for range 100 {
		c.pass(time.Second - c.now%time.Second)
		admitted = c.admit(t, "a1", 300)
		c.pass(600 * time.Millisecond)
		c.admit(t, "b1", 300)
	}
	if admitted < 145 || admitted > 155 {
		t.Errorf("a1 admits %d hits of 300, want 150", admitted)
	}
}
