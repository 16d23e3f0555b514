//go:build e2e

package e2e

import (
	"testing"
	"time"
)

func TestRollingRestartOfAllLosesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 3, "us", "eu", "ap")
	c.daemon("ap-0").spend(t, kept, "used", 600)
	c.agree(5*time.Second, c.daemons, kept, "used", ampleLimit-600)
	tr := c.traffic(60, aim{day, "early", 3}, aim{day, "late", 6}, aim{window, "spread", 2},
		aim{strict, "rolled", 6})

	var longest time.Duration
	for k := range 3 {
		for _, region := range c.regions {
			d := c.in(region)[k]
			begin := time.Now()
			d.terminate(t)
			d.start(t)
			c.whole(patience)
			c.together(patience)
			longest = max(longest, time.Since(begin))
		}
	}
	// None of the daemons that admitted them runs any more.
	c.agree(3*time.Second, c.daemons, kept, "used", ampleLimit-600)
	tr.stop()
	t.Logf("restarted %d daemons in turn, each in at most %s", len(c.daemons), seconds(longest))
	tr.served(c.daemons...)
	tr.audit()
	tr.keptTo(strict, strictLimit, strictLimit)
	t.Log(tr.failures(strict))
}
