//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

func TestKilledDaemonTakesNothingWithIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 3, "us", "eu", "ap")
	victim := c.daemon("eu-0") // a founder
	others := c.except(victim)
	tr := c.traffic(60, aim{day, "early", 3}, aim{day, "late", 12}, aim{window, "spread", 2})

	// What only the victim admits, others must still count when it is gone.
	victim.spend(t, kept, "used", 600)
	c.agree(5*time.Second, c.daemons, kept, "used", ampleLimit-600)
	c.beginCluster(c.daemon("us-1"), c.daemon("ap-2"))
	founder := victim.clusterOf(t).Daemon.ID
	ends := c.nextWindow(brief)
	victim.spend(t, brief, "used", 600)
	c.agree(3*time.Second, c.daemons, brief, "used", ampleLimit-600)

	first := victim.incarnation()
	gap := victim.die(t)
	out := c.list(5*time.Second, others, others)
	c.together(patience, gap)
	c.stay(others, brief, "used", ampleLimit-600, ends.Add(-300*time.Millisecond))
	c.agree(3*time.Second, others, brief, "used", ampleLimit)
	c.agree(time.Second, others, kept, "used", ampleLimit-600)

	victim.start(t)
	back := c.whole(patience)
	if victim.incarnation() == first {
		t.Errorf("%s came back as the same incarnation %s", victim.name, first)
	}
	c.agree(3*time.Second, c.daemons, kept, "used", ampleLimit-600)
	took := c.within(patience, "the control log, with "+victim.name, c.oneCluster)
	t.Logf("one record at all daemons %s after that", seconds(took))
	if s := victim.clusterOf(t); s.Daemon.ID != founder {
		t.Errorf("%s came back with id %s, want %s", victim.name, s.Daemon.ID, founder)
	}
	if code, out := victim.rld(t, "cluster status"); code != 0 || !strings.Contains(out, founder) {
		t.Errorf("rld cluster status at %s: exit code %d: %s", victim.name, code, out)
	}
	if code, out := victim.rld(t, "cluster history"); code != 0 || !strings.Contains(out, "the cluster began") {
		t.Errorf("rld cluster history at %s: exit code %d: %s", victim.name, code, out)
	}
	fresh := c.together(patience)
	time.Sleep(2 * time.Second) // of load, with it
	tr.stop()
	t.Logf("killed %s: out of all lists after %s; started: back after %s, heard by all after %s more",
		victim.name, seconds(out), seconds(back), seconds(fresh))
	tr.served(victim)
	tr.audit()
}
