//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// outWithin is how long a daemon may keep streams after it was revoked, and
// take up a new certificate.
const outWithin = time.Minute

// rotatedLimit is of a rule that a test does not use up, with windows whose
// small counts are sent to other regions as well.
const rotatedLimit = 100_000

// TestRotationAndRevocation renews the certificates of a cluster while all its
// daemons count: none restarts, and no hit is lost. Then it revokes a daemon,
// which the others refuse, and which is not ready any more.
func TestRotationAndRevocation(t *testing.T) {
	t.Parallel()
	c := startCluster(t, loopback{}, plan{
		daemons: []int{2, 1}, later: []int{0, 0}, founding: 2, secured: true,
		limits: limitsFile + fmt.Sprintf("  - {key: rotated, rate_limit: {unit: day, requests_per_unit: %d, algorithm: sliding_window}}\n", rotatedLimit),
	}, "a", "b")
	a0, b0 := c.daemon("a-0"), c.daemon("b-0")
	expires := func(d *daemon) float64 {
		at, err := d.metric("rld_certificate_expiry_timestamp_seconds", `of="own"`)
		if err != nil || at == 0 {
			t.Fatalf("%s: its certificate expires at %v, %v", d.name, at, err)
		}
		return at
	}
	former := map[*daemon]float64{}
	for _, d := range c.daemons {
		former[d] = expires(d)
	}
	if out, err := exec.Command(binary, "cert", "renew", "--dir", c.file("certs"), "--days", "500", "--within", "1000").CombinedOutput(); err != nil {
		t.Fatalf("rld cert renew: %v\n%s", err, out)
	}
	spent := 0
	took := c.within(outWithin, "all daemons have their new certificates", func() string {
		for _, d := range c.daemons {
			d.spend(t, "rotated", "x", 1)
			spent++
		}
		for _, d := range c.daemons {
			if expires(d) == former[d] {
				return d.name + " has the former one"
			}
		}
		return ""
	})
	c.agree(patience, c.daemons, "rotated", "x", rotatedLimit-spent)
	t.Logf("%d hits were admitted in the %v of the rotation, and all daemons know all of them", spent, took.Round(time.Second))

	if code, out := a0.rld(t, "daemon revoke b/b-0"); code != 0 || !strings.Contains(out, "daemon b/b-0 is revoked") {
		t.Fatalf("rld daemon revoke: exit code %d\n%s", code, out)
	}
	took = c.within(outWithin, "b-0 is out", func() string {
		for _, d := range c.in("a") {
			n, err := d.metric("rld_refused_handshakes_total", `reason="revoked"`)
			if err != nil || n == 0 {
				return fmt.Sprintf("%s refused it %v times, %v", d.name, n, err)
			}
		}
		if _, out := b0.rld(t, "status"); !strings.Contains(out, "is revoked") {
			return "its status names no reason: " + out
		}
		return ""
	})
	t.Logf("both others refuse the revoked daemon after %v", took.Round(time.Second))
	for _, command := range []string{"status", "daemon list"} {
		if _, out := a0.rld(t, command); !strings.Contains(out, "1 daemon revoked: b/b-0.") {
			t.Errorf("rld %s does not name it:\n%s", command, out)
		}
	}
	a0.spend(t, "rotated", "after", 7)
	c.agree(patience, c.in("a"), "rotated", "after", rotatedLimit-7)
	if s, err := b0.client.check(patience, question{rule: "rotated", value: "after", hits: 5}); err == nil {
		t.Errorf("the revoked daemon is ready, and answers %v", s)
	}
}
