//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/server/admin/api"
)

// Two regions and a witness, as docs/operations.md has it: the witness votes
// and decides nothing. A region is lost, and the other one removes it.
func TestWitness(t *testing.T) {
	if !longRun() {
		t.Skip("it takes minutes: make e2e-long has it")
	}
	t.Parallel()
	c := startCluster(t, loopback{}, plan{
		daemons: []int{2, 2, 1}, later: []int{0, 0, 0}, founding: 3, witness: "witness", limits: limitsFile,
	}, "us", "eu", "witness")
	eu, w := c.daemon("eu-0"), c.daemon("witness-0")
	c.within(2*time.Minute, "five voters, one of them voter only", func() string {
		code, out := eu.rld(t, "cluster status")
		votes := 0
		for _, v := range eu.clusterOf(t).Voters {
			if v.Role != api.RoleLearner {
				votes++
			}
		}
		if code != 0 || votes != 5 || !strings.Contains(out, "voter only") {
			return fmt.Sprintf("exit code %d, %d votes: %s", code, votes, out)
		}
		return ""
	})
	for command, want := range map[string]bool{"daemon list": true, "region list": false} {
		if code, out := eu.rld(t, command); code != 0 || strings.Contains(out, "witness") != want {
			t.Errorf("rld %s: exit code %d, want the witness in it: %v: %s", command, code, want, out)
		}
	}
	r, err := w.web.Get("http://" + w.at.http + "/v1/check?domain=" + domain + "&d=kept:a")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "control.voter: only") {
		t.Errorf("a call of the witness: %s, %s, %v, want that it only votes", r.Status, body, err)
	}
	c.allHeld(time.Minute, append(c.in("us"), c.in("eu")...))

	for _, d := range c.in("us") {
		d.die(t)
	}
	// done waits until a command is done at a daemon.
	done := func(at *daemon, command string) {
		t.Helper()
		c.within(2*time.Minute, "rld "+command, func() string {
			if code, out := at.rld(t, command); code != 0 && code != 3 {
				return fmt.Sprintf("exit code %d: %s", code, out)
			}
			return ""
		})
	}
	done(w, "region remove us --stopped --yes us --reason lost")
	c.allHeld(2*time.Minute, c.in("eu"))
}
