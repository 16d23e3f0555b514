package daemon

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/report"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/server/admin/api"
)

// report returns the pages of a daemon.
func (w *controlWorld) report(name string, regions ...string) *report.Report {
	r := w.find(name)
	rc := report.Config{
		Region: r.region, Name: r.name, Control: w.loops[name], Log: w.discard(), Cluster: clusterState{r.cluster},
		Ready: r.unready,
	}
	for _, g := range regions {
		rc.Regions = append(rc.Regions, control.FirstRegion{Name: g, Weight: uint32(control.Whole / len(regions))})
	}
	return newReport(r.cluster.engine, rc)
}

// stateOf returns what /readyz?verbose has about a subject.
func stateOf(r *report.Report, subject string) api.CheckState {
	for _, c := range r.Checks() {
		if c.Name == subject {
			return c.State
		}
	}
	return ""
}

// The pages follow a cluster from before its beginning, through the loss of the
// majority, to a recovery.
func TestControlPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 2, []string{"us-0", "eu-0"}, "us", "eu")
		w.diskless = []string{"us-1", "eu-1"}
		for _, r := range w.in("us") {
			r.start()
		}
		w.within(20*time.Second, "the region has met", func() bool { return w.met("us-0", 1) && w.met("us-1", 1) })
		us := w.report("us-1", "eu", "us")
		s := us.ClusterPage().Cluster
		if want := "waiting for rld cluster init; 1 of 2 regions heard"; s.Begun || s.Waiting != want {
			t.Errorf("%+v, want %q", s, want)
		}
		if a, b := stateOf(us, "cluster"), stateOf(us, "record"); a != api.CheckWaiting || b != api.CheckWaiting {
			t.Errorf("cluster %s, record %s before the beginning", a, b)
		}
		w.within(20*time.Second, "us-1 is ready before the beginning", func() bool { return us.Ready() == nil })
		a, err := us.InitCluster(api.InitRequest{})
		if err != nil || a.UnderWay || len(a.Missing) != 2 || a.Missing[0] != "a daemon of region eu with a state.dir" ||
			!strings.Contains(a.Missing[1], "1 of 2 are heard, and not eu-0") {
			t.Errorf("%+v, %v: want what is missing", a, err)
		}
		if a, err = us.InitCluster(api.InitRequest{Without: []string{"eu"}}); err != nil || a.UnderWay || len(a.Missing) != 1 {
			t.Errorf("%+v, %v: the majority of the founders is missing, whatever may be without", a, err)
		}
		for _, r := range w.in("eu") {
			r.start()
		}
		w.within(20*time.Second, "all have met", func() bool { return w.met("us-0", 3) && w.met("us-1", 3) && w.met("eu-0", 3) })
		if a, err = us.InitCluster(api.InitRequest{}); err != nil || !a.UnderWay {
			t.Fatalf("%+v, %v", a, err)
		}
		w.within(20*time.Second, "it has begun", func() bool { return w.equal(1) })
		begun, err := us.InitCluster(api.InitRequest{})
		if err != nil || !begun.Cluster.Begun || begun.UnderWay {
			t.Errorf("%+v, %v: want the cluster that has begun", begun, err)
		}
		w.within(20*time.Second, "us-1 knows the leader", func() bool { return us.ClusterPage().Cluster.Leader != nil })
		s = us.ClusterPage().Cluster
		if len(s.Voters) != 2 || s.Voters[0].Name != "eu-0" || s.Voters[1].Name != "us-0" || s.Daemon.Role != api.RoleFollower || len(s.Problems) > 0 {
			t.Errorf("%+v", s)
		}
		if h := us.History(); len(h.Commands) != 1 || h.Commands[0].Text != "the cluster began" {
			t.Errorf("%+v", h)
		}
		if a, b := stateOf(us, "cluster"), stateOf(us, "record"); a != api.CheckOK || b != api.CheckOK {
			t.Errorf("cluster %s, record %s", a, b)
		}

		us = w.report("us-0", "eu", "us")
		refused := func(want string, q api.RecoverRequest) {
			t.Helper()
			if _, err := us.RecoverCluster(context.Background(), q); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v, want %q", q, err, want)
			}
		}
		refused("2 of 2 voters are live", api.RecoverRequest{Daemon: "us-0"})
		refused("this daemon is us-0, and not eu-0", api.RecoverRequest{Daemon: "eu-0"})
		w.kill(w.find("eu-0"))
		w.within(time.Minute, "the leader is lost", func() bool {
			s := us.ClusterPage().Cluster
			return len(s.Problems) == 1 && strings.Contains(s.Problems[0], "1 of 2 voters are live") && strings.Contains(s.Problems[0], "rld cluster recover")
		})
		if us.Ready() != nil {
			t.Errorf("not ready without a majority: %v", us.Ready())
		}
		if a, err := us.RecoverCluster(context.Background(), api.RecoverRequest{}); err != nil || !a.DryRun || a.Recovery != 1 {
			t.Errorf("%+v, %v: want a dry run without a name", a, err)
		}
		got, err := us.RecoverCluster(context.Background(), api.RecoverRequest{Daemon: "us-0", Author: "op", Reason: "eu-0 is lost"})
		if err != nil || got.Recovery != 1 || got.Cluster.Recovery != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		w.within(20*time.Second, "all that are left follow", func() bool { return w.equal(2) })
		if h := w.report("eu-1").History(); len(h.Commands) != 2 || h.Commands[1].Author != "op" || h.Commands[1].Reason != "eu-0 is lost" {
			t.Errorf("%+v", h)
		}
	})
}

