package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/scenario"
	"github.com/georld/rld/sim/swarm"
)

// playCommand makes the program play runs of the simulator: it is built once
// more with each mutation.
const playCommand = "play"

// patience bounds one run: normal ones take seconds on a busy machine.
const patience = 2 * time.Minute

// finding is a run of the simulator that failed.
type finding struct {
	Run    string  // the name of a scenario, or "seed 17"
	What   string  // auditors, or how it crashed
	Shrunk *shrunk `json:",omitempty"`
}

// play plays scenarios or seeds until one fails, which it prints as JSON. It
// returns the exit code: 1 for a finding.
func play(args []string, out io.Writer) int {
	f := flag.NewFlagSet(playCommand, flag.ContinueOnError)
	seeds := f.Int("seeds", 0, "seeds of the swarm, 0 for the scenarios")
	only := f.String("run", "", "this run alone")
	without := f.String("without", "", "runs to leave out, with commas between them")
	smaller := f.Bool("shrink", false, "shrink the runs instead")
	if err := f.Parse(args); err != nil {
		return 2
	}
	debug.SetGCPercent(400)
	found := func(run, what string, small *shrunk) int {
		_ = json.NewEncoder(out).Encode(finding{run, what, small})
		return 1
	}
	list, err := scenarios()
	if err != nil {
		return found("scenarios", err.Error(), nil)
	}
	if *seeds > 0 {
		list = nil
		for seed := range uint64(*seeds) {
			list = append(list, named{fmt.Sprintf("seed %d", seed+1), func() (*sim.Config, error) {
				return swarm.Draw(seed+1, false), nil
			}})
		}
	}
	for _, n := range list {
		if *only != "" && n.name != *only || slices.Contains(strings.Split(*without, ","), n.name) {
			continue
		}
		// A crash that cannot be recovered leaves this line as the last one.
		fmt.Fprintln(os.Stderr, "playing", n.name)
		hangs := time.AfterFunc(patience, func() {
			found(n.name, "hangs", nil)
			os.Exit(1)
		})
		var small *shrunk
		var what string
		if *smaller {
			hangs.Reset(patience + shrinkTime)
			small, what = n.shrink()
		} else {
			what = n.play()
		}
		hangs.Stop()
		if what != "" {
			return found(n.name, what, small)
		}
	}
	return 0
}

// named is a run with its name.
type named struct {
	name string
	draw func() (*sim.Config, error)
}

// play plays the run and returns what failed, "" for nothing.
func (n *named) play() (what string) {
	defer func() {
		if v := recover(); v != nil {
			what = fmt.Sprintf("panic: %v", v)
		}
	}()
	cfg, err := n.draw()
	if err != nil {
		return firstLine(err.Error())
	}
	r, err := sim.Run(cfg, sim.Options{Auditors: audit.All})
	if crash := (*sim.CrashError)(nil); errors.As(err, &crash) {
		return firstLine(fmt.Sprintf("panic: %v", crash.Value))
	}
	if err != nil {
		return firstLine(err.Error())
	}
	if r.Code() == sim.ExitFine {
		return ""
	}
	words := r.Violated()
	if r.Pending != "" {
		words = append(words, "liveness")
	}
	return strings.Join(words, ", ")
}

// longScenarios take longer than the rest together.
var longScenarios = []string{"budgets-grid"}

// scenarios returns the runs that shrinking left, from the folder that the
// program runs in, and the built-in ones.
func scenarios() ([]named, error) {
	files, err := filepath.Glob("sim/scenario/testdata/found/*.yaml")
	if err != nil {
		return nil, err
	}
	var list []named
	for _, file := range files {
		list = append(list, named{filepath.Base(file), func() (*sim.Config, error) {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			return scenario.Parse(file, data)
		}})
	}
	for _, name := range scenario.Names() {
		if slices.Contains(longScenarios, name) {
			continue
		}
		list = append(list, named{name, func() (*sim.Config, error) {
			cfg, _ := scenario.Builtin(name)
			return cfg, nil
		}})
	}
	return list, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
