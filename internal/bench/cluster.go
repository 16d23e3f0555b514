package main

import (
	"context"
	"encoding/json"
	"path/filepath"
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
// alone: the median of the ratios of the rounds. All that the three do counts:
// that two of them receive the counts of the third, too.
func measureClusterCPU(ctx context.Context, b *bench) outcome {
	p := b.network()
	readings := alternate(ctx, b.rounds(3),
		func() float64 { return b.processorTime(ctx, p, daemonsOfRegion) },
		func() float64 { return b.processorTime(ctx, p, 1) },
	)
	o := compareRatios(readings, "a daemon alone")
	o.Unit = nanoseconds
	return o
}

// processorTime returns the processor time of a call to n daemons, in
// nanoseconds.
func (b *bench) processorTime(ctx context.Context, p *peers, n int) float64 {
	limits := b.file("bench.yaml", benchLimits())
	var all []*served
	var seeds []string
	for i := range n {
		s := b.startOf(ctx, limits, n, i, seeds)
		defer finish(s.stop)
		all, seeds = append(all, s), []string{"--swim-seeds", s.swim}
		p.servers[s.grpc] = s.child
	}
	for _, s := range all {
		for n > 1 && s.membersReady(ctx) != n {
			check(sleep(ctx, 10*readyPoll))
		}
		p.ask(job{Kind: kindClosed, Target: s.grpc, Flight: flight, Length: b.load})
	}
	checks, before := int64(0), cpuSeconds(ctx, all)
	for range cpuTurns {
		for _, s := range all {
			r := p.ask(job{Kind: kindClosed, Target: s.grpc, Flight: flight, Length: b.load / cpuTurns})
			checks += r.Checks
		}
	}
	return (cpuSeconds(ctx, all) - before) * float64(time.Second) / float64(checks)
}

// cpuTurns is how often each daemon is called while it is measured.
const cpuTurns = 4

// startOf starts daemon i of a cluster of n, or one alone.
func (b *bench) startOf(ctx context.Context, limits string, n, i int, more []string) *served {
	if n == 1 {
		return b.serve(ctx, limits)
	}
	return b.serveMember(ctx, limits, neighborRegions[0], daemonName(i), more...)
}

// cpuSeconds returns the processor time that daemons have used.
func cpuSeconds(ctx context.Context, all []*served) (sum float64) {
	for _, m := range scrape(ctx, all...) {
		sum += m["process_cpu_seconds_total"]
	}
	return sum
}
