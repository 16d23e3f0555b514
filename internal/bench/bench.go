package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// bench is one run: its options and what lines have in common. Its cleanup
// stops the processes and removes the scratch folder.
type bench struct {
	options
	cleanup
	progress io.Writer
	dir      string // scratch
	rldPath  string // built when the first line needs it

	// Each starts or measures its result for the first line that needs it and
	// returns it, or ends the measurement with the same error, from then on.
	growth   func() *grownSides
	network  func() *peers
	region   func() *region // see strict
	openLoop func() *elsewhere
	hotKey   func() *batches
	cuts     func() *cuts
}

// measure takes the figures of one line. It fails by check.
type measure func(ctx context.Context, b *bench) outcome

// line is something that rld promises.
type line struct {
	Name, What string
	bound      bound
	measure    measure
}

// promise returns the line of that name.
func promise(name, what string, b bound, m measure) line {
	return line{Name: name, What: what, bound: b, measure: m}
}

// lines lists the measurements, in the order of the table.
func lines() []line {
	return []line{
		promise("take-1k", "a decision in process, 1,000 live keys",
			bound{measured, atMost, 200, nanoseconds}, measureTake(1_000)),
		promise("take-1m", "a decision in process, 1,000,000 live keys",
			bound{measured, atMost, 450, nanoseconds}, measureTake(1_000_000)),
		promise("take-cores", "two cores, 1,000,000 live keys",
			bound{ratio, atLeast, 1.35, times}, measureCores),
		promise("take-alloc", "allocations in 1,000,000 decisions on live keys",
			bound{measured, atMost, 0, allocations}, measureAllocs),
		promise("take-rights", "a decision by rights and estimate, 1,000 keys near their limits",
			bound{ratio, atMost, 2, times}, measureRights),
		promise("memory", "heap a live fixed_window key, worst of 0.8, 1.0 and 1.2 million",
			bound{measured, atMost, 128, memory}, measureMemory),
		promise("memory-10m", "memory a key in process, grown to 10,000,000 live keys",
			bound{measured, atMost, 80, memory}, measureGrownMemory),
		promise("hold", "longest call with a new key meanwhile, CPU time",
			bound{measured, atMost, float64(5 * time.Millisecond), nanoseconds}, measureLongestHold),
		promise("unary-64", "RLS unary, 64 calls in flight",
			bound{ratio, atLeast, 0.97, times}, measureUnary),
		promise("unary-tls", "RLS unary over TLS on connections that stay open, 64 calls in flight",
			bound{ratio, atLeast, 0.85, times}, measureTLS),
		promise("unary-token", "RLS unary with a token, 64 calls in flight",
			bound{ratio, atLeast, 0.85, times}, measureToken),
		promise("unary-1", "RLS unary, one call in flight, p99",
			bound{measured, below, float64(time.Millisecond), nanoseconds}, measureOneInFlight),
		promise("unary-open", "RLS unary, open loop 2,000/s, p99",
			bound{ratio, atMost, 1.25, times}, measureOpenLoop),
		promise("stream-1", "CheckStream, one check a message",
			bound{ratio, atLeast, 3.5, times}, measureStream(1)),
		promise("stream-8", "CheckStream, eight checks a frame",
			bound{ratio, atLeast, 10, times}, measureStream(8)),
		promise("cluster", "RLS unary of one of nine daemons with 500,000 keys, 64 in flight",
			bound{ratio, atLeast, 0.80, times}, measureCluster),
		promise("cluster-tls", "the same, with mutual TLS between the daemons",
			bound{ratio, atLeast, 0.95, times}, measureClusterTLS),
		promise("cluster-cpu", "processor time of RLS unary, cluster of three",
			bound{ratio, atMost, 1.1, times}, measureClusterCPU),
		promise("cluster-3", "RLS unary of one of three daemons of a region, 64 in flight",
			bound{ratio, atLeast, 0.93, times}, measureClusterOfThree),
		promise("forward-auth", "requests through nginx that asks rld about each, 64 in flight",
			bound{ratio, atLeast, 0.85, times}, measureForwardAuth),
		promise("strict-open", "strict keys at a daemon that owns none of them, open loop 1,000/s, p50",
			bound{ratio, atMost, 1.4, times}, measureElsewhere(50)),
		promise("strict-open-99", "the same, p99",
			bound{ratio, atMost, 1.5, times}, measureElsewhere(99)),
		promise("strict-kept", "the same, decided without asking their owners",
			bound{measured, atLeast, 0.60, percent}, measureKept),
		promise("strict-one", "each call forwarded, one in flight, p50",
			bound{ratio, atMost, 2.4, times}, measureForwardedAlone),
		promise("strict-added", "what forwarding adds at an open loop of 1,000/s, p50",
			bound{ratio, atMost, 3, times}, measureAdded),
		promise("strict-batch", "one hot strict key, 20,000/s, decided without asking its owner",
			bound{measured, atLeast, 0.80, percent}, measureBatches),
		promise("strict-under", "the same, of the limit left over in full windows",
			bound{measured, atMost, 0.02, percent}, measureUnderAdmission),
		promise("strict-denied", "lease requests for a denied hot key, 20,000/s at daemons that do not own it",
			bound{measured, atMost, 100, perSecond}, measureDenied),
		promise("strict-durable", "strict decisions of an owner, watermarks on disk, headroom 20",
			bound{measured, atLeast, 5_000, perSecond}, measureDurable),
		promise("strict-cut", "slowest answer from the cut of the home region on",
			bound{ratio, atMost, 1.1, times}, measureCut),
		promise("strict-circuit", "without the home region, circuit breaker open, one call in flight, p99",
			bound{measured, below, float64(time.Millisecond), nanoseconds}, measureOpenCircuit),
		promise("start", "start to ready with 1,000 rules",
			bound{measured, below, float64(time.Second), nanoseconds}, measureStart),
		promise("xds-load", "10,000 rules of an xDS server, from its snapshot until the last one denies",
			bound{measured, atMost, float64(2 * time.Second), nanoseconds}, measureXDSLoad),
		promise("xds-change", "one of 10,000 rules lowered by an xDS server, until all of a cluster of three deny",
			bound{measured, atMost, float64(time.Second), nanoseconds}, measureXDSChange),
		promise("rss", "resident memory, idle with 1,000 rules",
			bound{measured, below, 50e6, memory}, measureRSS),
	}
}

