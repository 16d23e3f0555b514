package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
	"github.com/georld/rld/sim/scenario"
)

// maxScenarioBytes is the largest file that is read as a scenario.
const maxScenarioBytes = 4 << 20

func newSimRun(p process) *cobra.Command {
	var seed uint64
	var out simOutputs
	cmd := &cobra.Command{
		Use:   "run NAME|FILE",
		Short: "Run a scenario and print the results of its limits",
		Long: "Run a built-in scenario (rld sim list) or one of a file, and print the results of its\n" +
			"limits and the findings of the auditors.",
		Example: "  rld sim run region-loss\n" +
			"  rld sim run ./mine.yaml --seed 7 --json result.json --report result.html",
		Args: oneScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			cfg, err := findScenario(p, args[0])
			if err != nil {
				return exitWith(exitNoneOf, err)
			}
			if cmd.Flags().Changed("seed") {
				cfg.Seed = seed
			}
			again := fmt.Sprintf("rld sim run %s --seed %d", shellWord(args[0]), cfg.Seed)
			return out.simulate(p, cfg, again, sim.Run)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&seed, "seed", 0, "seed of the run (default: that of the scenario)")
	out.flags(f)
	return cmd
}

var oneScenario = one("scenarios", "one of rld sim list, or a file",
	"the name is empty, want one of rld sim list, or a file")

// findScenario returns the scenario of a name or a file. A name wins over a
// file of the same name, which ./NAME is. The faults of a file go to standard
// error, like those of a compiler.
func findScenario(p process, name string) (*sim.Config, error) {
	if cfg, ok := scenario.Builtin(name); ok {
		return cfg, nil
	}
	data, err := readBounded(name, maxScenarioBytes)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "./") {
		return nil, unknownScenario(name)
	}
	if err != nil {
		return nil, err
	}
	cfg, err := scenario.Parse(name, data)
	if err != nil {
		fmt.Fprintln(p.err, err)
		return nil, errors.New("this scenario cannot be run")
	}
	return cfg, nil
}

func unknownScenario(name string) error {
	names := scenario.Names()
	meant := ""
	if closest := suggest.Closest(name, names); closest != "" {
		meant = fmt.Sprintf("did you mean %s? ", closest)
	}
	return fmt.Errorf("there is no scenario %q: %srld sim list names them all", name, meant)
}

// readBounded reads a file of at most most bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, most)
	}
	return data, nil
}

// replayOptions holds the flags of `rld sim replay`.
type replayOptions struct {
	limits  string
	merge   bool
	regions []string
	daemons int
	out     simOutputs
}

func newSimReplay(p process) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay TRACE --limits PATH",
		Short: "Replay recorded traffic against limits",
		Long: "Play recorded traffic against limits and print the hits that they would have admitted\n" +
			"and denied, and the overage. A trace is CSV, a line a call: time, region, key, hits. It\n" +
			"is played to one daemon, or to the regions that --regions names.",
		Example: "  rld sim replay monday.csv --limits limits/\n" +
			"  rld sim replay monday.csv --limits limits/ --regions eu,us --daemons 3 --json -",
		Args: one("traces", "one file", "the path is empty, use a file with a trace"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return o.run(p, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.limits, "limits", "", "file or folder of limits (required)")
	f.BoolVar(&o.merge, "merge-domains", false,
		"let several files hold rules of one domain (MERGE_DOMAIN_CONFIG, RLD_MERGE_DOMAINS)")
	f.StringSliceVar(&o.regions, "regions", nil, "regions to run, by their names in the trace (default: one region)")
	f.IntVar(&o.daemons, "daemons", 1, "daemons of each region")
	o.out.flags(f)
	return cmd
}

// check finds wrong usage.
func (o *replayOptions) check() error {
	switch {
	case o.limits == "":
		return errors.New("no limits: use --limits PATH, a file or a folder")
	case o.daemons < 1 || o.daemons > sim.MaxDaemons:
		return fmt.Errorf("--daemons %d: use 1 to %d", o.daemons, sim.MaxDaemons)
	}
	return o.out.check()
}

func (o *replayOptions) run(p process, path string) error {
	set, err := o.set(p)
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	data, err := readBounded(path, load.MaxTraceBytes)
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	trace, err := load.ParseTrace(path, data)
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	cfg, err := scenario.Replay(trace, set, o.regions, o.daemons)
	if err != nil {
		return simFailure(p, err, o.command(path))
	}
	return o.out.simulate(p, cfg, o.command(path), sim.Run)
}

// set reads the limits as a daemon does; diagnostics go to standard error.
func (o *replayOptions) set(p process) (*rules.Set, error) {
	c, err := limitsConfig(p.environ, o.limits, o.merge)
	if err != nil {
		return nil, err
	}
	r := newLimitsReport(c)
	if r.unread != nil {
		return nil, r.unread
	}
	fmt.Fprint(p.err, warningText(r.Warnings), r.found)
	if !r.OK {
		return nil, errors.New("a daemon would refuse these limits")
	}
	return r.set, nil
}

// command is the command line that does the same again.
func (o *replayOptions) command(path string) string {
	out := fmt.Sprintf("rld sim replay %s --limits %s", shellWord(path), shellWord(o.limits))
	if o.merge {
		out += " --merge-domains"
	}
	if len(o.regions) > 0 {
		out += " --regions " + shellWord(strings.Join(o.regions, ","))
	}
	if o.daemons > 1 {
		out += fmt.Sprintf(" --daemons %d", o.daemons)
	}
	return out
}
