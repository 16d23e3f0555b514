//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// Three diskless daemons of a region are killed at once under load, and three
// of other names start. No window has more hits than the budget allows, and no
// strict key more than its limit. All rights are held again within a minute.
func TestDisklessDaemonsAreReplacedAtOnce(t *testing.T) {
	t.Parallel()
	for _, durable := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d durable", durable), func(t *testing.T) {
			if durable == 1 && !longRun() {
				t.Skip("make e2e-long runs it")
			}
			c := startCluster(t, loopback{}, plan{
				daemons: []int{durable + 6}, later: []int{3}, diskless: []int{6}, founding: 1, limits: limitsOfRegions([]string{"us"}),
			}, "us")
			all := c.in("us")
			former, next := all[durable:durable+3], all[durable+3:]
			tr := c.traffic(20, aim{bounded, "pods", 1}, aim{strict, "pods", 3})
			c.allHeld(2*time.Minute, all[:durable+3])
			tr.fills(bounded, boundedLimit, 40*time.Second)

			for _, d := range former {
				d.die(t)
			}
			killed := time.Now()
			for _, d := range next {
				d.start(t)
			}
			live := append(all[:durable:durable], next...)
			c.allHeld(time.Minute, live)
			t.Logf("all rights are held %s after the end of the diskless daemons", seconds(time.Since(killed)))
			c.list(patience, live, live)
			tr.fillsFrom(time.Now(), boundedTotal, 40*time.Second)
			tr.stop()
			tr.served(all[durable:]...) // the next ones answer once they have started
			tr.keptTo(bounded, boundedLimit, boundedTotal)
			tr.keptTo(strict, strictLimit, strictLimit)
			for _, d := range next {
				asked, answered := 0, 0
				for _, x := range tr.took {
					if x.by.Name == d.name && x.asked.rule == strict {
						if asked++; x.degraded == "" {
							answered++
						}
					}
				}
				if answered*10 < asked*8 || asked == 0 {
					t.Errorf("%s has the answer of an owner for %d of %d calls of strict keys", d.name, answered, asked)
				}
			}
			t.Log(tr.failures(strict))
		})
	}
}

// allHeld waits until daemons hold rights, each of them, and together all of a
// bounded key but for the rounding.
func (c *cluster) allHeld(atMost time.Duration, all []*daemon) {
	c.t.Helper()
	c.within(atMost, "all rights are held", func() string {
		sum := 0
		for _, d := range all {
			n, err := d.metric("rld_rights_held_hits")
			if err != nil || n == 0 {
				return fmt.Sprintf("%s holds %v, %v", d.name, n, err)
			}
			sum += int(n)
		}
		if sum < boundedTotal-len(all) {
			return fmt.Sprintf("%d of %d are held", sum, boundedTotal)
		}
		return ""
	})
}
