//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"
)

// A region loses all its disks under three times the load of a limit with a
// budget. It is removed, and added again with empty disks. No window exceeds
// the budget.
func TestBudgetHoldsWhenARegionIsReplaced(t *testing.T) {
	t.Parallel()
	if !longRun() {
		t.Skip("make e2e-long runs it: a region is removed a minute after its last message")
	}
	c := newCluster(t, loopback{}, 2, "us", "eu", "ap")
	tr := c.traffic(20, aim{bounded, "moving", 1})
	tr.fills(bounded, boundedLimit, 40*time.Second)
	for _, d := range c.in("eu") {
		d.die(t)
		if err := os.RemoveAll(c.file(d.name + "-state")); err != nil {
			t.Fatal(err)
		}
	}
	us := c.daemon("us-0")
	// done reports why a command was not done: 3 is done and not settled yet.
	done := func(command string) string {
		code, out := us.rld(t, command)
		if code == 0 || code == 3 {
			return ""
		}
		time.Sleep(time.Second)
		return out
	}
	c.within(2*time.Minute, "the region is removed", func() string {
		return done("region remove eu --stopped --yes eu")
	})
	for _, d := range c.in("eu") {
		d.start(t)
	}
	c.whole(patience)
	c.within(patience, "the region is added", func() string {
		return done("region add eu --weight 30%")
	})
	c.within(patience, "the region holds rights", func() string {
		for _, d := range c.in("eu") {
			if n, err := d.metric("rld_rights_held_hits"); err != nil || n == 0 {
				return d.name + " holds none"
			}
		}
		return ""
	})
	time.Sleep(5 * time.Second)
	tr.stop()
	tr.keptTo(bounded, boundedLimit, boundedTotal)
}
