package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A hot key: so many checks a second of it, on streams, in frames.
const (
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
	err   error
}

// measureBatches measures how many hits of a hot key are decided where they
// come.
func measureBatches(ctx context.Context, b *bench) (outcome, error) {
	x := b.hotKey(ctx)
	return outcome{
		Measured: x.everywhere, Beside: x.local, BesideWhat: "but for its owner", Unit: percent, Ratio: x.everywhere / x.local,
	}, x.err
}

// measureUnderAdmission measures how much of its limit a hot key leaves over
// although more is asked for.
func measureUnderAdmission(ctx context.Context, b *bench) (outcome, error) {
	x := b.hotKey(ctx)
	if x.err != nil {
		return outcome{}, x.err
	}
	o := outcome{
		Measured: mean(x.under), Beside: slices.Max(x.under), BesideWhat: "the worst window", Unit: percent,
		Readings: [][]float64{x.under},
	}
	if o.Beside > 0 {
		o.Ratio = o.Measured / o.Beside
	}
	return o, nil
}

// hotKey measures both, once.
func (b *bench) hotKey(ctx context.Context) *batches {
	if b.batches == nil {
		b.batches = &batches{}
		b.batches.err = b.batches.measure(ctx, b)
	}
	return b.batches
}

func (x *batches) measure(ctx context.Context, b *bench) error {
	r, err := b.strict(ctx)
	if err != nil {
		return err
	}
	const user = 0
	others, owner, err := r.others(ctx, batchKey, user)
	if err != nil {
		return err
	}
	all := append(slices.Clone(others), owner)
	length := max(5*b.load, 3200*time.Millisecond) // a full window after another at least
	j := job{
		Kind: kindStream, Target: all[0].grpc, More: addresses(all[1:]), Ask: asked{batchKey, []int{user}},
		Flight: streamFlight, Rate: hotRate, Frame: hotFrame, Length: length, Window: time.Second,
	}
	// The first hits of a key wait for its first watermark, all at once.
	warm := j
	warm.Rate, warm.Length = hotRate/10, b.warm
	if _, err := r.ask(warm); err != nil {
		return err
	}
	before, err := scrape(ctx, all)
	if err != nil {
		return err
	}
	res, err := r.ask(j)
	if err != nil {
		return err
	}
	if err := sleep(ctx, quiet); err != nil {
		return err
	}
	after, err := scrape(ctx, all)
	if err != nil {
		return err
	}
	if err := circuitsClosed(before, after); err != nil && !b.quick {
		return err
	}
	if x.local, err = localShare(before[:len(others)], after[:len(others)]); err != nil {
		return err
	}
	if x.everywhere, err = localShare(before, after); err != nil {
		return err
	}
	// The first window may begin with answers that belong to the partial window
	// before it, in which the limit was not used up.
	x.under, err = underAdmitted(res.Windows[min(1, len(res.Windows)):], batchLimit)
	return err
}

// circuitsClosed fails when a daemon's circuit breaker for the owner opened:
// the denials that follow do not measure leases.
func circuitsClosed(before, after []sample) error {
	refused, err := grownAll(before, after, openCircuits)
	if err == nil && refused > 0 {
		err = fmt.Errorf("%.0f hits were refused as the circuit breaker to the owner was open: it answered too late, too often",
			refused)
	}
	return err
}

// localShare returns which share of hits that owners let pass was decided
// without asking them.
func localShare(before, after []sample) (float64, error) {
	local, err := grownAll(before, after, localDecisions)
	if err != nil {
		return 0, err
	}
	all, err := grownAll(before, after, localDecisions, waitedDecisions)
	if err != nil {
		return 0, err
	}
	if all == 0 {
		return 0, errors.New("no strict decision was made")
	}
	return local / all, nil
}

// underAdmitted returns which share of a limit each window left over. In each
// of them more must have been asked for, and not a hit more admitted.
func underAdmitted(windows []tally, limit int64) ([]float64, error) {
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
func measureDenied(ctx context.Context, b *bench) (outcome, error) {
	r, err := b.strict(ctx)
	if err != nil {
		return outcome{}, err
	}
	readings := make([][]float64, 2)
	for _, key := range []string{deniedKey, throttledKey} {
		const user = 0
		others, _, err := r.others(ctx, key, user)
		if err != nil {
			return outcome{}, err
		}
		j := job{
			Kind: kindStream, Target: others[0].grpc, More: addresses(others[1:]), Ask: asked{key, []int{user}},
			Flight: streamFlight, Rate: hotRate, Frame: hotFrame, Length: b.load / 4, Window: time.Hour,
		}
		if _, err := r.ask(j); err != nil { // uses the limit up
			return outcome{}, err
		}
		j.Length = b.load
		for range b.rounds(2) {
			asks, checks, err := r.deniedRound(ctx, others, j)
			if err != nil {
				return outcome{}, err
			}
			readings[0], readings[1] = append(readings[0], asks), append(readings[1], checks)
		}
	}
	return compare(perSecond, most, readings, "checks of it"), nil
}

// deniedRound returns the asks a second, and the checks a second.
func (r *region) deniedRound(ctx context.Context, others []*served, j job) (asks, checks float64, err error) {
	before, err := scrape(ctx, others)
	if err != nil {
		return 0, 0, err
	}
	res, err := r.ask(j)
	if err != nil {
		return 0, 0, err
	}
	after, err := scrape(ctx, others)
	if err != nil {
		return 0, 0, err
	}
	cached, err := grownAll(before, after, cachedDenials)
	if err != nil {
		return 0, 0, err
	}
	if all := float64(res.Checks); cached < leastCached*all {
		return 0, 0, fmt.Errorf("%.0f of %.0f checks of %s were refused without asking: it was not denied",
			cached, all, j.Ask.Key)
	}
	n, err := grownAll(before, after, sentAsks)
	return n / res.Elapsed.Seconds(), res.rate(), err
}
