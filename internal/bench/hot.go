package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/internal/load"
)

// A hot key: so many checks a second of it, on streams, in frames.
const (
	hotUser  = 0
	hotRate  = 20_000
	hotFrame = 8
)

// batches is what came of one hot strict key at all three daemons.
type batches struct {
	// local is the share of hits that passed without asking the owner, of the
	// daemons that are not the owner; everywhere counts the owner, too.
	local, everywhere float64
	// under is, of each full window, the share of the limit that was left over.
	under []float64
}

// measureBatches measures how many hits of a hot key are decided where they
// come.
func measureBatches(_ context.Context, b *bench) outcome {
	x := b.hotKey()
	return compare(percent, mean, [][]float64{{x.everywhere}, {x.local}}, "but for its owner")
}

// measureUnderAdmission measures how much of its limit a hot key leaves over
// although more is asked for.
func measureUnderAdmission(_ context.Context, b *bench) outcome {
	x := b.hotKey()
	o := outcome{
		Measured: mean(x.under), Beside: slices.Max(x.under), BesideWhat: "the worst window", Unit: percent,
		Readings: [][]float64{x.under},
	}
	if o.Beside > 0 {
		o.Ratio = o.Measured / o.Beside
	}
	return o
}

// measureHotKey measures both.
func (b *bench) measureHotKey(ctx context.Context) *batches {
	r := b.strict(ctx)
	others, owner := r.others(ctx, batchKey, hotUser)
	all := append(slices.Clone(others), owner)
	j := b.hotJob(all, batchKey)
	j.Length = max(5*b.load, 3200*time.Millisecond) // a full window after another at least
	j.Window = time.Second
	// The first hits of a key wait for its first watermark, all at once.
	warm := j
	warm.Rate, warm.Length = hotRate/10, b.paces.warm
	r.ask(warm)
	before := scrape(ctx, all...)
	res := r.ask(j)
	check(sleep(ctx, quiet))
	after := scrape(ctx, all...)
	// The denials of an open circuit breaker do not measure leases.
	if refused := grown(before, after, openCircuits); refused > 0 && !b.quick {
		check(fmt.Errorf("%.0f hits were refused as the circuit breaker to the owner was open: it answered too late, too often",
			refused))
	}
	// The first window may begin with answers that belong to the partial window
	// before it, in which the limit was not used up.
	under := must(underAdmitted(res.Windows[min(1, len(res.Windows)):], batchLimit))
	n := len(others)
	return &batches{localShare(before[:n], after[:n]), localShare(before, after), under}
}

// hotJob returns a job that checks a hot key at some daemons.
func (b *bench) hotJob(at []*served, key string) job {
	return job{
		Kind: kindStream, Target: at[0].grpc, More: addresses(at[1:]), Ask: asked{key, []int{hotUser}},
		Flight: streamFlight, Rate: hotRate, Frame: hotFrame, Length: b.load, Window: time.Hour,
	}
}

// localShare returns which share of hits that owners let pass was decided
// without asking them.
func localShare(before, after []sample) float64 {
	all := grown(before, after, localDecisions, waitedDecisions)
	if all == 0 {
		check(errors.New("no strict decision was made"))
	}
	return grown(before, after, localDecisions) / all
}

// underAdmitted returns which share of a limit each window left over. In each
// of them more must have been asked for, and not a hit more admitted.
func underAdmitted(windows []load.Tally, limit int64) ([]float64, error) {
	if len(windows) == 0 {
		return nil, errors.New("not a full window was measured")
	}
	var out []float64
	for i, w := range windows {
		if w.Allowed > limit {
			return nil, fmt.Errorf("window %d of %d: %d hits passed, the limit is %d", i, len(windows), w.Allowed, limit)
		}
		if w.Allowed+w.Refused <= limit {
			return nil, fmt.Errorf(
				"window %d of %d: %d answers, which a limit of %d does not have to refuse: the machine is too busy", i, len(windows), w.Allowed+w.Refused, limit)
		}
		out = append(out, 1-float64(w.Allowed)/float64(limit))
	}
	return out, nil
}

// The metrics of lease requests that daemons sent, and of denials that they
// answered from their cache.
const (
	sentAsks      = "rld_strict_lease_requests_total"
	cachedDenials = "rld_strict_denials_cached_total"
)

// leastCached is the share of checks that must be refused without asking, for a
// key to be one that is denied.
const leastCached = 0.9

// measureDenied measures how often the owner of a hot key is asked that the
// other daemons refuse all the time: the worst of one that has nothing left for
// long, and one that has a few hits each second.
func measureDenied(ctx context.Context, b *bench) outcome {
	r := b.strict(ctx)
	readings := make([][]float64, 2)
	for _, key := range []string{deniedKey, throttledKey} {
		others, _ := r.others(ctx, key, hotUser)
		j := b.hotJob(others, key)
		first := j
		first.Length /= 4
		r.ask(first) // uses the limit up
		for range b.rounds(2) {
			asks, checks := r.deniedRound(ctx, others, j)
			readings[0], readings[1] = append(readings[0], asks), append(readings[1], checks)
		}
	}
	return compare(perSecond, most, readings, "checks of it")
}

// deniedRound returns the asks a second, and the checks a second.
func (r *region) deniedRound(ctx context.Context, others []*served, j job) (asks, checks float64) {
	before := scrape(ctx, others...)
	res := r.ask(j)
	after := scrape(ctx, others...)
	cached := grown(before, after, cachedDenials)
	if all := float64(res.Checks); cached < leastCached*all {
		check(fmt.Errorf("%.0f of %.0f checks of %s were refused without asking: it was not denied",
			cached, all, j.Ask.Key))
	}
	return grown(before, after, sentAsks) / res.Elapsed.Seconds(), res.rate()
}
