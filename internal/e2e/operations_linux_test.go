//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// Ten daemons in three regions, with mutual TLS between them, live through what
// operators do and what happens to them, under more load than the limit has
// room for. No window exceeds the budget of the limit in force. The table has
// the callers' truth of each step.
func TestOperations(t *testing.T) {
	t.Parallel()
	n := newNamespaces(t, "us", "eu", "ap", "sa")
	c := startCluster(t, n, plan{
		daemons: []int{5, 3, 3, 2}, later: []int{1, 0, 0, 2}, founding: 3, secured: true,
		limits: "domain: other\ndescriptors:\n  - {key: any, rate_limit: {unit: day, requests_per_unit: 1}}\n",
	}, n.regions...)
	o := &operations{cluster: c, net: n, us: c.daemon("us-0"), short: !longRun()}
	o.writeRules("first.yaml", limitsFile)
	o.writeRules("lower.yaml", strings.Replace(limitsFile, fmt.Sprint("requests_per_unit: ", boundedLimit, ","),
		fmt.Sprint("requests_per_unit: ", lowerLimit, ","), 1))
	o.run(o.us, "limits apply "+c.file("first.yaml")+" --wait 60s")
	o.bound(boundedTotal)
	o.within(patience, "limits at all daemons", func() string {
		for _, d := range o.living() {
			if _, err := d.remaining(bounded, "moving-0"); err != nil {
				return fmt.Sprintf("%s: %v", d.name, err)
			}
		}
		return ""
	})
	o.tr = c.traffic(30, aim{bounded, "moving", 1}, aim{bounded, "blocked", 1}, aim{strict, "kept", 4})

	for _, s := range []struct {
		name string
		long bool // left out of the short run
		do   func()
	}{
		{"load", false, func() { o.tr.fills(bounded, boundedLimit, 40*time.Second) }},
		{"add region sa while ap is partitioned", false, o.addRegion},
		{"lose all disks of region eu, remove it, add it again", true, o.replaceRegion},
		{"restart all daemons in turn", true, o.roll},
		{"add daemon us-4, then stop it for good", true, o.scale},
		{"apply a lower limit", false, o.lower},
		{"roll the limit back", false, o.rollBack},
		{"block a key, and unblock it", false, o.block},
		{"lose the majority of the control log, recover", true, o.recoverLog},
		{"load again", false, func() { o.tr.fillsFrom(time.Now(), boundedLimit, 2*time.Minute) }},
	} {
		if s.long && o.short {
			continue
		}
		began := time.Now()
		s.do()
		o.steps = append(o.steps, step{s.name, began, time.Now()})
		t.Logf("%s: %s", s.name, seconds(time.Since(began)))
	}
	o.tr.stop()
	o.steps = append(o.steps, step{"end", time.Now(), time.Now()})
	o.audit()
	o.tr.keptTo(strict, strictLimit, strictLimit)
	t.Log(o.tr.failures(strict))
	t.Log(o.table())
}

// lowerLimit is that of bounded keys after a change.
const (
	lowerLimit = 200
	lowerTotal = 210
)

// addRegion adds a region with two daemons while another one is partitioned.
// It has rights when the partition ends at the latest.
func (o *operations) addRegion() {
	// Of four voters two may be in one region: wait for the fifth.
	o.within(patience, "an odd number of voters", func() string {
		if s := o.us.clusterOf(o.t); len(s.Voters) < 3 || len(s.Voters)%2 == 0 {
			return fmt.Sprintf("%d voters", len(s.Voters))
		}
		return ""
	})
	o.net.cut("ap", bothWays)
	time.Sleep(o.hold(5 * time.Second))
	for _, d := range o.in("sa") {
		d.start(o.t)
	}
	o.until(o.us, "region add sa --weight 20% --force")
	time.Sleep(o.hold(15 * time.Second))
	o.net.heal("ap")
	o.all(patience)
	o.holdsRights("sa")
}

// replaceRegion removes a region without its disks, and adds it with empty
// ones.
func (o *operations) replaceRegion() {
	for _, d := range o.in("eu") {
		o.loseDisk(d)
	}
	o.until(o.us, "region remove eu --stopped --yes eu")
	for _, d := range o.in("eu") {
		d.start(o.t)
	}
	o.all(patience)
	o.until(o.us, "region add eu --weight 20%")
	o.holdsRights("eu")
}