// newBench returns a run that starts its processes under ctx.
func newBench(ctx context.Context, o options, progress io.Writer) (*bench, error) {
	dir, err := os.MkdirTemp("", "rld-bench-")
	if err != nil {
		return nil, fmt.Errorf("scratch folder: %w", err)
	}
	b := &bench{options: o, progress: progress, dir: dir, rldPath: o.binary}
	b.cleanup.add(func() error { return os.RemoveAll(dir) })
	b.growth = sync.OnceValue(func() *grownSides { return b.measureGrowth(ctx) })
	b.network = sync.OnceValue(func() *peers { return b.startPeers(ctx) })
	b.region = sync.OnceValue(func() *region { return b.startRegion(ctx) })
	b.openLoop = sync.OnceValue(func() *elsewhere { return b.measureOpenStrict(ctx) })
	b.hotKey = sync.OnceValue(func() *batches { return b.measureHotKey(ctx) })
	b.cuts = sync.OnceValue(func() *cuts { return b.measureCuts(ctx) })
	return b, nil
}

// rounds is how many rounds a line takes that wants n.
func (b *bench) rounds(n int) int {
	if b.options.rounds > 0 {
		return b.options.rounds
	}
	return n
}

// measure measures the chosen lines one after the other until ctx ends. A
// line that fails does not stop the others.
func (b *bench) measure(ctx context.Context) []row {
	var rows []row
	for _, l := range lines() {
		if !b.only.MatchString(l.Name) {
			continue
		}
		fmt.Fprintf(b.progress, "%s: %s\n", l.Name, l.What)
		var o outcome
		err := catch(func() { o = l.measure(ctx, b) })
		rows = append(rows, newRow(&l, o, err))
		if ctx.Err() != nil {
			break
		}
	}
	return rows
}
