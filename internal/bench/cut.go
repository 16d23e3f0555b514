package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/load"
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
	first []float64          // the slowest answer from the cut on
	wait  []float64          // how long a call waits for the owner
	open  [][]*hdr.Histogram // once the circuit breaker is open: strict calls and others
}

// measureCut compares the slowest answer after a home region was cut off with
// how long a call waits for its owner.
func measureCut(_ context.Context, b *bench) outcome {
	x := b.cuts()
	return compare(nanoseconds, load.Median, [][]float64{x.first, x.wait}, "round trip + strict.forward_margin")
}

// measureOpenCircuit measures calls that are not forwarded any more.
func measureOpenCircuit(_ context.Context, b *bench) outcome {
	return compare(nanoseconds, least, quantiles(b.cuts().open, 99), "decided by the same daemon")
}

// measureCuts measures both.
func (b *bench) measureCuts(ctx context.Context) *cuts {
	x := &cuts{}
	for range b.rounds(3) {
		x.round(ctx, b)
	}
	return x
}

// round cuts two new daemons apart.
func (x *cuts) round(ctx context.Context, b *bench) {
	r := &region{}
	defer finish(r.stop)
	near, far := b.startApart(ctx, r)
	x.wait = append(x.wait, float64(near.awaitOwner(ctx, farRegion)+config.Default().Strict.ForwardMargin))
	ask := asked{cutKey, numbered(users)}
	r.fill(ask, healthyCalls, 0)
	before := scrape(ctx, near)
	if waited := before[0][waitedDecisions]; waited < healthyCalls {
		check(fmt.Errorf("%.0f of %d calls were forwarded before the cut", waited, healthyCalls))
	}
	check(far.cmd.Process.Signal(syscall.SIGSTOP))
	// A process that is stopped does not end when it is asked to.
	defer finish(func() error { return far.cmd.Process.Signal(syscall.SIGCONT) })
	res, h := r.ask(job{Kind: kindOpen, Ask: ask, Rate: forwardRate, Length: cutFor}), load.NewHistogram()
	res.mergeInto(h)
	x.first = append(x.first, float64(h.Max()))
	x.circuitOpen(ctx, b, r, ask, before)
}

// circuitOpen measures calls when the circuit breaker has opened, since a
// sample before the cut.
func (x *cuts) circuitOpen(ctx context.Context, b *bench, r *region, ask asked, before []sample) {
	near := r.daemons[0]
	was := scrape(ctx, near)
	const state = `rld_circuit_breaker_state{owner="far-0",region="far"}`
	if failed := grown(before, was, unreachableOwners); was[0][state] != 2 || failed == 0 {
		check(near.failed(fmt.Errorf("%.0f calls failed within %v of the cut, and the circuit is in state %v, want 2: open",
			failed, cutFor, was[0][state])))
	}
	strict := job{Kind: kindClosed, Ask: ask, Flight: 1, Length: b.load / latencyTurns}
	strict.Warm = strict.Length / 10
	local := strict
	local.Ask = asked{}
	took := r.latencies(ctx, 1, strict, local)[0]
	failed := grown(was, scrape(ctx, near), unreachableOwners, openCircuits)
	if calls := took[0].TotalCount(); failed < float64(calls) {
		check(fmt.Errorf("%.0f of %d calls were decided without their owners, want all: it was cut off", failed, calls))
	}
	x.open = append(x.open, took)
}

// startApart starts a daemon in each of two regions. Jobs go to the near one.
func (b *bench) startApart(ctx context.Context, r *region) (near, far *served) {
	limits, disk := b.file("cut.yaml", cutLimits()), r.disk()
	// The far daemon is called by the near one.
	far = b.startIn(ctx, r, farRegion, limits, disk, "{}")
	near = b.startIn(ctx, r, nearRegion, limits, disk, fmt.Sprintf("{peers: [%q]}", far.peers))
	r.daemons, r.target = []*served{near, far}, near.grpc
	b.begin(ctx, near)
	r.startClient(ctx, b.dir)
	return near, far
}

// startIn starts the only daemon of a region. farPeers is the entry of the far
// region in its settings.
func (b *bench) startIn(ctx context.Context, r *region, name, limits, disk, farPeers string) *served {
	settings := b.file(name+"-settings.yaml", fmt.Sprintf("regions:\n  %s: %s\n  %s: {}\n", farRegion, farPeers, nearRegion))
	daemon := name + "-0"
	// It prefetches nothing, which would decide the first calls after a cut.
	return b.serveStrict(ctx, r, limits, name, daemon, disk,
		"--config", settings, "--strict-prefetch", "0", "--strict-replicas", daemon, "--cluster-founders", nearRegion+"-0")
}

// distanceKept is longer than a daemon goes by an old measure of how far away a
// owner is.
const distanceKept = 600 * time.Millisecond

// awaitOwner waits until the owner of cutKey is the daemon of a region, lives,
// and is known to be so far away as it returns.
func (s *served) awaitOwner(ctx context.Context, region string) (trip time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for {
		err := catch(func() {
			trip = s.tripTo(ctx, region+"-0")
			if owner := s.ownerOf(ctx, cutKey, 0); owner != region+"-0" {
				check(fmt.Errorf("the owner is %s", owner))
			}
		})
		if err == nil {
			check(sleep(ctx, distanceKept))
			return trip
		}
		if late := sleep(ctx, 10*readyPoll); late != nil {
			check(s.failed(errors.Join(fmt.Errorf("no owner in region %s after %v", region, readyWait), err)))
		}
	}
}
