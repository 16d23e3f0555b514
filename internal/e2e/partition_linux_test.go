//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/internal/admitted"
	"github.com/georld/rld/server/admin/api"
)

func TestCutOffRegion(t *testing.T) { cutOff(t, bothWays) }

func TestRegionThatCannotSend(t *testing.T) { cutOff(t, outgoing) }

// cutOff cuts a region off under load and heals that.
func cutOff(t *testing.T, d direction) {
	t.Parallel()
	n := newNamespaces(t, "us", "eu", "ap")
	c := newCluster(t, n, 2, n.regions...)
	away := admitted.Daemon{Region: "eu"}
	c.daemon("eu-0").spend(t, kept, "used", 600)
	c.agree(5*time.Second, c.daemons, kept, "used", ampleLimit-600)

	gap := c.apart(away)
	n.cut(away.Region, d)
	c.daemon("eu-0").spend(t, kept, "used", 100)
	c.daemon("us-0").spend(t, kept, "used", 200)
	tr := c.traffic(100, aim{day, "cut", 4})
	usedUp := c.usedUp(15*time.Second, day, "cut", 4)
	time.Sleep(3 * time.Second)
	c.givenUp(quietEnd) // so that nothing is left to go on with
	tr.stop()
	tr.stopped(away, usedUp)
	for _, d := range c.daemons {
		if wrong := d.ready(); wrong != "" {
			t.Errorf("in a cut, which is no reason not to be ready: %s", wrong)
		}
	}

	n.heal(away.Region)
	healed := time.Now()
	c.agree(30*time.Second, c.daemons, kept, "used", ampleLimit-900)
	same := time.Since(healed)
	c.whole(30*time.Second - same)
	whole := time.Since(healed)
	c.together(30*time.Second, gap)
	after := c.traffic(100, aim{day, "cut", 4}, aim{window, "healed", 2})
	time.Sleep(6 * time.Second)
	after.stop()
	t.Logf("cut %s off (%s), then healed: the same counts everywhere after %s, membership whole after %s",
		away.Region, d, seconds(same), seconds(whole))
	tr.served()
	after.served()
	after.none(day)
	tr.audit()
	after.audit()
}

// A region is cut off for longer than any horizon under three times the load
// that the limit has room for, and no window of either side, of both together,
// goes beyond the budget.
func TestBudgetHoldsInACut(t *testing.T) {
	t.Parallel()
	n := newNamespaces(t, "us", "eu", "ap")
	c := newCluster(t, n, 3, n.regions...)
	tr := c.traffic(20, aim{bounded, "cut", 1})
	tr.fills(bounded, boundedLimit, 40*time.Second)
	began := time.Now()
	n.cut("eu", bothWays)
	time.Sleep(40 * time.Second)
	healed := time.Now()
	n.heal("eu")
	c.whole(30 * time.Second)
	time.Sleep(22 * time.Second)
	tr.stop()
	tr.served()
	tr.keptTo(bounded, boundedLimit, boundedTotal)
	// A partitioned region has its share and no more, so the world still admits
	// its limit.
	for _, w := range tr.account.Counts() {
		whole := w.Start.After(began.Add(10*time.Second)) && w.End().Before(healed)
		if got := w.Total; whole && got < boundedLimit*9/10 {
			t.Errorf("%d of %d admitted of %v, in a cut, want nine tenths at least", got, boundedLimit, w.Window)
		}
		if got := w.Admitted(admitted.Daemon{Region: "eu"}); whole && got == 0 {
			t.Errorf("nothing admitted of %v by the region that is cut off: it lost its share", w.Window)
		}
	}
}

// givenUp waits until streams across the cut have been given up by all.
func (c *cluster) givenUp(atMost time.Duration) {
	c.t.Helper()
	c.within(atMost, "the end of streams across the cut", func() string {
		for _, d := range c.daemons {
			peers, err := d.netcheck()
			if err != nil {
				return fmt.Sprintf("%s: %v", d.name, err)
			}
			for _, peer := range c.daemons {
				across := c.separated(d.replica(), peer.replica())
				if across && slices.Contains(streaming, peers[peer.incarnation()].State) {
					return fmt.Sprintf("%s holds its stream to %s", d.name, peer.name)
				}
			}
		}
		return ""
	})
}

// streaming is the states in which there is a stream.
var streaming = []api.LinkState{api.Connected, api.Silent}

// usedUp waits until no daemon has anything left of some keys, and returns when
// that was.
func (c *cluster) usedUp(atMost time.Duration, rule, name string, keys int) time.Time {
	c.t.Helper()
	begin := time.Now()
	for i := range keys {
		c.agree(atMost-time.Since(begin), c.daemons, rule, fmt.Sprintf("%s-%d", name, i), 0)
	}
	return time.Now()
}

// stopped fails the test unless each side of the partition used up limits on
// its own, and no more than that: the admitted hits exceed the limit, and stop
// at the bound.
func (tr *traffic) stopped(away admitted.Daemon, usedUp time.Time) {
	t := tr.cluster.t
	t.Helper()
	var over, most int
	for _, w := range tr.account.Counts() {
		total, there, limit := w.Total, w.Admitted(away), limitOf(w.Rule)
		over, most = max(over, total-limit), max(most, limit)
		v := tr.cluster.views(latestOf(w))
		if allowed := limit + v.Unseen(w, away); there > allowed {
			t.Errorf("%s admitted %d of %v alone, want at most %d", away.Region, there, w.Window, allowed)
		}
		if regions := len(tr.cluster.regions); total > regions*limit {
			t.Errorf("%d of %d admitted of %v: more than each of %d regions may", total, limit, w.Window, regions)
		}
		// Estimates may reach 0 a little early.
		if late := latestOf(w).Sub(usedUp); late > time.Second {
			t.Errorf("a hit of %v was admitted %s after all of it was used up on both sides", w.Window, seconds(late))
		}
	}
	if over <= most/2 {
		t.Errorf("at most %d above the limit of %d: the cut cannot have been one", over, most)
	}
	t.Logf("in the cut at most %d above the limit of %d, and no more after that", over, most)
}

// none fails the test for hits of a rule whose keys were used up before.
func (tr *traffic) none(rule string) {
	tr.cluster.t.Helper()
	for _, w := range tr.account.Counts() {
		if n := w.Total; w.Rule == rule {
			tr.cluster.t.Errorf("%d hits of %v were admitted after the cut, which had used it up", n, w.Window)
		}
	}
}
