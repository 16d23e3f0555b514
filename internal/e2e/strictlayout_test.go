//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Voters of a region leave one after the other, under load, and another daemon
// takes the place of each: never a hit too many, and there is service all the
// time but for moments. Nobody chooses voters by command.
func TestStrictVotersThatChange(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 4, "us", "ap")
	at := c.daemon("ap-0")
	layout := at.settledLayout(t, 1)
	if code, out := at.rld(t, "strict voters set us-0 us-1 us-2"); code == 0 || !strings.Contains(out, "rld strict --help") {
		t.Errorf("voters are chosen by command: exit code %d:\n%s", code, out)
	}
	tr := c.traffic(50, aim{strict, "moved", 8})
	time.Sleep(5 * time.Second)
	began := time.Now()
	left := 0
	for _, d := range c.in("us") {
		if !at.votesFor(t, d.name) {
			continue
		}
		step := time.Now()
		d.terminate(t)
		c.within(patience, "another voter than "+d.name, func() string {
			if at.votesFor(t, d.name) {
				return "it is still one"
			}
			return ""
		})
		layout = at.settledLayout(t, layout+1)
		t.Logf("%s left: layout %v active after %s", d.name, layout, seconds(time.Since(step)))
		d.start(t)
		c.whole(patience)
		time.Sleep(12 * time.Second) // it may become a voter again
		if left++; left == 2 {
			break
		}
	}
	ended := time.Now()
	tr.stop()
	tr.keptTo(strict, strictLimit, strictLimit)
	if left < 2 {
		t.Errorf("%d voters left", left)
	}
	t.Logf("no daemon was without the answer of an owner for longer than %s", seconds(tr.outage(strict, began, ended)))
	t.Log(tr.failures(strict))
	for _, d := range c.daemons {
		d.settledLayout(t, layout)
	}
}

// settledLayout waits until the daemon goes by a layout that is active, a
// number or a later one, and returns its number.
func (d *daemon) settledLayout(t testing.TB, least float64) float64 {
	t.Helper()
	n := 0.0
	d.cluster.within(patience, fmt.Sprintf("layout %v", least), func() string {
		code, out := d.rld(t, "strict status")
		var err error
		if n, err = d.metric("rld_strict_layout"); err != nil {
			return err.Error()
		}
		if code != 0 || n < least || !strings.Contains(out, fmt.Sprintf("layout %v is active.", n)) {
			return out
		}
		return ""
	})
	return n
}

// votesFor reports whether the active layout names a strict voter.
func (d *daemon) votesFor(t testing.TB, name string) bool {
	t.Helper()
	_, out := d.rld(t, "strict status")
	return slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
		return slices.Contains(strings.Fields(line), name) && !strings.Contains(line, "tracks")
	})
}

// rld runs a command of rld against the daemon, and returns its exit code and
// all that it printed.
func (d *daemon) rld(t testing.TB, args string) (code int, out string) {
	t.Helper()
	argv := d.cluster.net.command(slices.Index(d.cluster.regions, d.region), append([]string{binary}, strings.Fields(args)...))
	cmd := exec.Command(argv[0], append(argv[1:], "--admin", d.at.admin)...)
	cmd.Env = environ()
	data, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(data)
}
