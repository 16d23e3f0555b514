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
	"github.com/georld/rld/sim"
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
