package daemon

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/quota/epoch"
)

// TestFullDiskIsNamed: a daemon without rights because its disk is full names
// the disk, both after some time and after a start.
func TestFullDiskIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, whole := beginRegion(t)
		us, folder := w.find("us-2"), w.folders["us-2"]
		names := func(what string) {
			t.Helper()
			f := w.agents["us-2"]
			s := f.Status()
			if why := f.WhyNot(s.Reason); s.Holds || !strings.Contains(why, errNoSpace.Error()) {
				t.Errorf("%s: holds %v, %q: want the disk in the reason", what, s.Holds, why)
			}
			pages := newReport(us.engine, report.Config{
				Region: "us", Name: "us-2", Control: w.loops["us-2"], Rights: f, Log: w.discard(), Cluster: clusterState{us.cluster}, Ready: us.unready,
			})
			problems := pages.ClusterPage().Cluster.Problems
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, errNoSpace.Error()) }) {
				t.Errorf("%s: problems %q, want the disk in them", what, problems)
			}
		}
		folder.full.Store(true)
		w.soon(5*time.Minute, "its stored record ends", func() bool { return w.agents["us-2"].Status().Reason == epoch.ReasonAhead })
		names("running")
		w.end(us)
		w.restart(us, false)
		time.Sleep(15 * time.Second)
		names("started")
		if _, why := w.agents["us-2"].Allotment(1, 900, time.Now().UnixMilli(), 0, false); why == epoch.ReasonNoCluster {
			t.Error("it claims that the cluster has not begun, which it does not know")
		}
		folder.full.Store(false)
		w.soon(2*time.Minute, "all hold rights again", whole)
	})
}
