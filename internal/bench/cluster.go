package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/georld/rld/internal/bench/secured"
)

const (
	// clusterKeys is how many keys of the daemon that is measured live.
	clusterKeys = 500_000
	// settleTime is the pause before a cluster is measured, in which the
	// daemons exchange the counts that filled it.
	settleTime = 15 * time.Second
)

// measureCluster compares the calls a second that a daemon of a cluster of
// three regions of three answers, with those of the same daemon alone: the
// median of the ratios of the rounds. The other eight run in a process of
// their own, on the same processors, and decide a thousand calls a second
// between them. Each side is started anew each round, so that neither takes
// processor time of the other.
func measureCluster(ctx context.Context, b *bench) outcome {
	p := b.network()
	readings := alternate(ctx, b.rounds(3),
		func() float64 { return b.inCluster(ctx, p, "") },
		func() float64 { return b.alone(ctx, p) },
	)
	return compareRatios(readings, "the daemon alone")
}

// measureClusterTLS compares the same cluster with mutual TLS between its
// daemons to that with plain streams.
func measureClusterTLS(ctx context.Context, b *bench) outcome {
	p := b.network()
	certs := filepath.Join(b.dir, "certs")
	check(secured.IssuePeers(ctx, b.rld(ctx), certs, clusterNames()))
	readings := alternate(ctx, b.rounds(5),
		func() float64 { return b.inCluster(ctx, p, certs) },
		func() float64 { return b.inCluster(ctx, p, "") },
	)
	return compareRatios(readings, "plain streams")
}

// alone measures a daemon without a region.
func (b *bench) alone(ctx context.Context, p *peers) float64 {
	s := b.serve(ctx, b.file("bench.yaml", benchLimits()))
	defer finish(s.stop)
	return b.loaded(ctx, p, s)
}

// inCluster measures a daemon that is one of nine, with mutual TLS between them
// if there is a folder of their certificates.
func (b *bench) inCluster(ctx context.Context, p *peers, certs string) float64 {
	limits := b.file("bench.yaml", benchLimits())
	var settings []string
	if certs != "" {
		tls := secured.PeerTLS(certs, neighborRegions[0], measuredName)
		settings = []string{"--peer-tls-cert", tls.Cert, "--peer-tls-key", tls.Key, "--peer-tls-ca", tls.CA}
	}
	s := b.serveMember(ctx, limits, neighborRegions[0], measuredName, settings...)
	defer finish(s.stop)
	n := must(startRole(ctx, roleNeighbors, b.dir))
	defer finish(n.stop)
	task := neighborhood{Peer: s.peers, Swim: s.swim, Secret: b.secretFile(), Limits: limits, Certs: certs}
	check(json.NewEncoder(n.in).Encode(task))
	inTime := n.killAfter(readyWait)
	must(n.readLine())
	inTime()
	return b.loaded(ctx, p, s)
}

// loaded fills a daemon with keys, lets it settle, and measures it.
func (b *bench) loaded(ctx context.Context, p *peers, s *served) float64 {
	keys, settle := clusterKeys, settleTime
	if b.quick {
		keys, settle = 5_000, 100*time.Millisecond
	}
	p.servers[s.grpc] = s.child
	p.ask(job{Kind: kindStream, Target: s.grpc, Flight: streamFlight, Frame: 64, Keys: keys})
	check(sleep(ctx, settle))
	r := p.ask(job{Kind: kindClosed, Target: s.grpc, Flight: flight, Warm: b.paces.warm, Length: 3 * b.load})
	return r.rate()
}

// measureClusterCPU compares the processor time of a call in a cluster of
// three daemons of one region, which are called in turn, with that of a daemon
// alone: the median of the ratios of the turns. All that the three do counts:
// that two of them receive the counts of the third, too. Each round starts the
// daemons anew.
func measureClusterCPU(ctx context.Context, b *bench) outcome {
	p := b.network()
	readings := make([][]float64, 2)
	for range b.rounds(3) {
		for i, turns := range b.processorTimes(ctx, p) {
			readings[i] = append(readings[i], turns...)
		}
	}
	o := compareRatios(readings, "a daemon alone")
	o.BesideWhat += fmt.Sprintf(", half of them %.2f to %.2f", quarters(ratios(readings))...)
	o.Unit = nanoseconds
	return o
}

