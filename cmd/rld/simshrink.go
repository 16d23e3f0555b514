package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/report"
	"github.com/georld/rld/sim/scenario"
	"github.com/georld/rld/sim/shrink"
)

// shrinkOptions holds the flags of `rld sim shrink`.
type shrinkOptions struct {
	draw  swarmOptions
	out   string
	limit time.Duration
}

func newSimShrink(p process) *cobra.Command {
	var o shrinkOptions
	cmd := &cobra.Command{
		Use:   "shrink SEED|FILE",
		Short: "Make a run that fails smaller",
		Long: "Drop faults, rules, workloads, regions, daemons, options and time from a run of the swarm,\n" +
			"or from a scenario, for as long as it fails in the same way: by the same auditor, by a crash,\n" +
			"or because daemons do not agree. The rest is a scenario that can be edited and replayed.",
		Example: "  rld sim shrink 57\n" +
			"  rld sim shrink 57 --known --out small.yaml\n" +
			"  rld sim shrink mine.yaml --for 10m",
		Args: one("runs", "a seed of rld sim swarm, or the file of a scenario", "it is empty, want a seed or a file"),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(p, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.draw.known, "known", false, "of a seed: as it is drawn by rld sim swarm --known")
	o.draw.hashFlag(f)
	f.StringVar(&o.out, "out", "", "file for the scenario (default: standard output)")
	f.DurationVar(&o.limit, "for", 2*time.Minute, "end the search after this time, with the smallest run so far")
	return cmd
}

// run shrinks the run of a seed or a file.
func (o *shrinkOptions) run(p process, name string) error {
	if o.limit <= 0 {
		return fmt.Errorf("--for %s: use a time such as 2m", o.limit)
	}
	file, err := o.read(name)
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	cfg, err := scenario.Parse(name, file)
	if err != nil {
		fmt.Fprintln(p.err, err)
		return exitWith(exitNoneOf, errors.New("this scenario cannot be run"))
	}
	wall := stopwatch()
	small, err := shrink.Shrink(file, func() bool { return wall() > o.limit })
	if err != nil {
		return exitWith(exitNoneOf, fmt.Errorf("%s: %w", name, err))
	}
	if small == nil {
		return exitWith(exitNoneOf, fmt.Errorf("%s does not fail, so there is nothing to shrink: "+
			"name a seed that rld sim swarm --keep-going lists, with its --known", name))
	}
	fmt.Fprintf(p.err, "%s fails by %s: from %s to %s, in %s of %s\n", name, small.Way, sizeOf(cfg), sizeOf(small.Config),
		report.Plural(uint64(small.Runs), "run"), wall().Round(100*time.Millisecond))
	if o.out == "" {
		_, err = p.out.Write(small.File)
	} else {
		err = os.WriteFile(o.out, small.File, 0o644)
	}
	return exitWith(exitNo, err)
}

// read returns a scenario file, or the run of a seed as one.
func (o *shrinkOptions) read(name string) ([]byte, error) {
	seed, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		return readBounded(name, maxScenarioBytes)
	}
	cfg := o.draw.of(seed)
	if err := o.draw.checkHash(cfg); err != nil {
		return nil, err
	}
	return scenario.Format(cfg)
}

// sizeOf describes a run by its parts.
func sizeOf(c *sim.Config) string {
	return fmt.Sprintf("%s, %s, %s and %v", report.Plural(uint64(len(c.Faults)), "fault"),
		report.Plural(uint64(len(c.Rules.Rules())), "rule"), report.Plural(uint64(c.Daemons()), "daemon"), c.Duration)
}
