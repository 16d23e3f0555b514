package node

import (
	"testing"
	"time"
)

// Given rights are gone, also for a key whose count is far from the limit: the
// donor has not received the others' counts yet.
func TestGivenRightsAreGone(t *testing.T) {
	c := &cluster{delay: time.Millisecond, wan: 5 * time.Millisecond, rights: true, cuts: map[[2]string]bool{}}
	for _, n := range []string{"a1", "a2", "b1", "c1"} {
		c.daemons = append(c.daemons, &daemon{name: n, region: n[:1]})
	}
	for _, d := range c.daemons {
		c.start(t, d)
	}
	c.put(t, "domain: d\ndescriptors:\n  - key: k\n    rate_limit: "+
		"{unit: second, unit_multiplier: 10, requests_per_unit: 9, algorithm: fixed_window, overage_budget: 34%}\n")
	a := &asker{c: c, admitted: map[int64]uint64{}}
	a1, b1, c1 := c.daemons[0], c.daemons[2], c.daemons[3]
	a.ask(t, a1, 2)
	c.pass(256 * time.Millisecond)
	a.ask(t, a1, 1)
	c.pass(15 * time.Millisecond)
	a.ask(t, b1, 2)
	a.ask(t, c1, 2)
	a.ask(t, a1, 60)
	if worst := a.worst(false); worst > 12 {
		t.Errorf("%v admitted, want at most 12", worst)
	}
}

// TestLeaverTransfersRights: a daemon that leaves transfers its unused rights
// of a running window inside its region, also for keys far from their limits.
// The transferred rights count as used in its next run.
func TestLeaverTransfersRights(t *testing.T) {
	for _, rule := range []string{fixed100, sliding100} {
		c := rightsCluster(t, rule, "a1", "a2", "b1")
		a1, a2 := c.daemons[0], c.daemons[1]
		c.cuts[[2]string{"a", "b"}] = true
		c.cuts[[2]string{"a1", "a2"}] = true // no transfer before
		used := map[string]uint64{"k=few": c.grant(t, a1, "k=few", 2), "k=many": c.grant(t, a1, "k=many", 20)}
		delete(c.cuts, [2]string{"a1", "a2"})
		c.pass(time.Second)

		a1.node.Leave(a1.instant(c.now))
		c.drain(a1)
		c.pass(time.Second)
		if keys := a1.node.TransferAll(a1.instant(c.now), 1); keys != 1 {
			t.Errorf("rights to %d keys transferred, want to one", keys)
		}
		if keys := a1.node.TransferAll(a1.instant(c.now), MaxLastTransfers); keys != 1 {
			t.Errorf("rights to %d further keys transferred, want to one", keys)
		}
		c.drain(a1)
		c.pass(time.Second)
		c.stop(t, a1)
		for key, n := range used {
			if got := c.grant(t, a2, key, 100); got != 50-n {
				t.Errorf("%s: %s: the other daemon admits %d, want %d", rule, key, got, 50-n)
			}
		}
		c.pass(time.Second)
		c.start(t, a1)
		c.cuts[[2]string{"a1", "a2"}] = true
		for key := range used {
			if got := c.grant(t, a1, key, 100); got != 0 {
				t.Errorf("%s: %s: the next run admits %d, want none", rule, key, got)
			}
		}
	}
}
