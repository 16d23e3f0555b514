// Package regions_test holds the settings of a cluster of three regions to each
// other, and runs the cluster.
package regions_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/config"
)

// baseFile is what all regions share.
const baseFile = "base.yaml"

// own is the settings that only a region's own file has.
var own = []string{"region", "swim.seeds", "strict.replicas"}

// The files are settings as they are, and of one cluster.
func TestFiles(t *testing.T) {
	for _, problem := range check(".") {
		t.Error(problem)
	}
}

// The checks find faults of the files. Each case changes one text in one of
// them, or in all.
func TestFilesMutated(t *testing.T) {
	const us, eu, all = "us-east-1.yaml", "eu-west-1.yaml", "*.yaml"
	for _, tc := range []struct{ name, file, old, by, want string }{
		{"nothing", us, "", "", ""},
		{"region", us, "region: us-east-1", "region: us-west-1", "us-east-1.yaml: "},
		{"name", us, "region: ", "name: us-0\nregion: ", `us-east-1.yaml: name is "us-0"`},
		{
			"seed of another region", us, "seeds: [us-east-1.", "seeds: [eu-west-1.",
			"us-east-1.yaml: seed eu-west-1.rld.example:7946 is not of us-east-1",
		},
		{
			"port of a seed", us, "example:7946]", "example:7947]",
			"us-east-1.yaml: seed us-east-1.rld.example:7947 is not at the port of 0.0.0.0:7946",
		},
		{"no seed", us, "seeds: [us-east-1.rld.example:7946]", "seeds: []", "us-east-1.yaml: has no seeds"},
		{
			"peer of another region", all, "- us-east-1-0.", "- us-west-1-0.",
			"peer us-west-1-0.rld.example:7070 is not of us-east-1",
		},
		{
			"port of a peer", all, "- us-east-1-0.rld.example:7070", "- us-east-1-0.rld.example:7071",
			"peer us-east-1-0.rld.example:7071 is not at the port of 0.0.0.0:7070",
		},
		{"peers differ", eu, "      - us-east-1-1.rld.example:7070\n", "", "eu-west-1.yaml: regions is "},
		{"region without a file", all, "eu-west-1", "eu-west-2", "eu-west-1.yaml: is of region eu-west-2"},
		{"interval", eu, " interval: 100ms", " interval: 200ms", "eu-west-1.yaml: gossip.interval is 200ms, and 100ms in base.yaml"},
		{"interval across", eu, "250ms\n  quiet", "1s\n  quiet", "eu-west-1.yaml: gossip.wan_interval is 1s"},
		{"keys", eu, "max_keys: 1000000", "max_keys: 999999", "eu-west-1.yaml: max_keys is 999999"},
		{"shards", us, "shards: 64\n", "", "us-east-1.yaml: shards is 0"},
		{"founders", us, "founders: [us-east-1-0, ", "founders: [", "us-east-1.yaml: cluster.founders is"},
		{"secret", us, "secret_file: /etc/rld/keys/secret", "secret_file: /etc/rld/keys/other", "us-east-1.yaml: cluster.secret_file is"},
		{
			"daemon of another region", us, "us-east-1-1, ", "eu-west-1-1, ",
			"us-east-1.yaml: daemon eu-west-1-1 is not of us-east-1",
		},
		{
			"daemons that peers do not name", us, "[us-east-1-0, ", "[us-east-1-9, ",
			"us-east-1.yaml: peer us-east-1-0.rld.example:7070 is none of the daemons",
		},
		{
			"horizon", eu, "daemon_horizon: 30s", "daemon_horizon: 60s",
			"eu-west-1.yaml: rights.daemon_horizon is 1m, and 30s in base.yaml",
		},
		{"folder", all, "dir: /var/lib/rld", "dir: /tmp/rld", "state.dir is /tmp/rld, which restarts do not outlive"},
		{"even replicas", us, "replicas: [", "replicas: [us-east-1-9, ", "name an odd number"},
		{
			"one replica", us, "replicas: [us-east-1-0, us-east-1-1, us-east-1-2]", "replicas: [us-east-1-0]",
			"us-east-1.yaml: 1 replica: with fewer than 3 none may be down",
		},
		{
			"no replicas", us, "replicas: [us-east-1-0, us-east-1-1, us-east-1-2]", "replicas: []",
			"strict.replicas: is missing",
		},
		{"breaker", eu, "open: 1m", "open: 2m", "eu-west-1.yaml: strict.breaker.open is 2m, and 1m in base.yaml"},
		{"offset", us, "clock: {max_offset: 250ms}", "clock: {max_offset: 1s}", "us-east-1.yaml: clock.max_offset is 1s"},
		{"more than the base", us, "region: ", "shadow: true\nregion: ", "us-east-1.yaml: shadow is true, and false in base.yaml"},
		{"unknown", us, "region: ", "regoin: ", "us-east-1.yaml: "},
		{"base names a region", baseFile, "shards", "region: us-east-1\nshards", "base.yaml: names a region"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := mutated(t, tc.file, tc.old, tc.by)
			found := check(dir)
			if tc.want == "" && len(found) == 0 {
				return
			}
			if !slices.ContainsFunc(found, func(s string) bool { return tc.want != "" && strings.Contains(s, tc.want) }) {
				t.Fatalf("found %q, want %q", found, tc.want)
			}
		})
	}
}

