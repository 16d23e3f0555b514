package main

import (
	"context"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Load over the network.
const (
	flight       = 64    // calls in flight
	openRate     = 2_000 // calls a second
	streamFlight = 1_024 // checks in flight on all streams together
)

// A round is cut into turns: of rates into many, of latencies into longer
// ones, which begin with calls that do not count, since a server that waited
// for its turn is cold.
const (
	rateTurns    = 20
	latencyTurns = 10
)

// measureUnary compares the calls a second at 64 in flight with those of the
// no-op: the median of the ratios of the rounds.
func measureUnary(ctx context.Context, b *bench) (outcome, error) {
	mine, other, err := b.beside(ctx, job{Kind: kindClosed, Flight: flight, Length: b.load / rateTurns})
	if err != nil {
		return outcome{}, err
	}
	readings, err := interleave(ctx, b.rounds(7), rateTurns, b.peers.rate(mine), b.peers.rate(other))
	if err != nil {
		return outcome{}, err
	}
	o := compare(perSecond, median, readings, "no-op gRPC server; median of ratios")
	o.Ratio = median(ratios(readings[0], readings[1]))
	return o, nil
}

// measureOneInFlight measures a call while nothing else happens.
func measureOneInFlight(ctx context.Context, b *bench) (outcome, error) {
	readings, err := b.p99s(ctx, b.rounds(5), job{Kind: kindClosed, Flight: 1})
	if err != nil {
		return outcome{}, err
	}
	return compare(nanoseconds, least, readings, "no-op gRPC server"), nil
}

// measureOpenLoop measures calls at planned instants. Medians are compared:
// what disturbs the machine now and then makes single rounds many times as
// slow.
func measureOpenLoop(ctx context.Context, b *bench) (outcome, error) {
	readings, err := b.p99s(ctx, b.rounds(11), job{Kind: kindOpen, Rate: openRate})
	if err != nil {
		return outcome{}, err
	}
	return compare(nanoseconds, median, readings, "no-op gRPC server"), nil
}

// beside returns a job for rld and for the no-op, which are up and warm.
func (b *bench) beside(ctx context.Context, j job) (mine, other job, err error) {
	p, err := b.network(ctx)
	if err != nil {
		return j, j, err
	}
	mine, other = j, j
	mine.Target, other.Target = p.rld.grpc, p.noopAddr
	return mine, other, p.warm(b, mine, other)
}

// p99s does a job on rld and on the no-op in turns, and returns the 99th
// percentile of the calls of each round.
func (b *bench) p99s(ctx context.Context, rounds int, j job) ([][]float64, error) {
	j.Length = b.load / latencyTurns
	j.Warm = j.Length / 10
	mine, other, err := b.beside(ctx, j)
	if err != nil {
		return nil, err
	}
	readings := make([][]float64, 2)
	for range rounds {
		took := [2]*hdr.Histogram{newHistogram(), newHistogram()}
		_, err := alternate(ctx, latencyTurns, b.peers.collect(mine, took[0]), b.peers.collect(other, took[1]))
		if err != nil {
			return nil, err
		}
		for i, h := range took {
			readings[i] = append(readings[i], float64(h.ValueAtQuantile(99)))
		}
	}
	return readings, nil
}

// measureStream compares the checks a second on streams with the calls a
// second of RLS, by the same client of the same rld.
func measureStream(frame int) measure {
	return func(ctx context.Context, b *bench) (outcome, error) {
		p, err := b.network(ctx)
		if err != nil {
			return outcome{}, err
		}
		stream := job{
			Kind: kindStream, Target: p.rld.grpc, Flight: streamFlight, Frame: frame,
			Length: b.load / rateTurns,
		}
		unary := job{Kind: kindClosed, Target: p.rld.grpc, Flight: flight, Length: b.load / rateTurns}
		if err := p.warm(b, stream, unary); err != nil {
			return outcome{}, err
		}
		readings, err := interleave(ctx, b.rounds(5), rateTurns, p.rate(stream), p.rate(unary))
		if err != nil {
			return outcome{}, err
		}
		return compare(perSecond, most, readings, "RLS unary"), nil
	}
}

// sleep waits for a while or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
