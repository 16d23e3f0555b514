//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// laterVersion builds rld as a later version, which reads the next format of
// the record and raises it after some seconds.
func (c *cluster) laterVersion(t testing.TB) string {
	t.Helper()
	replaced := map[string]string{}
	for file, edit := range map[string][2]string{
		"record.go": {"	Format = 2\n", "	Format = 3\n"},
		"config.go": {"cmp.Or(c.FormatAfter, 24*time.Hour)", "cmp.Or(c.FormatAfter, 5*time.Second)"},
	} {
		source, err := os.ReadFile("../../control/" + file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(source), edit[0], edit[1], 1)
		if text == string(source) {
			t.Fatalf("control/%s has no %q", file, edit[0])
		}
		if err := os.WriteFile(c.file(file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		replaced[strings.TrimSuffix(root, "internal/e2e")+"control/"+file] = c.file(file)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.file("overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", c.file("overlay.json"), "-o", c.file("later"), "../../cmd/rld")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c.file("later")
}

// An upgrade, a downgrade and an upgrade, one daemon at a time, as
// docs/operations.md has them: the format of the record is raised at the end,
// and the former version does not start from its files.
func TestUpgradeAndDowngrade(t *testing.T) {
	c := newCluster(t, loopback{}, 1, "us", "ap", "sa")
	later := c.laterVersion(t)
	us, ap := c.daemon("us-0"), c.daemon("ap-0")
	shows := func(at *daemon, want string) {
		t.Helper()
		c.within(3*patience, "rld cluster format at "+at.name+": "+want, func() string {
			if code, out := at.rld(t, "cluster format"); code != 0 || !strings.Contains(out, want) {
				return out
			}
			return ""
		})
	}
	version := func(d *daemon, program string) {
		t.Helper()
		d.terminate(t)
		i := 0
		for d.argv[i] != binary && d.argv[i] != later {
			i++
		}
		d.argv[i] = program
		d.start(t)
		c.whole(3 * patience)
	}
	c.within(patience, "one cluster at all", c.oneCluster)
	shows(us, "The record has format 2, and this daemon reads formats up to 2.")
	version(us, later)
	version(c.daemon("sa-0"), later)
	shows(us, "A later one waits for daemons that do not read it: ap/ap-0.")
	version(us, binary) // the downgrade
	shows(ap, "A later one waits for daemons that do not read it: ap/ap-0, us/us-0.")
	version(us, later)
	if code, out := us.rld(t, "cluster format --hold --reason week --wait 30s"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	version(ap, later)
	shows(ap, "It is held since version")
	if code, out := ap.rld(t, "cluster format --unhold --wait 30s"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	shows(us, "The record has format 3, and this daemon reads formats up to 3.")
	us.terminate(t)
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--config", c.file("us-0.yaml"))
	cmd.Env = environ()
	const want = "of format 3: this version of rld reads formats up to 2. It is of a later version: start that one again"
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("the former version with a later folder: %v\n%swant %q", err, out, want)
	}
	us.start(t)
	c.whole(3 * patience)
}

// Operators of two regions recover the control log on their own: a split, which
// one of them ends.
func TestSplit(t *testing.T) {
	c := newCluster(t, loopback{}, 1, "us", "ap", "sa")
	us, ap := c.daemon("us-0"), c.daemon("ap-0")
	c.within(patience, "one cluster at all", c.oneCluster)
	done := func(at *daemon, command, want string) {
		t.Helper()
		if code, out := at.rld(t, command); code != 0 || !strings.Contains(out, want) {
			t.Fatalf("rld %s at %s: exit code %d: %swant %q", command, at.name, code, out, want)
		}
	}
	reports := func(at *daemon, want string) {
		t.Helper()
		c.within(3*patience, at.name+" reports: "+want, func() string {
			if code, out := at.rld(t, "cluster status"); code != 0 || !strings.Contains(out, want) {
				return out
			}
			return ""
		})
	}
	for _, d := range c.daemons {
		d.die(t)
	}
	for _, d := range []*daemon{us, ap} { // each alone
		d.start(t)
		reports(d, "leader")
		done(d, "cluster recover --stopped --yes "+d.name+" --reason test", "Recovery 1 began with the record of "+d.name)
		d.die(t)
	}
	for _, d := range c.daemons {
		d.start(t)
	}
	c.whole(3 * patience)
	reports(us, "ap/ap-0") // with sa-0, if that has followed it already
	reports(us, "on the other side of two recoveries; on the side to give up run rld cluster recover --yield")
	reports(ap, "us/us-0")
	done(us, "cluster recover --yield", "us-0 would follow the other recovery")
	done(us, "cluster recover --yield --yes us-0 --reason test --wait 30s", "Recovery 2 began with the record of the other side, and us-0 follows it.")
	c.within(3*patience, "one cluster at all", c.oneCluster)
	done(us, "cluster history --dropped", "recovery 1 began at version")
}
