//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/georld/rld/server/admin/api"
)

// clusterOf returns the control log as a daemon knows it.
func (d *daemon) clusterOf(t testing.TB) *api.ClusterState {
	t.Helper()
	var a api.ClusterAnswer
	if err := d.get("/v1/cluster", &a); err != nil || a.Cluster == nil {
		t.Fatalf("%s: %v, cluster %v", d.name, err, a.Cluster)
	}
	return a.Cluster
}

// beginCluster begins the cluster at one daemon, and again at another one.
func (c *cluster) beginCluster(at, again *daemon) {
	c.t.Helper()
	code, out := at.rld(c.t, "cluster init --nothing-ran-before --wait 30s")
	if code != 0 || !strings.HasPrefix(out, "Cluster ") {
		c.t.Fatalf("rld cluster init at %s: exit code %d: %s", at.name, code, out)
	}
	took := c.within(patience, "one cluster at all", c.oneCluster)
	c.t.Logf("one record at all daemons %s after rld cluster init", seconds(took))
	if code, same := again.rld(c.t, "cluster init"); code != 0 || same != out {
		c.t.Errorf("rld cluster init at %s: exit code %d: %swant what it printed at %s: %s", again.name, code, same, at.name, out)
	}
}

// oneCluster returns why the daemons that run have no equal record and leader,
// "" when they have.
func (c *cluster) oneCluster() string {
	c.t.Helper()
	var first *api.ClusterState
	for _, d := range c.daemons {
		if s, _, _ := d.now(); s != up {
			continue
		}
		s := d.clusterOf(c.t)
		switch {
		case !s.Begun:
			return fmt.Sprintf("%s: %s", d.name, s.Waiting)
		case s.Leader == nil || len(s.Problems) > 0:
			return fmt.Sprintf("%s: leader %v, problems %v", d.name, s.Leader, s.Problems)
		case first == nil:
			first = s
		case s.ID != first.ID || s.Hash != first.Hash:
			return fmt.Sprintf("%s has cluster %s with hash %s, another one %s with %s", d.name, s.ID, s.Hash, first.ID, first.Hash)
		}
	}
	return ""
}
