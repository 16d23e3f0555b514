package main

import (
	"context"
	"fmt"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/georld/rld/internal/load"
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
	return func(ctx context.Context, b *bench) outcome { return b.openLoop().compare(quantile) }
}

// measureKept measures how many of these calls needed not wait.
func measureKept(ctx context.Context, b *bench) outcome {
	return outcome{Measured: b.openLoop().local, Unit: percent}
}

func (b *bench) measureOpenStrict(ctx context.Context) *elsewhere {
	return b.askElsewhere(ctx, prefetcher, job{Kind: kindOpen, Rate: forwardRate}, "")
}

// measureForwardedAlone measures a forwarded call while nothing else happens.
func measureForwardedAlone(ctx context.Context, b *bench) outcome {
	return b.askElsewhere(ctx, forwarder, job{Kind: kindClosed, Flight: 1}, "").compare(50)
}

// measureAdded measures how much longer forwarded calls of an open loop take,
// and compares that with how much longer the way is between bare processes.
func measureAdded(ctx context.Context, b *bench) outcome {
	relays := &cleanup{}
	defer finish(relays.stop)
	x := b.askElsewhere(ctx, forwarder, job{Kind: kindOpen, Rate: forwardRate}, startRelays(ctx, b.dir, relays))
	took, readings := quantiles(x.took, 50), make([][]float64, 2)
	for i := range x.took {
		readings[0] = append(readings[0], took[sideStrict][i]-took[sideLocal][i])
		readings[1] = append(readings[1], took[sidePassed][i]-took[sideAnswered][i])
	}
	return compare(nanoseconds, load.Median, readings, "by bare processes that pass 100 bytes on")
}

func (x *elsewhere) compare(quantile float64) outcome {
	return compare(nanoseconds, load.Median, quantiles(x.took, quantile)[:2], "decided by the same daemon")
}

// askElsewhere does a job on a daemon of the region in turns: about strict keys
// that other daemons own, about keys that it decides itself, and with
// a relay, unless its address is empty.
func (b *bench) askElsewhere(ctx context.Context, at int, j job, relay string) *elsewhere {
	r := b.strict(ctx)
	j.Target = r.daemons[at].grpc
	j.Length = b.load / 2 / latencyTurns
	j.Warm = j.Length / 5
	jobs := []job{j, j}
	jobs[sideStrict].Ask = r.known(ctx, at)
	if relay != "" {
		j.Kind, j.Target = kindBare, relay
		jobs = append(jobs, j, j)
		jobs[sidePassed].Pass = true
	}
	before := scrape(ctx, r.daemons[at])
	took := r.latencies(ctx, b.rounds(5), jobs...)
	check(sleep(ctx, quiet))
	return &elsewhere{took, b.sawStrict(before, scrape(ctx, r.daemons[at]), at)}
}

// known asks a daemon once for each user whose key has its owner at another
// daemon, and for as many users of another key. The first call of a key also
// waits for its first watermark; these calls are not measured. It returns the
// users.
func (r *region) known(ctx context.Context, at int) asked {
	a := asked{Key: strictKey, Users: r.usersOf(ctx, strictKey, users, at, false)}
	r.fill(a, users, at)
	r.fill(asked{}, users, at)
	return a
}

// fill asks a daemon for each of n users once.
func (r *region) fill(a asked, n, at int) {
	r.ask(job{Kind: kindStream, Target: r.daemons[at].grpc, Ask: a, Keys: n, Flight: flight, Frame: 1})
}

// sawStrict returns the share of a daemon's strict decisions between two
// samples that were made without asking. It fails where next to all should have
// been forwarded and were not, and where owners did not answer.
func (b *bench) sawStrict(before, after []sample, at int) (share float64) {
	local, waited := grown(before, after, localDecisions), grown(before, after, waitedDecisions)
	if waited == 0 || at == forwarder && waited < leastForwarded*(local+waited) {
		check(fmt.Errorf("%.0f of %.0f strict calls were forwarded, want %.0f %%: the figure would be one of batches",
			waited, local+waited, 100*leastForwarded))
	}
	b.noneFailed(before, after, local+waited)
	return local / (local + waited)
}

// noneFailed fails when more than a few in a thousand of so many calls were
// decided without their owners: figures would be of something else. A quick run
// must also do on a machine that is busy.
func (b *bench) noneFailed(before, after []sample, calls float64) {
	if failed := grown(before, after, unreachableOwners, openCircuits); failed > 1+calls/200 && !b.quick {
		check(fmt.Errorf("%.0f of %.0f strict calls were decided without their owners; circuits that are not closed: %v",
			failed, calls, after[0].openCircuits()))
	}
}

// addresses returns where the daemons answer gRPC.
func addresses(all []*served) []string {
	var out []string
	for _, s := range all {
		out = append(out, s.grpc)
	}
	return out
}
