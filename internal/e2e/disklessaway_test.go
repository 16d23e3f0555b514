//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"
)

// The only daemon with a disk of a region stops, and both diskless ones that
// took over its rights are killed. When it is back it holds nothing, and rld
// budget states what to do. That gives the region its share again.
func TestDisklessDaemonsDieWhileTheDiskIsAway(t *testing.T) {
	t.Parallel()
	if !longRun() {
		t.Skip("make e2e-long runs it: a region is removed a minute after its last message")
	}
	c := startCluster(t, loopback{}, plan{
		daemons: []int{3, 1, 1}, later: []int{0, 0, 0}, diskless: []int{2, 0, 0}, founding: 3,
		limits: limitsOfRegions([]string{"us", "eu", "ap"}),
	}, "us", "eu", "ap")
	all := c.in("us")
	durable, pods, eu := all[0], all[1:], c.daemon("eu-0")
	c.allHeld(2*time.Minute, c.where(func(*daemon) bool { return true }))
	durable.terminate(t)
	c.allHeld(time.Minute, c.except(durable))
	for _, d := range pods {
		d.die(t)
	}
	durable.start(t)
	c.within(time.Minute, "it reports the remedy", func() string {
		_, out := durable.rld(t, "budget")
		if strings.Contains(out, "remove it with --stopped, and add it again") {
			return ""
		}
		return out
	})
	durable.terminate(t)
	// done reports why a command was not done: 3 is done and not settled yet.
	done := func(command string) string {
		code, out := eu.rld(t, command)
		if code == 0 || code == 3 {
			return ""
		}
		return out
	}
	c.within(2*time.Minute, "the region is removed", func() string { return done("region remove us --stopped --yes us") })
	durable.start(t)
	c.within(time.Minute, "the region is added", func() string { return done("region add us --weight 30%") })
	c.allHeld(time.Minute, append(c.in("eu"), append(c.in("ap"), durable)...))
}
