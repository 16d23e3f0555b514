package main

import (
	"context"
	"slices"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/georld/rld/internal/load"
)

// side measures one side of a comparison once.
type side func() float64

// alternate measures every side once a round and returns the readings, one
// slice a side, in the order of the rounds. The order of the sides turns each
// round, so that neither always goes first.
func alternate(ctx context.Context, rounds int, sides ...side) [][]float64 {
	readings := make([][]float64, len(sides))
	order := numbered(len(sides))
	for range rounds {
		for _, i := range order {
			check(ctx.Err())
			readings[i] = append(readings[i], sides[i]())
		}
		slices.Reverse(order)
	}
	return readings
}

// interleave is alternate with rounds that are cut into short turns: the
// sides take a turn each, again and again, and the reading of a round is the
// mean of its turns. What disturbs the machine for longer than a turn so
// disturbs all sides alike.
func interleave(ctx context.Context, rounds, turns int, sides ...side) [][]float64 {
	readings := make([][]float64, len(sides))
	for range rounds {
		for i, p := range alternate(ctx, turns, sides...) {
			readings[i] = append(readings[i], mean(p))
		}
	}
	return readings
}

// mean needs one value at least.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// compare returns the outcome of two sides by one figure of each: the best or
// the median reading.
func compare(u unit, figure func([]float64) float64, readings [][]float64, beside string) outcome {
	a, b := figure(readings[0]), figure(readings[1])
	o := outcome{Measured: a, Beside: b, BesideWhat: beside, Unit: u, Readings: readings}
	if b != 0 {
		o.Ratio = a / b
	}
	return o
}

// compareRatios returns the outcome of two sides by the median of the rates a
// second of each, and the median of the ratios of the rounds.
func compareRatios(readings [][]float64, beside string) outcome {
	o := compare(perSecond, load.Median, readings, beside+"; median of ratios")
	o.Ratio = load.Median(ratios(readings))
	return o
}

// ratios returns the ratio of two sides in each round.
func ratios(readings [][]float64) []float64 {
	all := make([]float64, len(readings[0]))
	for i := range all {
		all[i] = readings[0][i] / readings[1][i]
	}
	return all
}

// The best reading of what should be small, and of what should be large.
func least(v []float64) float64 { return slices.Min(v) }
func most(v []float64) float64  { return slices.Max(v) }

// quantiles returns a quantile of the latencies of each round, one slice a
// side.
func quantiles(rounds [][]*hdr.Histogram, quantile float64) [][]float64 {
	readings := make([][]float64, len(rounds[0]))
	for _, sides := range rounds {
		for i, h := range sides {
			readings[i] = append(readings[i], float64(h.ValueAtQuantile(quantile)))
		}
	}
	return readings
}