// roll restarts all daemons in turn.
func (o *operations) roll() {
	for _, d := range o.living() {
		d.terminate(o.t)
		d.start(o.t)
		o.all(patience)
		o.together(patience)
	}
}

// scale adds a daemon to a region, which gets rights, and stops it: it hands
// them over.
func (o *operations) scale() {
	more := o.daemon("us-4")
	more.start(o.t)
	o.all(patience)
	o.within(2*time.Minute, "rights of a daemon that joined", func() string {
		if n, err := more.metric("rld_rights_held_hits"); err != nil || n == 0 {
			return fmt.Sprintf("%s holds %v, %v", more.name, n, err)
		}
		return ""
	})
	more.terminate(o.t)
	o.all(patience)
}

// lower applies rules with a lower limit.
func (o *operations) lower() {
	o.run(o.us, "limits apply "+o.file("lower.yaml")+" --wait 60s")
	o.bound(lowerTotal)
	time.Sleep(o.hold(25 * time.Second))
}

// rollBack applies the former rules, at a daemon of another region.
func (o *operations) rollBack() {
	var h api.LimitsHistoryAnswer
	if err := o.us.get("/v1/limits/history", &h); err != nil || len(h.Versions) < 2 {
		o.t.Fatalf("the history of limits: %v, %+v", err, h)
	}
	at := o.daemon("ap-0")
	if code, out := at.rld(o.t, "limits rollback 1:9999"); code == 0 {
		o.t.Errorf("a rollback to a version that never was: exit code 0: %s", out)
	}
	o.bound(boundedTotal)
	o.run(at, "limits rollback "+h.Versions[len(h.Versions)-2].Version+" --wait 60s")
	o.tr.fillsFrom(time.Now(), boundedLimit, 60*time.Second)
}

// block denies a key at all daemons, and admits it again.
func (o *operations) block() {
	key := o.keyOf(bounded, "blocked-0")
	o.run(o.us, "key block "+key+" --for 10m --wait 30s")
	from := time.Now()
	time.Sleep(o.hold(15 * time.Second))
	until := time.Now()
	o.run(o.daemon("ap-0"), "key unblock "+key+" --wait 60s")
	o.blocked = append(o.blocked, span{from, until})
}

// recoverLog loses the disks of most voters, and recovers the log at another
// daemon.
func (o *operations) recoverLog() {
	voters := o.us.clusterOf(o.t).Voters
	var lost []*daemon
	left := map[string]int{} // by region, which keeps a daemon: one without any would have to be removed
	for _, d := range o.living() {
		left[d.region]++
	}
	for _, d := range o.living() {
		votes := slices.ContainsFunc(voters, func(v api.ClusterDaemon) bool { return v.Name == d.name })
		if votes && d != o.us && len(lost) <= len(voters)/2 && left[d.region] > 1 {
			lost = append(lost, d)
			left[d.region]--
		}
	}
	if len(lost) <= len(voters)/2 {
		o.t.Fatalf("%d of the voters %+v can be lost: want a majority", len(lost), voters)
	}
	for _, d := range lost {
		o.loseDisk(d)
	}
	o.within(time.Minute, "a log without a leader", func() string {
		if l := o.us.clusterOf(o.t).Leader; l != nil {
			return fmt.Sprint("it has the leader ", l.Name)
		}
		return ""
	})
	if code, out := o.us.rld(o.t, "limits apply "+o.file("lower.yaml")+" --wait 5s"); code != 1 || !strings.Contains(out, "Nothing was changed") {
		o.t.Errorf("a change without a majority: exit code %d: %s", code, out)
	}
	o.until(o.us, "cluster recover --yes us-0")
	for _, d := range lost {
		d.start(o.t)
	}
	o.all(patience)
	o.within(time.Minute, "a log with a leader and other voters", func() string {
		s := o.us.clusterOf(o.t)
		if s.Leader == nil || len(s.Voters) < 3 {
			return fmt.Sprintf("leader %v, %d voters", s.Leader, len(s.Voters))
		}
		return ""
	})
	o.t.Logf("the log lost %d of %d voters", len(lost), len(voters))
	for _, v := range voters { // their regions cannot replace as many without a command
		if slices.ContainsFunc(lost, func(d *daemon) bool { return d.name == v.Name }) {
			o.until(o.us, "daemon remove "+v.ID+" --stopped --yes "+v.ID)
		}
	}
}