// A region that restarts while it is cut off goes on when an operator states
// that it was not removed.
func TestRegionResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"us-0", "eu-0"}, "us", "eu")
		eu := w.find("eu-0")
		eu.start()
		w.find("us-0").start()
		w.within(20*time.Second, "they have met", func() bool { return w.met("us-0", 1) && w.met("eu-0", 1) })
		w.init("us-0", "us", "eu")
		w.within(20*time.Second, "it has begun", func() bool { return w.equal(1) && !w.state("eu-0").Status.Starting })
		pages := w.report("eu-0", "eu", "us")
		refused := func(want string, q api.ResumeRequest) {
			t.Helper()
			if _, err := pages.ResumeRegion(q); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v, want %q", q, err, want)
			}
		}
		refused("nothing to resume", api.ResumeRequest{Region: "eu"})
		w.kill(w.find("us-0"))
		w.kill(eu)
		eu.start()
		pages = w.report("eu-0", "eu", "us")
		cutOff := func() bool {
			return slices.ContainsFunc(pages.ClusterPage().Cluster.Problems, func(p string) bool { return strings.Contains(p, "rld region resume") })
		}
		w.within(20*time.Second, "its start is reported", cutOff)
		refused("this daemon is in region eu", api.ResumeRequest{Region: "us"})
		if a, err := pages.ResumeRegion(api.ResumeRequest{}); err != nil || !a.DryRun || !w.state("eu-0").Status.Starting {
			t.Errorf("%+v, %v: want a check that changes nothing", a, err)
		}
		if a, err := pages.ResumeRegion(api.ResumeRequest{Region: "eu", Author: "op", Reason: "no link"}); err != nil || a.DryRun {
			t.Errorf("%+v, %v", a, err)
		}
		w.within(5*time.Second, "it goes on", func() bool { return !w.state("eu-0").Status.Starting && !cutOff() })
	})
}

// A daemon of another cluster is reported on both sides. Where all peers belong
// to another one it is not ready.
func TestControlForeignCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"eu-0", "us-0", "ap-0"}, "eu", "us", "ap")
		w.founders = []string{"ap-0"}
		ap := w.find("ap-0")
		ap.start()
		w.within(20*time.Second, "ap-0 is ready", func() bool { return ap.ready.Load() })
		w.init("ap-0", "ap")
		w.within(20*time.Second, "ap-0 has begun", func() bool { return w.equal(1) })
		w.kill(ap)
		w.founders = []string{"eu-0", "us-0"}
		for _, name := range w.founders {
			w.find(name).start()
		}
		w.within(20*time.Second, "two have met", func() bool { return w.met("eu-0", 1) && w.met("us-0", 1) })
		w.init("eu-0", "eu", "us")
		w.within(20*time.Second, "the second cluster has begun", func() bool { return w.equal(1) })
		ap.start()
		pages := w.report("ap-0", "ap")
		w.within(30*time.Second, "ap-0 knows of two foreign daemons", func() bool {
			p := pages.ClusterPage().Cluster.Problems
			return len(p) > 0 && strings.Contains(p[0], "eu/eu-0, us/us-0: of another cluster")
		})
		w.within(30*time.Second, "eu-0 knows of one", func() bool {
			p := w.report("eu-0", "eu", "us").ClusterPage().Cluster.Problems
			return len(p) > 0 && strings.Contains(p[0], "ap/ap-0: of another cluster")
		})
		if err := pages.Ready(); err == nil || !strings.Contains(err.Error(), "all peers belong to another cluster") ||
			stateOf(pages, "cluster") != api.CheckFailed {
			t.Errorf("ap-0: ready %v, cluster %s", err, stateOf(pages, "cluster"))
		}
		if err := w.report("eu-0").Ready(); err != nil {
			t.Errorf("eu-0: %v", err)
		}
	})
}

