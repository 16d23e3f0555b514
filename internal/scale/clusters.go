package main

import (
	_ "embed" // the former figures
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/scenario"
)

// steps is the table of docs/simulation.md with the cost after each step.
//
//go:embed steps.md
var steps string

// cluster is a number of regions with as many daemons each.
type cluster struct{ regions, daemons int }

// all returns the number of daemons.
func (c cluster) all() int { return c.regions * c.daemons }

// clustersOf returns the clusters of several sizes. Without a number of regions
// they have 3, and one more has 10 regions of 3 daemons.
func clustersOf(regions int, sizes []int) (all []cluster) {
	standard := regions == 0
	if standard {
		regions = 3
	}
	for _, n := range sizes {
		all = append(all, cluster{regions, n})
	}
	if standard {
		all = append(all, cluster{10, 3})
	}
	return all
}

// idleFrom and idleUntil are the virtual times between which the frames of
// daemons without calls are counted.
const idleFrom, idleUntil = 20 * time.Second, 80 * time.Second

// idleTable prints the traffic of a daemon in a cluster without calls.
func idleTable(out io.Writer, clusters []cluster) error {
	fmt.Fprintln(out, "A daemon without calls, R regions of N daemons; frames before TLS")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "R\tN\tframes/s\tbytes/s\tcontrol log bytes/s\t")
	for _, c := range clusters {
		begin, err := silence(c, idleFrom)
		if err != nil {
			return err
		}
		end, err := silence(c, idleUntil)
		if err != nil {
			return err
		}
		rate := func(from, to uint64) float64 {
			return float64(to-from) / (idleUntil - idleFrom).Seconds() / float64(c.all())
		}
		fmt.Fprintf(w, "%d\t%d\t%.1f\t%.0f\t%.0f\t\n", c.regions, c.daemons, rate(begin.Frames, end.Frames),
			rate(begin.Bytes, end.Bytes), rate(begin.ControlBytes, end.ControlBytes))
	}
	return w.Flush()
}

// silence returns the frames of a cluster without calls.
func silence(c cluster, length time.Duration) (sim.Traffic, error) {
	cfg, err := scenario.Parse("idle.yaml", []byte(source(c, 60, length)))
	if err != nil {
		return sim.Traffic{}, err
	}
	cfg.Workloads = nil
	r, err := sim.Run(cfg, sim.Options{})
	if err != nil {
		return sim.Traffic{}, err
	}
	return r.Traffic, nil
}
