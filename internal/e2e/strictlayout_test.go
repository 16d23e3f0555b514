//go:build e2e

package e2e

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// The voters of a region are replaced one by one and all at once, under load,
// and the former ones die: never a hit too many, and there is service all the
// time but for moments. Wrong arguments of a command are rejected with a
// reason, and change nothing.
func TestStrictVotersThatChange(t *testing.T) {
	c := newCluster(t, loopback{}, 4, "us", "ap")
	at, other := c.daemon("ap-0"), c.daemon("us-1") // layouts are put in at the first replica of all
	c.within(patience, "word of who votes", func() string {
		if code, out := at.rld(t, "strict voters set us-1 us-2 us-3 --region us --dry-run"); code != 0 {
			return out
		}
		return ""
	})
	tr := c.traffic(50, aim{strict, "moved", 8})
	for _, wrong := range []struct{ args, says string }{
		{"voters set us-0 us-1 --region us", "odd number"},
		{"voters set us-0 us-1 us-1 --region us", "us-1"},
		{"voters set us-0 us-1 us-9 --region us", "us-9"},
		{"voters set us-0 us-1 ap-0 --region us", "ap-0"},
		{"voters set us-0 us-1 us-2 --region eu", "eu"},
		{"pin strickt us", "strict"},
		{"pin strict eu", "eu"},
	} {
		if code, out := at.rld(t, "strict "+wrong.args); code != 1 || !strings.Contains(out, wrong.says) {
			t.Errorf("rld strict %s: exit code %d, want 1 and a word of %q:\n%s", wrong.args, code, wrong.says, out)
		}
	}
	if code, out := other.rld(t, "strict voters set us-1 us-2 us-3"); code != 1 || !strings.Contains(out, "ask ap/ap-0") {
		t.Errorf("a layout put in at %s: exit code %d, want 1 and who to ask:\n%s", other.name, code, out)
	}
	began, layout := time.Now(), at.layout(t)
	if layout != 1 {
		t.Fatalf("layout %v is in force after what was refused, want 1", layout)
	}
	for _, args := range []string{
		"voters set us-1 us-2 us-3 --region us",
		"pin strict us",
		"voters set us-3 --region us",
		"voters set us-0 us-2 us-3 --region us",
		"unpin strict",
	} {
		step := time.Now()
		code, out := at.rld(t, "strict "+args)
		if code != 0 {
			t.Fatalf("rld strict %s: exit code %d:\n%s", args, code, out)
		}
		if layout++; at.layout(t) != layout {
			t.Errorf("after rld strict %s layout %v is in force, want %v", args, at.layout(t), layout)
		}
		t.Logf("rld strict %s: in force after %s", args, seconds(time.Since(step)))
		time.Sleep(time.Second)
	}
	other.kill(t) // it is no replica any more
	time.Sleep(2 * time.Second)
	ended := time.Now()
	tr.stop()
	tr.served(other)
	tr.keptTo(strict, strictLimit, strictLimit)
	t.Logf("no daemon was without the answer of an owner for longer than %s", seconds(tr.outage(strict, began, ended, other)))
	t.Log(tr.failures(strict))
	for _, d := range c.except(other) {
		if got := d.layout(t); got != layout {
			t.Errorf("%s goes by layout %v, want %v", d.name, got, layout)
		}
	}
}

// layout returns the number of the layout that the daemon goes by.
func (d *daemon) layout(t testing.TB) float64 {
	t.Helper()
	n, err := d.metric("rld_strict_layout")
	if err != nil {
		t.Fatal(err)
	}
	return n
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
