//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The limits that all tests use, by the name of their rule.
const (
	// day keys do not end during a test: any fresh quota is seen.
	day      = "day"
	dayLimit = 300
	// window keys end every five seconds.
	window      = "window"
	windowLimit = 200
	// kept and brief keys are for counting, not for exhausting; brief ones
	// end every ten seconds.
	kept       = "kept"
	brief      = "brief"
	ampleLimit = 1_000
	// bounded keys end every ten seconds and have a budget of 5 %.
	bounded      = "bounded"
	boundedLimit = 400
	boundedTotal = 420
	// strict keys end every two seconds.
	strict      = "strict"
	strictLimit = 20
)

// The strict limits whose home region is strictOwner, of clusters with that
// region.
const (
	strictOwner = "eu"
	// open keys are never used up: there is service, or not. allowed ones pass
	// without their owner.
	open      = "open"
	allowed   = "allowed"
	openLimit = 10_000_000
	// once keys are used up once in a test.
	once      = "once"
	onceLimit = 400
	// shared keys end every three seconds, and each region has a floor.
	shared        = "shared"
	sharedLimit   = 100
	sharedReserve = 10 // of each region
)

// limitOf is how many hits of a key the rule admits in a window.
func limitOf(rule string) int {
	return map[string]int{
		day: dayLimit, window: windowLimit, kept: ampleLimit, brief: ampleLimit, bounded: boundedLimit, strict: strictLimit,
		open: openLimit, allowed: openLimit, once: onceLimit, shared: sharedLimit,
	}[rule]
}

const domain = "e2e"

// limitsOfRegions returns the file of limits of a cluster.
func limitsOfRegions(regions []string) string {
	if !slices.Contains(regions, strictOwner) || len(regions) != 3 {
		return limitsFile
	}
	return limitsFile + homedLimits
}

var limitsFile = fmt.Sprintf(`domain: %s
descriptors:
  - {key: day, rate_limit: {unit: day, requests_per_unit: %d}}
  - {key: window, rate_limit: {unit: second, unit_multiplier: 5, requests_per_unit: %d}}
  - {key: kept, rate_limit: {unit: day, requests_per_unit: %d}}
  - {key: brief, rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: %d}}
  - {key: bounded, rate_limit: {unit: second, unit_multiplier: 10, requests_per_unit: %d, overage_budget: 5%%}}
  - {key: strict, rate_limit: {unit: second, unit_multiplier: 2, requests_per_unit: %d, consistency: strict}}
`, domain, dayLimit, windowLimit, ampleLimit, ampleLimit, boundedLimit, strictLimit)

var homedLimits = fmt.Sprintf(`
  - {key: open, rate_limit: {unit: day, requests_per_unit: %d, consistency: strict, home: %[4]s}}
  - {key: allowed, rate_limit: {unit: day, requests_per_unit: %[1]d, consistency: strict, home: %[4]s, on_failure: allow}}
  - {key: once, rate_limit: {unit: day, requests_per_unit: %[2]d, consistency: strict, home: %[4]s}}
  - key: shared
    rate_limit:
      {unit: second, unit_multiplier: 3, requests_per_unit: %[3]d, consistency: strict, home: %[4]s, on_failure: {share: 30%%}}
`, openLimit, onceLimit, sharedLimit, strictOwner)

// circuitOpen is for how long a circuit stays open, so that it is seen to
// close.
const circuitOpen = 3 * time.Second

// addresses is where a daemon listens.
type addresses struct{ grpc, http, admin, peer, swim string }

// settings returns the settings file of daemon d of c.
func (c *cluster) settings(d *daemon) string {
	var b strings.Builder
	fmt.Fprintf(&b, "region: %s\nname: %s\nmax_keys: 20000\n%s", d.region, d.name, c.plan.settings)
	var founders []string
	for _, region := range c.regions[:c.plan.founding] {
		founders = append(founders, region+"-0")
	}
	fmt.Fprintf(&b, "cluster: {secret_file: %s, founders: [%s]}\n", c.secretFile(d), strings.Join(founders, ", "))
	fmt.Fprintf(&b, "limits: {path: %s}\n", c.file("limits.yaml"))
	fmt.Fprintf(&b, "grpc: {addr: %q, insecure: true}\nhttp: {addr: %q, insecure: true}\nadmin: {addr: %q, insecure: true}\n", d.at.grpc, d.at.http, d.at.admin)
	secured := ""
	if c.plan.secured {
		f := d.certs()
		secured = fmt.Sprintf(", tls: {cert: %s, key: %s, ca: %s}", f.Cert, f.Key, f.CA)
	}
	fmt.Fprintf(&b, "peer: {addr: %q, insecure: true%s}\nswim:\n  addr: %q\n  seeds:\n", d.at.peer, secured, d.at.swim)
	var mates []string
	durable := c.durable(d.region)
	for _, mate := range c.seeds(d.region) {
		fmt.Fprintf(&b, "    - %q\n", mate.at.swim)
		if slices.Contains(durable, mate) {
			mates = append(mates, mate.name)
		}
	}
	if slices.Contains(durable, d) {
		fmt.Fprintf(&b, "state: {dir: %s}\n", c.file(d.name+"-state"))
	} else {
		b.WriteString("state: {diskless: true}\n")
	}
	if d.region == c.plan.witness {
		b.WriteString("control: {voter: only}\n")
	} else {
		fmt.Fprintf(&b, "strict: {replicas: [%s], breaker: {open: %v}}\n", strings.Join(mates[:min(len(mates), 3)], ", "), circuitOpen)
	}
	b.WriteString("regions:\n")
	for i, region := range c.regions {
		if i >= c.plan.founding && region != d.region {
			continue // its daemons find this one
		}
		fmt.Fprintf(&b, "  %s:\n    peers:\n", region)
		for _, peer := range c.seeds(region) {
			fmt.Fprintf(&b, "      - %q\n", peer.at.peer)
		}
		if c.plan.networks {
			fmt.Fprintf(&b, "    cidrs: [%s/32]\n", c.net.host(i))
		}
	}
	return b.String()
}

// seeds returns the daemons of a region that settings name: those that start
// with the cluster, or all of a region that comes later.
func (c *cluster) seeds(region string) []*daemon {
	if first := c.first(region); len(first) > 0 {
		return first
	}
	return c.in(region)
}

// writeFiles writes the files that the daemons read.
func (c *cluster) writeFiles(t testing.TB) {
	t.Helper()
	files := map[string]string{
		"limits.yaml": c.plan.limits,
		"secret":      "the secret of a cluster for tests\n",
	}
	for _, d := range c.daemons {
		files[d.name+".yaml"] = c.settings(d)
		files[filepath.Base(c.secretFile(d))] = files["secret"]
	}
	if c.plan.secured {
		c.certify()
	}
	for name, text := range files {
		if err := os.WriteFile(c.file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// secretFile returns the file of the cluster secret that a daemon reads.
func (c *cluster) secretFile(d *daemon) string {
	if c.plan.ownSecrets {
		return c.file(d.name + "-secret")
	}
	return c.file("secret")
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }
