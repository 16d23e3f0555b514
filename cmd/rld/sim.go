package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/report"
	"github.com/georld/rld/sim/scenario"
)

func newSim(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run whole clusters in virtual time, with faults",
		Long: "Run many daemons in many regions on one thread and in virtual time: with the code of a\n" +
			"daemon, a network that loses and delays frames, clocks that go wrong, regions that are\n" +
			"lost. A run is determined by its scenario and its seed, and is the same every time. The\n" +
			"exit code is 0 for no finding, 3 for a crash, 4 for replicas that did not agree in time,\n" +
			"5 for a violation. It is 2 for wrong usage and for files that cannot be read or written, and\n" +
			"1 if the run was stopped or failed otherwise.",
		Args:             noArguments,
		RunE:             help,
		PersistentPreRun: func(*cobra.Command, []string) { collectSeldom(p.environ, gcSmall) },
	}
	cmd.AddCommand(newSimList(p), newSimShow(p), newSimRun(p), newSimSwarm(p), newSimShrink(p), newSimDiff(p), newSimReplay(p))
	return cmd
}

// By how many percent the heap of a run grows until it is collected. A usual
// run needs some tens of megabytes, and collecting at each doubling takes a
// tenth of its time. A large cluster needs gigabytes, and memory that is used
// for the first time costs more than to collect.
const (
	gcSmall = 400
	gcLarge = 150
)

// collectSeldom lets the heap grow by a percentage of the live memory, unless
// the environment sets it.
func collectSeldom(environ []string, percent int) {
	if !slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, "GOGC=") }) {
		debug.SetGCPercent(percent)
	}
}

func newSimList(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the built-in scenarios",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t := newTable("SCENARIO", "WHAT IT SHOWS")
			for _, name := range scenario.Names() {
				if cfg, ok := scenario.Builtin(name); ok {
					t.row(name, cfg.Title)
				}
			}
			_, err := fmt.Fprint(p.out, t)
			return exitWith(exitNo, err)
		},
	}
}

func newSimShow(p process) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print the file of a built-in scenario",
		Long:    "Print the file of a built-in scenario, for example to begin one of your own.",
		Example: "  rld sim show region-loss > mine.yaml",
		Args:    oneScenario,
		RunE: func(_ *cobra.Command, args []string) error {
			source, ok := scenario.Source(args[0])
			if !ok {
				return exitWith(exitNoneOf, unknownScenario(args[0]))
			}
			_, err := p.out.Write(source)
			return exitWith(exitNo, err)
		},
	}
}

// stopwatch returns a function that returns the time since stopwatch was
// called: the simulator itself reads no clock.
func stopwatch() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// simFailure prints the cause of a run without a result and returns the exit
// code.
func simFailure(p process, err error, again string) error {
	var crash *sim.CrashError
	var two *sim.DivergenceError
	switch {
	case errors.As(err, &two):
		fmt.Fprintf(p.err, "rld: %v\nTo run it again: %s\n", err, again)
		if seed := two.First.Seed; strings.Contains(again, " --known") {
			fmt.Fprintf(p.err, "To see where they differ: rld sim diff %d %d --known\n", seed, seed)
		} else {
			fmt.Fprintf(p.err, "To see where they differ: rld sim diff %d %d\n", seed, seed)
		}
		return &exitError{code: sim.ExitCorrectness}
	case !errors.As(err, &crash):
		return exitWith(exitNoneOf, err)
	}
	fmt.Fprintf(p.err, "%s\nrld: %v\nTo run it again: %s\nTo see the events before it: %s %s\n", crash.Stack, err, again,
		again, around(crash.At))
	return &exitError{code: sim.ExitCrash}
}

// simSummary writes the summary of a run. again is its command line.
func simSummary(w io.Writer, r *sim.Result, again string) error {
	if err := report.Text(w, r, again); err != nil {
		return err
	}
	for _, a := range r.Auditors {
		if a.Violations > 0 && a.FirstSeconds != 0 {
			at := time.Duration(a.FirstSeconds * float64(time.Second))
			_, err := fmt.Fprintf(w, "To see the events before it: %s %s\n", again, around(at))
			return err
		}
	}
	return nil
}

// simVerdict is what to exit with for a result, which has been printed.
func simVerdict(r *sim.Result) error {
	if code := r.Code(); code != sim.ExitFine {
		return &exitError{code: code}
	}
	return nil
}

// shellWord quotes a word where a shell would take it apart.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
