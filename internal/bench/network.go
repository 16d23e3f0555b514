package main

import (
	"context"
	"time"
)

// Load over the network.
const (
	flight     = 64    // calls in flight
	openRate   = 2_000 // calls a second
	checksOpen = 512   // checks in flight on streams
)

func p99(r *result) float64 { return float64(r.P99) }

// measureUnary compares the calls a second at 64 in flight with those of the
// no-op: the median of the ratios of the rounds.
func measureUnary(ctx context.Context, b *bench) (outcome, error) {
	j := job{Kind: kindClosed, Flight: flight, Length: b.load}
	readings, err := b.beside(ctx, b.rounds(7), j, (*result).rate)
	if err != nil {
		return outcome{}, err
	}
	o := compare(perSecond, median, readings, "no-op gRPC server")
	o.Ratio = median(ratios(readings[0], readings[1]))
	return o, nil
}

// measureOneInFlight measures a call while nothing else happens.
func measureOneInFlight(ctx context.Context, b *bench) (outcome, error) {
	j := job{Kind: kindClosed, Flight: 1, Length: b.load}
	readings, err := b.beside(ctx, b.rounds(5), j, p99)
	if err != nil {
		return outcome{}, err
	}
	return compare(nanoseconds, least, readings, "no-op gRPC server"), nil
}

// measureOpenLoop measures calls at planned instants: medians, since a single
// round has few calls beyond its 99th percentile.
func measureOpenLoop(ctx context.Context, b *bench) (outcome, error) {
	// Half again as long, for enough calls.
	j := job{Kind: kindOpen, Rate: openRate, Length: b.load * 3 / 2}
	readings, err := b.beside(ctx, b.rounds(5), j, p99)
	if err != nil {
		return outcome{}, err
	}
	return compare(nanoseconds, median, readings, "no-op gRPC server"), nil
}

// beside does a job on rld and on the no-op in turn.
func (b *bench) beside(
	ctx context.Context, rounds int, j job, of func(*result) float64,
) ([][]float64, error) {
	p, err := b.network(ctx)
	if err != nil {
		return nil, err
	}
	mine, other := j, j
	mine.Target, other.Target = p.rld.grpc, p.noopAddr
	if err := p.warm(b, mine, other); err != nil {
		return nil, err
	}
	return alternate(ctx, rounds, p.figure(mine, of), p.figure(other, of))
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
			Kind: kindStream, Target: p.rld.grpc, Flight: checksOpen, Frame: frame, Length: b.load,
		}
		unary := job{Kind: kindClosed, Target: p.rld.grpc, Flight: flight, Length: b.load}
		if err := p.warm(b, stream, unary); err != nil {
			return outcome{}, err
		}
		readings, err := alternate(ctx, b.rounds(5),
			p.figure(stream, (*result).rate), p.figure(unary, (*result).rate))
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
