package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The rules of the daemons of a region, beside that of benchLimits.
const (
	// strictKey is of a limit that nobody reaches, like benchKey, but strict.
	// It lets pass what its owner does not answer in time, so that a client
	// does not stop at it; noneFailed sees it.
	strictKey = "strict"
	// batchKey is of one that is reached each second.
	batchKey   = "batch"
	batchLimit = 18_000
	// deniedKey is of one that is used up at once, and throttledKey of one that
	// has another hit again and again.
	deniedKey    = "denied"
	throttledKey = "throttled"
	deniedLimit  = 10
	// durableKey is of one so small that watermarks are never raised by more
	// than a chunk.
	durableKey   = "durable"
	durableLimit = 2_000
)

// strictLimits returns the rules as a limits file.
func strictLimits() string {
	return benchLimits() + fmt.Sprintf(`  - key: %s
    rate_limit: {unit: hour, requests_per_unit: %d, consistency: strict, on_failure: allow}
  - key: %s
    rate_limit: {unit: second, requests_per_unit: %d, consistency: strict}
  - key: %s
    rate_limit: {unit: hour, requests_per_unit: %d, consistency: strict}
  - key: %s
    rate_limit: {unit: second, requests_per_unit: %d, algorithm: token_bucket, consistency: strict}
  - key: %s
    rate_limit: {unit: hour, requests_per_unit: %d, consistency: strict, on_failure: allow}
`, strictKey, benchRequests, batchKey, batchLimit, deniedKey, deniedLimit, throttledKey, deniedLimit,
		durableKey, durableLimit)
}

// region is three daemons of one region that serve strict keys, and a client.
// The first daemon is the one that is measured, unless another is named.
type region struct {
	setup
	daemons []*served
}

// daemonName returns the name of a daemon of the region.
func daemonName(i int) string { return fmt.Sprintf("%s-%d", neighborRegions[0], i) }

// strict returns the region. It starts for the first line that needs it, and
// again when an earlier line left it in a bad state.
func (b *bench) strict(ctx context.Context) *region {
	if r := b.region(); !r.well(ctx) {
		b.region = sync.OnceValue(func() *region { return b.startRegion(ctx) })
		check(r.stop())
	}
	return b.region()
}

// well reports whether every daemon asks every owner, and all know each other.
func (r *region) well(ctx context.Context) bool {
	return !slices.ContainsFunc(r.daemons, func(s *served) bool {
		return len(scrape(ctx, s)[0].openCircuits()) > 0 || s.membersReady(ctx) != daemonsOfRegion
	})
}

// diskFolder makes a folder in the working directory, which must be on a disk:
// where temporary files are may be in memory, and then nothing is made durable.
func diskFolder() (string, error) {
	dir, err := os.MkdirTemp(".", ".rld-bench-")
	if err != nil {
		return "", fmt.Errorf("folder for what daemons promise: %w", err)
	}
	if dir, err = filepath.Abs(dir); err == nil && inMemory(dir) {
		err = fmt.Errorf("%s is in memory: run this in a folder on a disk", dir)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// secretFile writes a cluster's secret.
func (b *bench) secretFile() string {
	secret := base64.StdEncoding.EncodeToString([]byte("a secret of thirty-two bytes 1234"))
	return b.file("secret", secret)
}

// startRegion starts the processes and waits until every daemon votes.
func (b *bench) startRegion(ctx context.Context) *region {
	limits := b.file("strict.yaml", strictLimits())
	r := &region{}
	b.cleanup.add(r.stop)
	var names []string
	for i := range daemonsOfRegion {
		names = append(names, daemonName(i))
	}
	disk := r.disk()
	var seeds []string
	prefetch := [daemonsOfRegion]string{forwarder: "0", prefetcher: "16", 2: "16"}
	for i, name := range names {
		s := b.serveStrict(ctx, r, limits, neighborRegions[0], name, disk, append(seeds,
			"--strict-prefetch", prefetch[i], "--strict-replicas", strings.Join(names, ","), "--cluster-founders", names[0])...)
		r.daemons = append(r.daemons, s)
		seeds = []string{"--swim-seeds", r.daemons[0].swim}
	}
	b.begin(ctx, r.daemons[0])
	r.startClient(ctx, b.dir)
	r.settle(ctx)
	return r
}

// disk makes a folder on a disk for the daemons, which stop removes.
func (r *region) disk() string {
	dir := must(diskFolder())
	r.cleanup.add(func() error { return os.RemoveAll(dir) })
	return dir
}

// serveStrict starts a daemon that keeps its rights in a folder of disk.
func (b *bench) serveStrict(ctx context.Context, r *region, limits, region, name, disk string, more ...string) *served {
	dir := filepath.Join(disk, name)
	check(os.Mkdir(dir, 0o700))
	s := b.serveMember(ctx, limits, region, name, append(more, "--state-dir", dir)...)
	r.add(s.grpc, s.child)
	return s
}

// begin begins the cluster of a daemon.
func (b *bench) begin(ctx context.Context, s *served) {
	out, err := exec.CommandContext(ctx, b.rld(ctx), "cluster", "init", "--nothing-ran-before", "--wait", "30s", "--admin", s.admin).CombinedOutput()
	if err != nil {
		check(s.failed(fmt.Errorf("rld cluster init: %w: %s", err, out)))
	}
}

// settle waits until every daemon votes and knows all of them to be ready.
func (r *region) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for _, s := range r.daemons {
		for scrape(ctx, s)[0]["rld_strict_voting"] != 1 || s.membersReady(ctx) != daemonsOfRegion {
			if err := sleep(ctx, 10*readyPoll); err != nil {
				check(s.failed(fmt.Errorf("it has no part in strict keys after %v: %w", readyWait, err)))
			}
		}
	}
}

// usersOf returns n users whose key of a rule is owned by a daemon, or is not.
func (r *region) usersOf(ctx context.Context, key string, n, at int, here bool) []int {
	var all []int
	for u := 0; len(all) < n; u++ {
		if (r.daemons[0].ownerOf(ctx, key, u) == daemonName(at)) == here {
			all = append(all, u)
		}
		if u > 20*n+100 {
			check(fmt.Errorf("%d of %d keys have the owner that is wanted: owners are not spread", len(all), u))
		}
	}
	return all
}

// others returns the daemons that are not the owner of a user's key of a rule,
// and the owner.
func (r *region) others(ctx context.Context, key string, user int) (others []*served, owner *served) {
	name := r.daemons[0].ownerOf(ctx, key, user)
	for i, s := range r.daemons {
		if daemonName(i) == name {
			owner = s
		} else {
			others = append(others, s)
		}
	}
	if owner == nil {
		check(fmt.Errorf("the owner of %s=%s is %q, none of ours", key, userName(user), name))
	}
	return others, owner
}

// quiet is how long daemons are left alone before their metrics are read for
// the last time, so that answers under way are counted.
const quiet = 50 * time.Millisecond