// quarters returns the values that a quarter of all, and three quarters, do not
// exceed.
func quarters(values []float64) []any {
	v := slices.Sorted(slices.Values(values))
	return []any{v[(len(v)-1)/4], v[(len(v)-1)*3/4]}
}

// processorTimes returns the processor time of a call to a cluster of three and
// to a daemon alone in each turn, in nanoseconds. All four run from before the
// first call to after the last one, and the turns of both sides alternate: what
// slows the processors down for longer than a turn slows both alike.
func (b *bench) processorTimes(ctx context.Context, p *peers) [][]float64 {
	alone := b.serve(ctx, b.file("bench.yaml", benchLimits()))
	defer finish(alone.stop)
	var stopping cleanup
	defer finish(stopping.stop)
	region := b.serveThree(ctx, &stopping)
	sides := []side{b.processorTime(ctx, p, region...), b.processorTime(ctx, p, alone)}
	alternate(ctx, daemonsOfRegion, sides...) // does not count: it warms them up
	return alternate(ctx, cpuTurns, sides...)
}

// serveThree starts three daemons of one region, which stop with a cleanup, and
// returns when each knows the others.
func (b *bench) serveThree(ctx context.Context, stopping *cleanup) (region []*served) {
	limits := b.file("bench.yaml", benchLimits())
	var seeds []string
	for i := range daemonsOfRegion {
		s := b.serveMember(ctx, limits, neighborRegions[0], daemonName(i), seeds...)
		stopping.add(s.stop)
		region, seeds = append(region, s), []string{"--swim-seeds", s.swim}
	}
	for _, s := range region {
		for s.membersReady(ctx) != daemonsOfRegion {
			check(sleep(ctx, 10*readyPoll))
		}
	}
	return region
}

// measureClusterOfThree compares the calls a second that a daemon of three of a
// region answers with those of the no-op, while the daemons are idle: the
// median of the ratios of the rounds. The other two receive its counts, on the
// same processors.
func measureClusterOfThree(ctx context.Context, b *bench) outcome {
	p := b.network()
	var stopping cleanup
	defer finish(stopping.stop)
	s := b.serveThree(ctx, &stopping)[0]
	p.servers[s.grpc] = s.child
	j := job{Kind: kindClosed, Target: s.grpc, Flight: flight, Length: b.load}
	other := j
	other.Target = p.noopAddr
	p.warm(b, j, other)
	readings := alternate(ctx, b.rounds(7),
		func() float64 {
			rate := p.rate(j)()
			check(sleep(ctx, restTime)) // in which the last counts are sent
			return rate
		},
		p.rate(other),
	)
	return compareRatios(readings, "no-op gRPC server")
}

const (
	// cpuTurns is how often each side is called.
	cpuTurns = 4 * daemonsOfRegion
	// restTime is the time after the last call of a turn in which daemons
	// exchange its counts: an interval.
	restTime = 100 * time.Millisecond
)

// processorTime returns a side that calls the next one of some daemons and
// reads the processor time of a call in all of them, in nanoseconds. It
// includes what they do for restTime afterwards.
func (b *bench) processorTime(ctx context.Context, p *peers, all ...*served) side {
	for _, s := range all {
		p.servers[s.grpc] = s.child
	}
	used := func() (sum time.Duration) {
		for _, s := range all {
			sum += must(processTime(s.cmd.Process.Pid))
		}
		return sum
	}
	turn := 0
	return func() float64 {
		before := used()
		r := p.ask(job{Kind: kindClosed, Target: all[turn%len(all)].grpc, Flight: flight, Length: b.load / 2})
		check(sleep(ctx, restTime))
		turn++
		return float64(used()-before) / float64(r.Checks)
	}
}