// A daemon of an older version, which was away while the format of the record
// was raised, goes on with its record, is not ready, and states why. It does
// not start from a record of the later format.
func TestFormatPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newControlWorld(t, 1, []string{"us-0", "eu-0", "ap-0"}, "us", "eu", "ap")
		w.formats = map[string]int{"us-0": 3, "eu-0": 3}
		for _, r := range w.residents {
			r.start()
		}
		w.within(20*time.Second, "all have met", func() bool { return w.met("us-0", 2) && w.met("eu-0", 2) && w.met("ap-0", 2) })
		w.init("us-0", "ap", "eu", "us")
		w.within(20*time.Second, "it has begun", func() bool { return w.equal(1) })
		us, ap := w.report("us-0"), w.find("ap-0")
		w.within(20*time.Second, "ap-0 holds it back", func() bool {
			f := us.ClusterPage().Cluster.Format
			return f.Record == 2 && f.Reads == 3 && f.Next == 0 && slices.Equal(f.Behind, []string{"ap/ap-0"})
		})
		w.within(20*time.Second, "ap-0 is ready", func() bool { return ap.ready.Load() })
		w.kill(ap)
		w.within(5*time.Minute, "the others know the next one", func() bool {
			f := us.ClusterPage().Cluster.Format
			return f.Next == 3 && f.RaisedAt != nil && f.RaisedAt.After(time.Now()) && len(f.Behind) == 0
		})
		w.within(90*time.Second, "it is raised", func() bool {
			stats := us.ControlStats()
			return stats.Format == 3 && stats.Events["format_raised"] > 0
		})
		if n := us.ControlStats().Events["format_raised"]; n != 1 {
			t.Errorf("%d events of the raise", n)
		}
		ap.start()
		pages := w.report("ap-0")
		const why = "the record of the cluster has format 3, and this version of rld reads formats up to 2: it goes on with the record that it has; start a later version"
		w.within(20*time.Second, "ap-0 is not ready", func() bool { err := pages.Ready(); return err != nil && err.Error() == why })
		for _, at := range []*report.Report{pages, us} {
			w.within(20*time.Second, "the list has it as not ready", func() bool {
				all := at.Members()
				i := slices.IndexFunc(all, func(m api.Member) bool { return m.Name == "ap-0" })
				return i >= 0 && !all[i].Ready
			})
		}
		s := pages.ClusterPage().Cluster
		if stateOf(pages, "record") != api.CheckFailed || s.Format.Unread != 3 || s.Format.Record != 2 || !slices.Contains(s.Problems, why) {
			t.Errorf("record %s, %+v, %q", stateOf(pages, "record"), s.Format, s.Problems)
		}
		w.kill(ap)
		us0 := w.find("us-0")
		w.kill(us0)
		w.formats["us-0"] = 2
		file := w.folders["us-0"].Path(replica.ControlFile)
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		err = w.loop(us0, w.discard()).open()
		if err == nil || !strings.Contains(err.Error(), "of format 3: this version of rld reads formats up to 2. It is of a later version: start that one again") {
			t.Errorf("us-0 starts from a record of format 3: %v", err)
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
			t.Errorf("the refused file has %d bytes, %v: want the %d of before", len(after), err, len(before))
		}
	})
}

// Each kind of event has a message for the log.
func TestControlEventTexts(t *testing.T) {
	for _, k := range control.EventKinds() {
		if controlTexts[k].text == "" {
			t.Errorf("%v has no text", k)
		}
	}
}
