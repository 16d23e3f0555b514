package main

import (
	"context"
	"fmt"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The metrics of decisions about strict keys.
const (
	localDecisions  = `rld_strict_decisions_total{how="local"}`
	waitedDecisions = `rld_strict_decisions_total{how="waited"}`

	unreachableHomes = `rld_degraded_total{reason="home_unreachable"}`
	openCircuits     = `rld_degraded_total{reason="circuit_open"}`
)

const (
	forwardRate = 1_000 // calls a second of the open loop
	// leastForwarded is the share of calls that must have been forwarded for a
	// figure to be one of forwarding.
	leastForwarded = 0.98
)

// forwards is what an open loop of forwarded calls took, beside calls about
// other keys to the same daemon.
type forwards struct {
	took [][2]*hdr.Histogram // a round each
	err  error
}

// measureForwards compares a quantile of the open loop. Both lines about it go
// by the same calls.
func measureForwards(quantile float64) measure {
	return func(ctx context.Context, b *bench) (outcome, error) {
		if b.forwards == nil {
			took, err := b.forwarded(ctx, b.rounds(5), job{Kind: kindOpen, Rate: forwardRate})
			b.forwards = &forwards{took, err}
		}
		if b.forwards.err != nil {
			return outcome{}, b.forwards.err
		}
		return compareForwards(b.forwards.took, quantile), nil
	}
}

// measureForwardedAlone measures a forwarded call while nothing else happens.
func measureForwardedAlone(ctx context.Context, b *bench) (outcome, error) {
	took, err := b.forwarded(ctx, b.rounds(5), job{Kind: kindClosed, Flight: 1})
	if err != nil {
		return outcome{}, err
	}
	return compareForwards(took, 50), nil
}

func compareForwards(took [][2]*hdr.Histogram, quantile float64) outcome {
	readings := make([][]float64, 2)
	for _, round := range took {
		for i, h := range round {
			readings[i] = append(readings[i], float64(h.ValueAtQuantile(quantile)))
		}
	}
	return compare(nanoseconds, median, readings, "decided by the same daemon")
}

// forwarded does a job on the first daemon of the region in turns: about strict
// keys that are at home at the others, and about keys that it decides itself.
func (b *bench) forwarded(ctx context.Context, rounds int, j job) ([][2]*hdr.Histogram, error) {
	r, err := b.strict(ctx)
	if err != nil {
		return nil, err
	}
	j.Length = b.load / 2 / latencyTurns
	j.Warm = j.Length / 5
	strict, local := j, j
	found, err := r.usersOf(ctx, strictKey, users, false)
	if err != nil {
		return nil, err
	}
	strict.Ask = asked{Key: strictKey, Users: found}
	// The first call of a key also waits for its first mark: none of these counts.
	if err := r.fill(strict.Ask, len(strict.Ask.Users)); err != nil {
		return nil, err
	}
	if err := r.fill(local.Ask, users); err != nil {
		return nil, err
	}
	before, err := scrape(ctx, r.daemons[:1])
	if err != nil {
		return nil, err
	}
	var all [][2]*hdr.Histogram
	for range rounds {
		took := [2]*hdr.Histogram{newHistogram(), newHistogram()}
		_, err := alternate(ctx, latencyTurns, r.collect(strict, took[0]), r.collect(local, took[1]))
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	if err := sleep(ctx, quiet); err != nil {
		return nil, err
	}
	return all, b.sawForwards(ctx, r, before)
}

// fill asks the first daemon for each of n users once.
func (r *region) fill(a asked, n int) error {
	_, err := r.ask(job{Kind: kindStream, Ask: a, Keys: n, Flight: flight, Frame: 1})
	return err
}

// collect returns a side that does a job and adds its latencies to h; its
// reading says nothing.
func (r *region) collect(j job, h *hdr.Histogram) side {
	return func() (float64, error) {
		res, err := r.ask(j)
		if err != nil {
			return 0, err
		}
		return 0, res.mergeInto(h)
	}
}

// sawForwards fails unless next to all strict decisions of the first daemon
// since a sample were forwarded, and answered.
func (b *bench) sawForwards(ctx context.Context, r *region, before []sample) error {
	after, err := scrape(ctx, r.daemons[:1])
	if err != nil {
		return err
	}
	local, err := grown(before[0], after[0], localDecisions)
	if err != nil {
		return err
	}
	waited, err := grown(before[0], after[0], waitedDecisions)
	if err != nil {
		return err
	}
	if waited == 0 || waited < leastForwarded*(local+waited) {
		return fmt.Errorf("%.0f of %.0f strict calls were forwarded, want %.0f %%: the figure would be one of batches",
			waited, local+waited, 100*leastForwarded)
	}
	return b.noneFailed(before[0], after[0], waited)
}

// noneFailed fails when more than a few in a thousand of so many calls were
// decided without their homes: figures would be of something else. A quick run
// must also do on a machine that is busy.
func (b *bench) noneFailed(before, after sample, calls float64) error {
	failed, err := grown(before, after, unreachableHomes, openCircuits)
	if err != nil {
		return err
	}
	if failed > 1+calls/200 && !b.quick {
		return fmt.Errorf("%.0f of %.0f strict calls were decided without their homes; circuits that are not closed: %v",
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
