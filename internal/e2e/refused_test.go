//go:build e2e

package e2e

import (
	"crypto/sha512"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What an operator gives wrongly is refused by a sentence that names the way
// out, and changes nothing. The region whose daemons all restart while they
// reach no leader goes on by its operator's statement.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newCluster(t, loopback{}, 2, "us", "ap", "sa")
	us, ap := c.daemon("us-0"), c.daemon("ap-0")
	c.writeFaults(t)
	refused := func(at *daemon, command string, code int, want string) {
		t.Helper()
		got, out := at.rld(t, command)
		if got != code || !strings.Contains(out, want) {
			t.Errorf("rld %s at %s: exit code %d: %swant %d with %q", command, at.name, got, out, code, want)
		}
	}
	c.within(patience, "one cluster at all", c.oneCluster)
	refused(ap, "cluster init", 0, "began at")
	refused(us, "cluster recover --yes us-0", 1, "a majority needs no recovery")
	refused(us, "region resume", 1, "record of this daemon")
	refused(us, "region remove ap --stopped --yes ap", 1, "stop all of them first")
	refused(us, "region remove ap --yes ap", 1, "drain it first")
	refused(us, "region add br --weight 20%", 1, "start one first")
	refused(us, "daemon remove ap-0 --stopped --yes ap-0", 1, "stop it first")
	refused(us, "limits apply "+c.file("rules.yaml")+" --wait 30s", 0, "rules applied")
	refused(us, "limits apply "+c.file("faulty.yaml"), 1, "unknown unit")
	refused(us, "limits apply "+c.file("large.yaml"), 1, "remove rules, or give some domains to the files of the daemons")
	refused(us, "limits rollback 1:9999", 1, "rld limits history lists them")
	refused(us, "limits set nonesuch requests=5 --for 1h", 1, "rld budget lists all")
	refused(us, "limits set day requests=5 --for 1h --from 2020-01-01T00:00:00Z", 1, "want a later one, or none")
	refused(us, "limits set day requests=5 --for 1h --wait 20s", 0, "has requests=5")
	refused(ap, "limits set day requests=6 --for 1h", 1, "replace it with --if-version")
	refused(ap, "limits unset window", 1, "rld limits list and rld key list show all")

	// Folders, with a daemon that is stopped for that.
	mate := c.daemon("us-1")
	mate.terminate(t)
	refuses := func(name, folder, want string) {
		t.Helper()
		text := strings.ReplaceAll(c.settings(mate), c.file(mate.name+"-state"), folder)
		if err := os.WriteFile(c.file(name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), binary, "serve", "--config", c.file(name+".yaml"))
		cmd.Env = environ()
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("a daemon with %s: %v\n%swant %q", folder, err, out, want)
		}
	}
	refuses("used", c.file("us-0-state"), "give each daemon a folder of its own")
	if err := os.WriteFile(c.file("none"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("none", filepath.Join(c.file("none"), "state"), "state.dir")

	// A daemon with another secret counts for nobody. The others have read
	// theirs.
	secret, err := os.ReadFile(c.file("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.file("secret"), []byte("another secret of a cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("secret", c.file("us-1-state"), "it is from another cluster")
	state, kept := c.file("us-1-state"), c.file("us-1-state-kept")
	if err := os.Rename(state, kept); err != nil {
		t.Fatal(err)
	}
	mate.start(t)
	c.within(patience, "the daemon with another secret is not ready", func() string {
		if wrong := mate.ready(); !strings.Contains(wrong, "all peers refuse this daemon") || !strings.Contains(wrong, "cluster.secret_file") {
			return "ready: " + wrong
		}
		return ""
	})
	mate.terminate(t)
	if err := errors.Join(os.RemoveAll(state), os.Rename(kept, state), os.WriteFile(c.file("secret"), secret, 0o600)); err != nil {
		t.Fatal(err)
	}
	ap.terminate(t)
	refuses("foreign", c.file("ap-0-state"), "give the daemon its own folder")
	ap.start(t)
	mate.start(t)
	c.whole(patience)

	// No majority, and a region that restarts.
	for _, d := range append(c.in("us"), c.in("sa")...) {
		d.freeze(t)
	}
	for _, d := range c.in("ap") {
		d.die(t)
	}
	for _, d := range c.in("ap") {
		d.start(t)
	}
	c.within(2*patience, "the region is reported", func() string {
		if code, out := ap.rld(t, "cluster status"); code != 0 || !strings.Contains(out, "restarted while they are cut off") {
			return out
		}
		return ""
	})
	refused(ap, "limits apply "+c.file("rules.yaml")+" --reason again", 1, "without a majority")
	refused(ap, "region weight ap --weight 20% --force", 1, "no leader")
	refused(ap, "region resume --yes ap", 64, "--was-not-removed is missing")
	refused(ap, "region resume --was-not-removed --yes us", 1, "ask a daemon of that region")
	refused(ap, "region resume --was-not-removed --yes ap --reason test", 0, "goes on with version")
	c.within(2*patience, "the region has rights", func() string {
		for _, d := range c.in("ap") {
			if n, err := d.metric("rld_rights_held_hits"); err != nil || n == 0 {
				return fmt.Sprintf("%s holds %v, %v", d.name, n, err)
			}
		}
		return ""
	})
	for _, d := range append(c.in("us"), c.in("sa")...) {
		d.thaw(t)
	}
	c.within(3*patience, "one cluster at all", c.oneCluster)
}

// writeFaults writes the files of rules that commands of the test name.
func (c *cluster) writeFaults(t testing.TB) {
	t.Helper()
	var large strings.Builder
	large.WriteString("domain: large\ndescriptors:\n")
	for i := range 14_000 { // hashes do not compress
		fmt.Fprintf(&large, "  - {key: k%x, rate_limit: {unit: minute, requests_per_unit: 1}}\n", sha512.Sum512(fmt.Append(nil, i)))
	}
	for name, text := range map[string]string{
		"rules.yaml":  limitsFile,
		"faulty.yaml": strings.Replace(limitsFile, "unit: day", "unit: fortnight", 1),
		"large.yaml":  large.String(),
	} {
		if err := os.WriteFile(c.file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
