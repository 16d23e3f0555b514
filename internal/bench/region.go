package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	daemons []*served
	client  *child
	dir     string // on a disk, removed by stop
}

// daemonName returns the name of a daemon of the region.
func daemonName(i int) string { return fmt.Sprintf("%s-%d", neighborRegions[0], i) }

// prefetchOf returns strict.prefetch of a daemon of the region.
func prefetchOf(i int) string {
	if i == forwarder {
		return "0"
	}
	return "16"
}

// strict returns the region. It starts for the first line that needs it, and
// again when an earlier line left it in a bad state.
func (b *bench) strict(ctx context.Context) (*region, error) {
	if b.region != nil && b.regionErr == nil {
		well, err := b.region.well(ctx)
		if err == nil && !well {
			err = b.region.stop()
			b.region = nil
		}
		if err != nil {
			return nil, err
		}
	}
	if b.region == nil && b.regionErr == nil {
		b.region = &region{}
		b.regionErr = b.startRegion(ctx, b.region)
	}
	return b.region, b.regionErr
}

// well reports whether every daemon asks every owner, and all know each other.
func (r *region) well(ctx context.Context) (bool, error) {
	for _, s := range r.daemons {
		m, err := s.scrape(ctx)
		if err != nil {
			return false, err
		}
		if len(m.openCircuits()) > 0 {
			return false, nil
		}
		if n, err := s.membersReady(ctx); err != nil || n != daemonsOfRegion {
			return false, err
		}
	}
	return true, nil
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
func (b *bench) secretFile() (string, error) {
	secret := base64.StdEncoding.EncodeToString([]byte("a secret of thirty-two bytes 1234"))
	file := filepath.Join(b.dir, "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		return "", fmt.Errorf("secret: %w", err)
	}
	return file, nil
}

// startRegion starts the processes and waits until every daemon votes.
func (b *bench) startRegion(ctx context.Context, r *region) error {
	limits := filepath.Join(b.dir, "strict.yaml")
	if err := os.WriteFile(limits, []byte(strictLimits()), 0o600); err != nil {
		return fmt.Errorf("limits to serve: %w", err)
	}
	secret, err := b.secretFile()
	if err != nil {
		return err
	}
	if r.dir, err = diskFolder(); err != nil {
		return err
	}
	var names []string
	for i := range daemonsOfRegion {
		names = append(names, daemonName(i))
	}
	for i, name := range names {
		dir := filepath.Join(r.dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("folder of %s: %w", name, err)
		}
		args := []string{
			"--region", neighborRegions[0], "--name", name, "--cluster-secret-file", secret,
			"--peer-addr", "127.0.0.1:0", "--swim-addr", "127.0.0.1:0",
			"--strict-prefetch", prefetchOf(i), "--rights-dir", dir, "--rights-first-start", "--rights-daemons", strings.Join(names, ","),
		}
		if len(r.daemons) > 0 {
			args = append(args, "--swim-seeds", r.daemons[0].swim)
		}
		s, err := b.serve(ctx, limits, args...)
		if err != nil {
			return err
		}
		r.daemons = append(r.daemons, s)
	}
	if r.client, err = startRole(ctx, roleClient, b.dir); err != nil {
		return err
	}
	return r.settle(ctx)
}

// settle waits until every daemon votes and knows all of them to be ready.
func (r *region) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for _, s := range r.daemons {
		for {
			m, err := s.scrape(ctx)
			if err != nil {
				return err
			}
			known, err := s.membersReady(ctx)
			if err != nil {
				return err
			}
			if m.values["rld_strict_voting"] == 1 && known == daemonsOfRegion {
				break
			}
			if err := sleep(ctx, 10*readyPoll); err != nil {
				return s.failed(fmt.Errorf("it has no part in strict keys after %v: %w", readyWait, err))
			}
		}
	}
	return nil
}

// usersOf returns n users whose key of a rule is owned by a daemon, or is not.
func (r *region) usersOf(ctx context.Context, key string, n, at int, here bool) ([]int, error) {
	var all []int
	for u := 0; len(all) < n; u++ {
		owner, err := r.daemons[0].ownerOf(ctx, key, u)
		if err != nil {
			return nil, err
		}
		if (owner == daemonName(at)) == here {
			all = append(all, u)
		}
		if u > 20*n+100 {
			return nil, fmt.Errorf("%d of %d keys have the owner that is wanted: owners are not spread", len(all), u)
		}
	}
	return all, nil
}

// others returns the daemons that are not the owner of a user's key of a rule,
// and the owner.
func (r *region) others(ctx context.Context, key string, user int) (others []*served, owner *served, err error) {
	name, err := r.daemons[0].ownerOf(ctx, key, user)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range r.daemons {
		if daemonName(i) == name {
			owner = s
		} else {
			others = append(others, s)
		}
	}
	if owner == nil {
		return nil, nil, fmt.Errorf("the owner of %s=%s is %q, none of ours", key, userName(user), name)
	}
	return others, owner, nil
}

// ask has the client do a job with the first daemon, or the one that it names.
func (r *region) ask(j job) (result, error) {
	if j.Target == "" {
		j.Target = r.daemons[0].grpc
	}
	res, err := ask(r.client, j)
	if err != nil {
		for _, s := range r.daemons {
			if s.grpc == j.Target {
				return res, s.failed(err)
			}
		}
	}
	return res, err
}

// scrape reads the metrics of some daemons.
func scrape(ctx context.Context, all []*served) ([]sample, error) {
	var out []sample
	for _, s := range all {
		m, err := s.scrape(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// grownAll is grown over several daemons.
func grownAll(before, after []sample, names ...string) (float64, error) {
	sum := 0.0
	for i := range before {
		n, err := grown(before[i], after[i], names...)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// stop ends the processes and removes their files.
func (r *region) stop() error {
	var errs []error
	if r.client != nil {
		errs = append(errs, r.client.stop())
	}
	for _, s := range r.daemons {
		errs = append(errs, s.stop())
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}

// quiet is how long daemons are left alone before their metrics are read for
// the last time, so that answers under way are counted.
const quiet = 50 * time.Millisecond
