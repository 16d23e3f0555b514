// Command coverage plays seeds of the swarm and prints which statements of the
// core they reach: a table of the packages, then each statement that no seed
// reached. It is for developers: run it in the repository.
//
// It builds itself with the counters of go build -cover and plays the seeds in
// that process.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/swarm"
)

// module is the path of this module, before that of each package.
const module = "github.com/georld/rld/"

// core is the packages that the bound is about; others are counted apart.
var core = []string{
	"control", "crdt", "gossip", "hlc", "journal", "node", "quota", "quota/agent", "quota/epoch", "quota/keytable",
	"quota/transfer", "replica", "sticky", "sticky/lease", "sticky/quorum", "sticky/route",
}

var others = []string{
	"disk", "internal/breaker", "internal/eventlog", "internal/rendezvous", "internal/sat", "internal/topk",
	"limits", "rules", "wire",
}

// options holds the flags.
type options struct {
	seed, runs uint64
	jobs       int
	least      float64 // percent of the statements of the core
	out        string  // file, "" for none
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "first seed, the others follow it")
	flag.Uint64Var(&o.runs, "runs", 300, "number of seeds")
	flag.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "runs at a time")
	flag.Float64Var(&o.least, "least", 0, "fail if fewer percent of the core are reached")
	flag.StringVar(&o.out, "out", "", "also write the report to this file")
	child := flag.Bool("play", false, "only play the seeds, in a process with counters")
	flag.Parse()
	if *child {
		o.play()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// play plays the seeds. A seed that finds something still counts.
func (o *options) play() {
	var next atomic.Uint64
	var workers sync.WaitGroup
	for range o.jobs {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < o.runs; i = next.Add(1) - 1 {
				seed := o.seed + i
				r, err := sim.Run(swarm.Draw(seed, false), sim.Options{Auditors: audit.All})
				if err != nil || r.Code() != sim.ExitFine {
					fmt.Fprintf(os.Stderr, "rld sim swarm --runs 1 --seed %d # %s\n", seed, finding(r, err))
				}
			}
		})
	}
	workers.Wait()
}

// finding describes the first finding of a run.
func finding(r *sim.Result, err error) string {
	if err != nil {
		return err.Error()
	}
	for _, a := range r.Auditors {
		if a.Violations > 0 {
			return a.Name + ": " + a.First
		}
	}
	return r.Pending
}

// run builds, plays and reports.
func (o *options) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "rld-coverage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, counters, text := filepath.Join(dir, "play"), filepath.Join(dir, "counters"), filepath.Join(dir, "profile")
	if err = os.Mkdir(counters, 0o700); err != nil {
		return err
	}
	// Without its main package a program does not write its counters.
	packages := module + strings.Join(slices.Concat(core, others, []string{"internal/coverage"}), ","+module)
	seed, runs := strconv.FormatUint(o.seed, 10), strconv.FormatUint(o.runs, 10)
	for _, args := range [][]string{
		{"go", "build", "-cover", "-covermode=set", "-coverpkg=" + packages, "-o", program, module + "internal/coverage"},
		{program, "-play", "-seed", seed, "-runs", runs, "-jobs", strconv.Itoa(o.jobs)},
		{"go", "tool", "covdata", "textfmt", "-i", counters, "-o", text},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+counters)
		cmd.Stderr = os.Stderr
		if err = cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(args[0]), err)
		}
	}
	profile, err := os.ReadFile(text)
	if err != nil {
		return err
	}
	blocks, err := parse(string(profile))
	if err != nil {
		return err
	}
	report, percent := reportOf(blocks, functionsOf)
	report = fmt.Sprintf("Statements that seeds %d to %d reach\n\n", o.seed, o.seed+o.runs-1) + report
	if o.out != "" {
		err = os.WriteFile(o.out, []byte(report), 0o600)
	}
	if _, printErr := io.WriteString(out, report); err == nil {
		err = printErr
	}
	if err == nil && percent < o.least {
		err = fmt.Errorf("%.1f %% of the core: want at least %.1f %%", percent, o.least)
	}
	return err
}
