package main

import (
	"context"
	"errors"
	"fmt"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The metrics of decisions about strict keys.
const (
	localDecisions  = `rld_strict_decisions_total{how="local"}`
	waitedDecisions = `rld_strict_decisions_total{how="waited"}`

	unreachableOwners = `rld_degraded_total{reason="owner_unreachable"}`
	openCircuits      = `rld_degraded_total{reason="circuit_breaker_open"}`
)

// The daemons that are asked for keys which are owned by other daemons.
const (
	// forwarder prefetches nothing, so that each call of a key waits for its
	// owner.
	forwarder = 0
	// prefetcher is as users have it.
	prefetcher = 1
)

const (
	forwardRate = 1_000 // calls a second of the open loop
	// leastForwarded is the share of calls that must have been forwarded for a
	// figure to be one of forwarding.
	leastForwarded = 0.98
)

// elsewhere is what calls took that were about keys owned by other daemons,
// beside calls about other keys to the same daemon.
type elsewhere struct {
	took  [][]*hdr.Histogram // of each round, of each side
	local float64            // share that was decided without asking
	err   error
}

// sides of elsewhere.took; the last two are of open loops at the forwarder
// only.
const (
	sideStrict = iota
	sideLocal
	sidePassed
	sideAnswered
)

// measureElsewhere compares a quantile of the open loop at a daemon that is not
// owner. All lines about it go by the same calls.
func measureElsewhere(quantile float64) measure {
	return func(ctx context.Context, b *bench) (outcome, error) {
		x := b.openLoop(ctx)
		if x.err != nil {
			return outcome{}, x.err
		}
		return x.compare(quantile), nil
	}
}

// measureKept measures how many of these calls needed not wait.
func measureKept(ctx context.Context, b *bench) (outcome, error) {
	x := b.openLoop(ctx)
	return outcome{Measured: x.local, Unit: percent}, x.err
}

func (b *bench) openLoop(ctx context.Context) *elsewhere {
	if b.elsewhere == nil {
		b.elsewhere = &elsewhere{}
		*b.elsewhere = b.askElsewhere(ctx, prefetcher, job{Kind: kindOpen, Rate: forwardRate}, nil)
	}
	return b.elsewhere
}

// measureForwardedAlone measures a forwarded call while nothing else happens.
func measureForwardedAlone(ctx context.Context, b *bench) (outcome, error) {
	x := b.askElsewhere(ctx, forwarder, job{Kind: kindClosed, Flight: 1}, nil)
	if x.err != nil {
		return outcome{}, x.err
	}
	return x.compare(50), nil
}

// measureAdded measures how much longer forwarded calls of an open loop take,
// and compares that with how much longer the way is between bare processes.
func measureAdded(ctx context.Context, b *bench) (outcome, error) {
	bare, err := startRelays(ctx, b.dir)
	if err != nil {
		return outcome{}, err
	}
	x := b.askElsewhere(ctx, forwarder, job{Kind: kindOpen, Rate: forwardRate}, bare)
	if err := errors.Join(x.err, bare.stop()); err != nil {
		return outcome{}, err
	}
	readings := make([][]float64, 2)
	for _, round := range x.took {
		at := func(side int) float64 { return float64(round[side].ValueAtQuantile(50)) }
		readings[0] = append(readings[0], at(sideStrict)-at(sideLocal))
		readings[1] = append(readings[1], at(sidePassed)-at(sideAnswered))
	}
	return compare(nanoseconds, median, readings, "by bare processes that pass 100 bytes on"), nil
}

func (x *elsewhere) compare(quantile float64) outcome {
	readings := make([][]float64, 2)
	for _, round := range x.took {
		for i := range readings {
			readings[i] = append(readings[i], float64(round[i].ValueAtQuantile(quantile)))
		}
	}
	return compare(nanoseconds, median, readings, "decided by the same daemon")
}

// askElsewhere does a job on a daemon of the region in turns: about strict keys
// that are at owner at the others, about keys that it decides itself, and with
// relays, if there are any.
func (b *bench) askElsewhere(ctx context.Context, at int, j job, bare *relays) (x elsewhere) {
	r, err := b.strict(ctx)
	if err != nil {
		x.err = err
		return x
	}
	j.Target = r.daemons[at].grpc
	j.Length = b.load / 2 / latencyTurns
	j.Warm = j.Length / 5
	jobs := []job{j, j}
	if jobs[sideStrict].Ask, x.err = r.known(ctx, at); x.err != nil {
		return x
	}
	if bare != nil {
		jobs = append(jobs, j, j)
		for i := range jobs[sidePassed:] {
			o := &jobs[sidePassed+i]
			o.Kind, o.Target, o.Pass = kindBare, bare.target, i == 0
		}
	}
	before, err := r.daemons[at].scrape(ctx)
	if err != nil {
		x.err = err
		return x
	}
	for range b.rounds(5) {
		took, sides := make([]*hdr.Histogram, len(jobs)), make([]side, len(jobs))
		for i := range jobs {
			took[i] = newHistogram()
			sides[i] = r.collect(jobs[i], took[i])
		}
		if _, x.err = alternate(ctx, latencyTurns, sides...); x.err != nil {
			return x
		}
		x.took = append(x.took, took)
	}
	if x.err = sleep(ctx, quiet); x.err == nil {
		x.local, x.err = b.sawStrict(ctx, r, at, before)
	}
	return x
}

// known asks a daemon once for each user whose key has its owner at another
// daemon, and for as many users of another key. The first call of a key also
// waits for its first watermark; these calls are not measured. It returns the
// users.
func (r *region) known(ctx context.Context, at int) (asked, error) {
	found, err := r.usersOf(ctx, strictKey, users, at, false)
	if err != nil {
		return asked{}, err
	}
	a := asked{Key: strictKey, Users: found}
	return a, errors.Join(r.fill(a, users, at), r.fill(asked{}, users, at))
}

// fill asks a daemon for each of n users once.
func (r *region) fill(a asked, n, at int) error {
	_, err := r.ask(job{Kind: kindStream, Target: r.daemons[at].grpc, Ask: a, Keys: n, Flight: flight, Frame: 1})
	return err
}

// collect returns a side that does a job and adds its latencies to h. Its
// reading is unused.
func (r *region) collect(j job, h *hdr.Histogram) side {
	return func() (float64, error) {
		res, err := r.ask(j)
		if err != nil {
			return 0, err
		}
		return 0, res.mergeInto(h)
	}
}

// sawStrict returns the share of a daemon's strict decisions since a sample
// that were made without asking. It fails where next to all should have been
// forwarded and were not, and where owners did not answer.
func (b *bench) sawStrict(ctx context.Context, r *region, at int, before sample) (share float64, err error) {
	after, err := r.daemons[at].scrape(ctx)
	if err != nil {
		return 0, err
	}
	local, err := grown(before, after, localDecisions)
	if err != nil {
		return 0, err
	}
	waited, err := grown(before, after, waitedDecisions)
	if err != nil {
		return 0, err
	}
	if waited == 0 || at == forwarder && waited < leastForwarded*(local+waited) {
		return 0, fmt.Errorf("%.0f of %.0f strict calls were forwarded, want %.0f %%: the figure would be one of batches",
			waited, local+waited, 100*leastForwarded)
	}
	return local / (local + waited), b.noneFailed(before, after, local+waited)
}

// noneFailed fails when more than a few in a thousand of so many calls were
// decided without their owners: figures would be of something else. A quick run
// must also do on a machine that is busy.
func (b *bench) noneFailed(before, after sample, calls float64) error {
	failed, err := grown(before, after, unreachableOwners, openCircuits)
	if err != nil {
		return err
	}
	if failed > 1+calls/200 && !b.quick {
		return fmt.Errorf("%.0f of %.0f strict calls were decided without their owners; circuits that are not closed: %v",
			failed, calls, after.openCircuits())
	}
	return nil
}

// addresses returns where the daemons answer gRPC.
func addresses(all []*served) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.grpc)
	}
	return out
}
