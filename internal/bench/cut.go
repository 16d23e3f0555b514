package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/georld/rld/config"
)

// The regions of a cut: the one that is measured, and the owner of cutKey,
// which is stopped.
const (
	nearRegion = "near"
	farRegion  = "far"
	// cutKey belongs to a limit that is never reached, with farRegion as its
	// home region. Its calls pass when the owner does not answer.
	cutKey = "cut"
	// healthyCalls is how many calls are answered before the cut. The circuit
	// breaker opens when as many and some have failed.
	healthyCalls = 20
	// cutFor is how long calls are made from the cut on that may find the
	// circuit closed.
	cutFor = time.Second
)

// cutLimits returns the rules as a limits file.
func cutLimits() string {
	return benchLimits() + fmt.Sprintf(`  - key: %s
    rate_limit: {unit: hour, requests_per_unit: %d, consistency: strict, on_failure: allow, home: %s}
`, cutKey, benchRequests, farRegion)
}

// cuts holds the results of the network partitions, one per round, in
// nanoseconds.
type cuts struct {
	first []float64    // the slowest answer from the cut on
	wait  []float64    // how long a call waits for the owner
	open  [2][]float64 // once the circuit breaker is open: strict calls and others, p99
	err   error
}

// measureCut compares the slowest answer after a home region was cut off with
// how long a call waits for its owner.
func measureCut(ctx context.Context, b *bench) (outcome, error) {
	x := b.cutOff(ctx)
	if x.err != nil {
		return outcome{}, x.err
	}
	return compare(nanoseconds, median, [][]float64{x.first, x.wait}, "round trip + strict.forward_margin"), nil
}

// measureOpenCircuit measures calls that are not forwarded any more.
func measureOpenCircuit(ctx context.Context, b *bench) (outcome, error) {
	x := b.cutOff(ctx)
	if x.err != nil {
		return outcome{}, x.err
	}
	return compare(nanoseconds, least, x.open[:], "decided by the same daemon"), nil
}

// cutOff measures both, once.
func (b *bench) cutOff(ctx context.Context) *cuts {
	if b.cuts == nil {
		b.cuts = &cuts{}
		for range b.rounds(3) {
			if b.cuts.err = b.cuts.round(ctx, b); b.cuts.err != nil {
				break
			}
		}
	}
	return b.cuts
}

// round cuts two new daemons apart.
func (x *cuts) round(ctx context.Context, b *bench) (err error) {
	r := &region{}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := b.startApart(ctx, r); err != nil {
		return err
	}
	near, far := r.daemons[0], r.daemons[1]
	trip, err := near.awaitOwner(ctx, farRegion)
	if err != nil {
		return err
	}
	x.wait = append(x.wait, float64(trip+config.Default().Strict.ForwardMargin))
	ask := asked{cutKey, numbered(users)}
	if err := r.fill(ask, healthyCalls, 0); err != nil {
		return err
	}
	before, err := near.scrape(ctx)
	if err != nil {
		return err
	}
	if waited := before.values[waitedDecisions]; waited < healthyCalls {
		return fmt.Errorf("%.0f of %d calls were forwarded before the cut", waited, healthyCalls)
	}
	if err := far.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return far.failed(fmt.Errorf("stopping it for a while: %w", err))
	}
	// A process that is stopped does not end when it is asked to.
	defer func() { err = errors.Join(err, far.cmd.Process.Signal(syscall.SIGCONT)) }()
	if err := x.cutNow(r, ask); err != nil {
		return err
	}
	return x.circuitOpen(ctx, b, r, ask, before)
}

// cutNow measures calls from the cut on.
func (x *cuts) cutNow(r *region, ask asked) error {
	res, err := r.ask(job{Kind: kindOpen, Ask: ask, Rate: forwardRate, Length: cutFor})
	if err != nil {
		return err
	}
	h := newHistogram()
	if err := res.mergeInto(h); err != nil {
		return err
	}
	x.first = append(x.first, float64(h.Max()))
	return nil
}

