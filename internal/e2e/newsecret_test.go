//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// shortLimits are rules whose hits count for seconds.
var shortLimits = fmt.Sprintf(`domain: %s
descriptors:
  - {key: window, rate_limit: {unit: second, unit_multiplier: 5, requests_per_unit: %d}}
  - {key: bounded, rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: %d, overage_budget: 5%%}}
  - {key: strict, rate_limit: {unit: second, unit_multiplier: 2, requests_per_unit: %d, consistency: strict}}
`, domain, windowLimit, boundedLimit, strictLimit)

// nextSecret returns what rld status says about the next cluster secret.
func (d *daemon) nextSecret() (*api.NextSecret, error) {
	var s api.StatusAnswer
	err := d.get("/v1/status", &s)
	return s.Daemon.NextSecret, err
}

// without returns which of some daemons have two secrets in force, "" for none.
func (c *cluster) without(daemons []*daemon) string {
	for _, d := range daemons {
		if s, err := d.nextSecret(); err != nil || s != nil {
			return fmt.Sprintf("%s: %+v, %v", d.name, s, err)
		}
	}
	return ""
}

// TestNewClusterSecret replaces the secret of a cluster under load: no limit is
// exceeded, no call goes without an answer, and no daemon refuses another. A
// daemon that restarts goes on with its state, while two secrets are in force
// and when the next one is alone.
func TestNewClusterSecret(t *testing.T) {
	t.Parallel()
	c := startCluster(t, loopback{}, plan{daemons: []int{2, 2}, later: []int{0, 0}, founding: 2, limits: shortLimits, ownSecrets: true}, "a", "b")
	a0, a1, b0 := c.daemon("a-0"), c.daemon("a-1"), c.daemon("b-0")
	former := map[*daemon]string{a0: a0.incarnation()}
	tr := c.traffic(60, aim{window, "spread", 2}, aim{bounded, "spread", 1}, aim{strict, "spread", 6})
	tr.fills(bounded, boundedLimit, 40*time.Second)

	for _, d := range c.daemons {
		if err := os.WriteFile(c.secretFile(d)+".next", []byte("the next secret of a cluster for tests\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	due := func() string {
		for _, d := range c.daemons {
			if s, err := d.nextSecret(); err != nil || s == nil || !s.Due {
				return fmt.Sprintf("%s: %+v, %v", d.name, s, err)
			}
		}
		return ""
	}
	t.Logf("the next secret could be alone after %v", c.within(patience, "the next secret is due", due).Round(time.Second))
	if _, out := a0.rld(t, "status"); !strings.Contains(out, "the next one can replace the current one now") {
		t.Errorf("rld status does not say so:\n%s", out)
	}
	a1.terminate(t)
	a1.start(t)
	c.whole(patience)
	c.within(patience, "the next secret is due again", due)

	alone := func(daemons ...*daemon) {
		for _, d := range daemons {
			if err := os.Rename(c.secretFile(d)+".next", c.secretFile(d)); err != nil {
				t.Fatal(err)
			}
		}
		c.within(patience, "the next secret is alone", func() string { return c.without(daemons) })
	}
	alone(a0)
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		c.list(2*time.Second, c.in("a"), c.daemons) // those with both are members
	}
	alone(c.daemons[1:]...)
	b0.terminate(t)
	b0.start(t)
	c.whole(patience)
	tr.fillsFrom(time.Now(), boundedLimit, 40*time.Second)
	tr.stop()
	tr.served(a1, b0)
	tr.keptTo(strict, strictLimit, strictLimit)
	tr.keptTo(bounded, boundedLimit, boundedTotal)
	if a0.incarnation() != former[a0] {
		t.Error("a-0 restarted")
	}
	for _, d := range c.daemons {
		if d.logs("its cluster secret is another") == "" {
			t.Errorf("%s has refused a daemon for its secret", d.name)
		}
	}
}