// mutated returns a copy of the files in which one text is another one in all
// files that match a pattern.
func mutated(t *testing.T, pattern, old, by string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	names, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if ok, _ := filepath.Match(pattern, name); ok {
			if !strings.Contains(text, old) {
				t.Fatalf("%s does not hold %q", name, old)
			}
			text = strings.ReplaceAll(text, old, by)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// files returns the paths of the regions' files in a folder by region.
func files(dir string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	out := make(map[string]string)
	for _, path := range paths {
		if name := filepath.Base(path); name != baseFile {
			out[strings.TrimSuffix(name, ".yaml")] = path
		}
	}
	return out, err
}

// check returns what keeps the files in a folder from being one cluster.
func check(dir string) (problems []string) {
	paths, err := files(dir)
	if err != nil || len(paths) < 2 {
		return []string{fmt.Sprintf("%d regions in %s (%v)", len(paths), dir, err)}
	}
	base := filepath.Join(dir, baseFile)
	alone := config.Sources{File: base, Flags: map[string]string{"strict-replicas": "a-0"}}
	if _, err := config.Load(alone); err == nil {
		problems = append(problems, baseFile+": names a region, and each daemon would be of it")
	}
	for region, path := range paths {
		for _, p := range checkRegion(region, path, base) {
			problems = append(problems, filepath.Base(path)+": "+p)
		}
		shared, err := config.Load(baseFor(base, region, "seed.example:1"))
		if err != nil {
			return append(problems, fmt.Sprintf("%s: %v", baseFile, err))
		}
		for _, p := range checkRegions(&shared.Config, paths) {
			problems = append(problems, baseFile+": "+p)
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// baseFor makes the base settings of a region's daemon.
func baseFor(path, region, seeds string) config.Sources {
	return config.Sources{File: path, Flags: map[string]string{
		"region": region, "swim-seeds": seeds, "strict-replicas": region + "-0",
	}}
}

// checkRegion returns the faults of a region's file, by itself and together
// with the base.
func checkRegion(region, path, base string) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	l, err := config.Load(config.Sources{File: path})
	if err != nil {
		return []string{err.Error()}
	}
	for _, w := range l.Warnings {
		say("%s", w)
	}
	c := &l.Config
	if c.Region != region {
		say("is of region %s", c.Region)
	}
	if c.Name != "" {
		say("name is %q: all daemons of the region read this file", c.Name)
	}
	if len(c.Swim.Seeds) == 0 {
		say("has no seeds")
	}
	for _, s := range c.Swim.Seeds {
		if !strings.HasPrefix(s, region+".") {
			say("seed %s is not of %s", s, region)
		}
		if port(s) != port(c.Swim.Addr) {
			say("seed %s is not at the port of %s", s, c.Swim.Addr)
		}
	}
	problems = append(problems, checkRights(c)...)
	switch n := len(c.Strict.Replicas); {
	case n == 0:
		say("names no replicas")
	case n < 3:
		say("%d replica: with fewer than 3 none may be down", n)
	}
	shared, err := config.Load(baseFor(base, region, "seed.example:1"))
	if err != nil {
		say("%s: %v", baseFile, err)
		return problems
	}
	others := shared.Settings()
	for i, s := range l.Settings() {
		if o := others[i]; s.Value != o.Value && !slices.Contains(own, s.Name) {
			say("%s is %s, and %s in %s", s.Name, s.Value, o.Value, baseFile)
		}
	}
	return problems
}

// checkRights returns the faults of the settings that a region's daemons need
// to hold rights: a folder on a persistent disk, and the names of existing
// daemons.
func checkRights(c *config.Config) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if why := c.NoRights(); why != "" {
		say("%s", why)
	}
	if dir := c.State.Dir; !strings.HasPrefix(dir, "/var/lib/") {
		say("state.dir is %s, which restarts do not outlive", dir)
	}
	for _, d := range c.Strict.Replicas {
		if !strings.HasPrefix(d, c.Region+"-") {
			say("daemon %s is not of %s", d, c.Region)
		}
	}
	for _, region := range c.Regions {
		for _, p := range region.Peers {
			name, _, _ := strings.Cut(p, ".")
			if region.Name == c.Region && !slices.Contains(c.Strict.Replicas, name) {
				say("peer %s is none of the daemons %s", p, strings.Join(c.Strict.Replicas, ", "))
			}
		}
	}
	return problems
}

// checkRegions returns the faults of the list of regions that all files share:
// each region has a file and peers of its own.
func checkRegions(c *config.Config, paths map[string]string) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	missing := make(map[string]bool)
	for region := range paths {
		missing[region] = true
	}
	for _, r := range c.Regions {
		if !missing[r.Name] {
			say("region %s has no file", r.Name)
		}
		delete(missing, r.Name)
		if len(r.Peers) == 0 {
			say("region %s has no peers", r.Name)
		}
		for _, p := range r.Peers {
			if !strings.HasPrefix(p, r.Name+"-") {
				say("peer %s is not of %s", p, r.Name)
			}
			if port(p) != port(c.Peer.Addr) {
				say("peer %s is not at the port of %s", p, c.Peer.Addr)
			}
		}
	}
	for region := range missing {
		say("regions lacks %s, which has a file", region)
	}
	return problems
}

// port returns the port of host:port, which is valid.
func port(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err.Error()
	}
	return port
}