// circuitOpen measures calls when the circuit breaker has opened, since a
// sample before the cut.
func (x *cuts) circuitOpen(ctx context.Context, b *bench, r *region, ask asked, before sample) error {
	near := r.daemons[0]
	was, err := near.scrape(ctx)
	if err != nil {
		return err
	}
	failed, err := grown(before, was, unreachableOwners)
	if err != nil {
		return err
	}
	const state = `rld_circuit_breaker_state{owner="far-0",region="far"}`
	if was.values[state] != 2 || failed == 0 {
		return near.failed(fmt.Errorf("%.0f calls failed within %v of the cut, and the circuit is in state %v, want 2: open",
			failed, cutFor, was.values[state]))
	}
	strict := job{Kind: kindClosed, Ask: ask, Flight: 1, Length: b.load / latencyTurns}
	strict.Warm = strict.Length / 10
	local := strict
	local.Ask = asked{}
	took := [2]*hdr.Histogram{newHistogram(), newHistogram()}
	if _, err := alternate(ctx, latencyTurns, r.collect(strict, took[0]), r.collect(local, took[1])); err != nil {
		return err
	}
	is, err := near.scrape(ctx)
	if err != nil {
		return err
	}
	failed, err = grown(was, is, unreachableOwners, openCircuits)
	if err != nil {
		return err
	}
	if calls := took[0].TotalCount(); failed < float64(calls) {
		return fmt.Errorf("%.0f of %d calls were decided without their owners, want all: it was cut off", failed, calls)
	}
	for i, h := range took {
		x.open[i] = append(x.open[i], float64(h.ValueAtQuantile(99)))
	}
	return nil
}

// startApart starts a daemon in each of two regions, the near one first in r.
func (b *bench) startApart(ctx context.Context, r *region) error {
	limits := filepath.Join(b.dir, "cut.yaml")
	if err := os.WriteFile(limits, []byte(cutLimits()), 0o600); err != nil {
		return fmt.Errorf("limits to serve: %w", err)
	}
	secret, err := b.secretFile()
	if err != nil {
		return err
	}
	if r.dir, err = diskFolder(); err != nil {
		return err
	}
	// The far daemon is called by the near one.
	far, err := b.startIn(ctx, r, farRegion, limits, secret, "")
	if err != nil {
		return err
	}
	r.daemons = []*served{far}
	near, err := b.startIn(ctx, r, nearRegion, limits, secret, far.peers)
	if err != nil {
		return err
	}
	r.daemons = []*served{near, far}
	r.client, err = startRole(ctx, roleClient, b.dir)
	return err
}

// startIn starts the only daemon of a region.
func (b *bench) startIn(ctx context.Context, r *region, name, limits, secret, peer string) (*served, error) {
	known := "{}"
	if peer != "" {
		known = fmt.Sprintf("{peers: [%q]}", peer)
	}
	settings, dir := filepath.Join(b.dir, name+"-settings.yaml"), filepath.Join(r.dir, name)
	text := fmt.Sprintf("regions:\n  %s: %s\n  %s: {}\n", farRegion, known, nearRegion)
	if err := errors.Join(os.WriteFile(settings, []byte(text), 0o600), os.Mkdir(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("settings of region %s: %w", name, err)
	}
	daemon := name + "-0"
	// Without stock: of that the first calls after a cut would be decided.
	return b.serve(ctx, limits, "--config", settings, "--region", name, "--name", daemon,
		"--cluster-secret-file", secret, "--peer-addr", "127.0.0.1:0", "--swim-addr", "127.0.0.1:0",
		"--strict-prefetch", "0", "--rights-dir", dir, "--rights-first-start", "--rights-daemons", daemon)
}

// distanceKept is longer than a daemon goes by an old measure of how far away a
// owner is.
const distanceKept = 600 * time.Millisecond

// awaitOwner waits until the owner of cutKey is the daemon of a region, lives,
// and is known to be so far away as it returns.
func (s *served) awaitOwner(ctx context.Context, region string) (trip time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		owner, ownerErr := s.ownerOf(ctx, cutKey, 0)
		trip, tripErr := s.tripTo(ctx, region+"-0")
		if err = errors.Join(ownerErr, tripErr); err == nil && owner == region+"-0" {
			return trip, sleep(ctx, distanceKept)
		}
		if late := sleep(ctx, 10*readyPoll); late != nil {
			return 0, s.failed(errors.Join(fmt.Errorf("no owner in region %s after %v", region, readyWait), err))
		}
	}
}
