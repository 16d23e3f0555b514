package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/georld/rld/internal/corpus"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/report"
	swarms "github.com/georld/rld/sim/swarm"
)

// swarmOptions holds the flags of `rld sim swarm`.
type swarmOptions struct {
	runs       uint64
	seed       uint64
	jobs       int
	limit      time.Duration // 0 for none
	naive      bool
	once       bool
	known      bool
	all        bool       // go on after a finding
	situations bool       // print in how many seeds each took effect
	hash       string     // draw of the first seed, "" for any
	out        simOutputs // of a swarm of one

	policy string // likewise

	corpus string // its folder, "" for none
}

func newSimSwarm(p process) *cobra.Command {
	var o swarmOptions
	cmd := &cobra.Command{
		Use:   "swarm",
		Short: "Run many clusters that are drawn from seeds",
		Long: "Run one cluster for each seed: its size, settings, limits, load and faults are drawn\n" +
			"from the seed. Each is run twice, and both runs must be equal; --once runs twice as many\n" +
			"seeds in the same time, and does not know whether they are. The first seed with a\n" +
			"finding ends the swarm and is printed with the command that runs it; with --keep-going\n" +
			"it goes on and lists them.\n\n" +
			"--known draws small clusters with faults after which promises are known not to hold, such\n" +
			"as a disk that is put back from a copy, or a daemon that ran with a wrong clock.\n\n" +
			"--corpus keeps the seeds that were the first to reach an event, an auditor, or one of them\n" +
			"under a kind of faults, and plays them first the next time.\n\n" +
			"In half of the runs limits have rights. --naive plays these once more by merged counts\n" +
			"alone, and prints how often that exceeds the sum of the rights.",
		Example: "  rld sim swarm --runs 1000\n" +
			"  rld sim swarm --for 1h --seed \"$(date +%s)\"\n" +
			"  rld sim swarm --for 8h --keep-going --corpus corpus\n" +
			"  rld sim swarm --runs 1 --seed 57 --trace 2s..2.5s --trace-daemons a-0,b\n" +
			"  rld sim swarm --runs 1000 --naive",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed("runs")); err != nil {
				return err
			}
			if o.runs == 1 {
				return o.one(p)
			}
			ctx, done := stopSignals(cmd.Context(), os.Exit)
			defer done()
			debug.SetGCPercent(gcPercent)
			s := newSwarm(o, p)
			if err := s.open(); err != nil {
				return exitWith(exitNoneOf, err)
			}
			s.run(ctx)
			return s.conclude(ctx.Err() != nil)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&o.runs, "runs", 200, "number of seeds; without it, --for has no other end")
	f.Uint64Var(&o.seed, "seed", 1, "first seed, the others follow it")
	f.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "runs at a time")
	f.DurationVar(&o.limit, "for", 0, "begin no further run after this time")
	f.BoolVar(&o.once, "once", false, "run each seed once, so that runs are not compared")
	f.BoolVar(&o.naive, "naive", false, "count how often merged counts alone exceed the bound of rights")
	f.BoolVar(&o.known, "known", false, "draw faults that break promises in ways that are known")
	f.BoolVar(&o.all, "keep-going", false, "go on after a seed with a finding, and list all of them")
	f.BoolVar(&o.situations, "situations", false, "print in how many seeds each situation took effect that a cluster must survive")
	f.StringVar(&o.corpus, "corpus", "", "play the seeds of this `folder` first, and add those that reach something new")
	o.hashFlag(f)
	f.StringVar(&o.policy, "policy", "", "with --runs 1: another policy for limits with rights ("+policyNames()+")")
	o.out.flags(f)
	return cmd
}

// gcPercent is GOGC of a swarm: its runs are small and make much garbage.
const gcPercent = 400

// check finds what makes no sense and fills in what follows from the rest.
func (o *swarmOptions) check(runsGiven bool) error {
	if o.limit > 0 && !runsGiven {
		o.runs = math.MaxUint64
	}
	switch {
	case o.runs == 0:
		return errors.New("--runs 0 runs nothing: use 1 or more")
	case o.jobs < 1 || o.jobs > 1024:
		return fmt.Errorf("--jobs %d: use 1 to 1024", o.jobs)
	case o.known && o.naive:
		return errors.New("--naive and --known: use one of them")
	case o.limit < 0:
		return fmt.Errorf("--for %s: use a time such as 1h", o.limit)
	case o.out.wanted() && o.runs != 1:
		return errors.New("--json, --report and --trace are about one run: use --runs 1")
	case o.corpus != "" && o.runs == 1:
		return errors.New("--corpus is about many runs, and --runs 1 plays one")
	}
	if err := o.out.check(); err != nil {
		return err
	}
	cfg, err := o.draw()
	if err != nil {
		return err
	}
	if err := o.checkHash(cfg); err != nil {
		return err
	}
	// The seeds end with the greatest there is.
	if left := math.MaxUint64 - o.seed; o.runs-1 > left {
		o.runs = left + 1
	}
	return nil
}

func (o *swarmOptions) hashFlag(f *pflag.FlagSet) {
	f.StringVar(&o.hash, "draw", "", "`hash` of what the (first) seed draws, which differs in another version of rld")
}

// checkHash compares the hash of a seed's draw with the one on the command
// line.
func (o *swarmOptions) checkHash(cfg *sim.Config) error {
	if is := drawHash(o.of(cfg.Seed)); o.hash != "" && o.hash != is {
		return fmt.Errorf("--draw %s: seed %d is another run in this version of rld, which draws %s: "+
			"use the version that printed the command, or a scenario that it wrote with rld sim shrink", o.hash, cfg.Seed, is)
	}
	return nil
}

// draw returns the cluster of the first seed, under the policy that was asked
// for.
func (o *swarmOptions) draw() (*sim.Config, error) {
	if o.policy == "" {
		return o.of(o.seed), nil
	}
	if o.runs != 1 {
		return nil, errors.New("--policy is about one run: use --runs 1")
	}
	p, err := sim.PolicyNamed(o.policy)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	cfg := o.of(o.seed)
	cfg.Policy = p
	return cfg, nil
}

// of returns the cluster of a seed.
func (o *swarmOptions) of(seed uint64) *sim.Config { return swarms.Draw(seed, o.known) }

// policyNames lists the words of --policy.
func policyNames() string {
	var names []string
	for _, p := range sim.Policies() {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

// one runs the first seed alone and prints all about it.
func (o *swarmOptions) one(p process) error {
	again := o.command(o.seed)
	cfg, err := o.draw()
	if err != nil {
		return err
	}
	if o.policy != "" {
		again += " --policy " + o.policy
	}
	return o.out.simulate(p, cfg, again, func(cfg *sim.Config, options sim.Options) (*sim.Result, error) {
		r, err := sim.RunTwice(cfg, options)
		if err == nil {
			r.Drawn = drawn(cfg)
		}
		return r, err
	})
}

// command is the command line that runs a seed alone.
func (o *swarmOptions) command(seed uint64) string {
	known := ""
	if o.known {
		known = " --known"
	}
	return fmt.Sprintf("rld sim swarm --runs 1 --seed %d%s --draw %s", seed, known, drawHash(o.of(seed)))
}

// outcome is what one seed came to.
type outcome struct {
	seed   uint64
	result *sim.Result
	err    error
	naive  *sim.Result // nil when it was not played by counts alone
}

// fine reports whether nothing was found.
func (o *outcome) fine() bool { return o.err == nil && o.result.Code() == sim.ExitFine }

// summary names the findings of a seed in a few words.
func (o *outcome) summary() string {
	if o.err != nil {
		text, _, _ := strings.Cut(o.err.Error(), "\n")
		return text
	}
	names := o.result.Violated()
	if o.result.Pending != "" {
		names = append(names, "not done: "+o.result.Pending)
	}
	return strings.Join(names, ", ")
}

// swarm runs the seeds of a corpus, and then seeds in ascending order, several
// at a time. After the first finding it starts no further seed and finishes the
// running ones, so it prints the lowest seed with a finding.
type swarm struct {
	o     swarmOptions
	p     process
	play  func(seed uint64) (*sim.Result, error)
	wall  func() time.Duration
	next  atomic.Uint64 // number of the next run
	stop  atomic.Bool   // begin no other
	tally tally
	found []outcome // seeds with a finding, at most maxFound
	more  uint64    // further ones

	corpus  *corpus.Corpus // nil for none
	first   []uint64       // its seeds
	dropped int            // seeds of another version
	added   []corpus.Entry // seeds that reached something first
	err     error          // of the corpus
}

// open reads the corpus. Seeds that draw something else than they did are of
// another version.
func (s *swarm) open() (err error) {
	if s.o.corpus == "" {
		return nil
	}
	if s.corpus, err = corpus.Open(s.o.corpus); err != nil {
		return fmt.Errorf("--corpus: %w", err)
	}
	s.dropped = s.corpus.Keep(func(e corpus.Entry) bool { return drawHash(s.o.of(e.Seed)) == e.Hash })
	for _, e := range s.corpus.Entries() {
		s.first = append(s.first, e.Seed)
	}
	return nil
}

// maxFound bounds the seeds with a finding that are kept.
const maxFound = 1_000

func newSwarm(o swarmOptions, p process) *swarm {
	s := &swarm{o: o, p: p, wall: stopwatch()}
	s.play = s.playSeed
	return s
}

// playSeed runs the cluster of a seed; that it does the same both times is
// checked, unless it runs once.
func (s *swarm) playSeed(seed uint64) (r *sim.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &sim.CrashError{Name: "swarm", Seed: seed, Event: "the draw", Value: p, Stack: debug.Stack()}
		}
	}()
	run := sim.RunTwice
	if s.o.once {
		run = sim.Run
	}
	return run(s.o.of(seed), sim.Options{Auditors: audit.All, Wall: stopwatch()})
}

// run returns when all seeds are done, or those that had begun when something
// was found, the time was over or ctx ended.
func (s *swarm) run(ctx context.Context) {
	outcomes := make(chan outcome)
	var workers sync.WaitGroup
	for range s.o.jobs {
		workers.Go(func() { s.work(ctx, outcomes) })
	}
	go func() {
		workers.Wait()
		close(outcomes)
	}()
	meter := newMeter(s.p)
	defer meter.end()
	for {
		select {
		case o, more := <-outcomes:
			if !more {
				return
			}
			s.take(o)
			if s.o.all && !o.fine() {
				meter.note("found: " + s.line(&o))
			}
		case <-meter.due():
			meter.show(s.progress())
		}
	}
}

// work runs one seed after the other.
func (s *swarm) work(ctx context.Context, outcomes chan<- outcome) {
	for ctx.Err() == nil && !s.stop.Load() && (s.o.limit == 0 || s.wall() < s.o.limit) {
		i, first := s.next.Add(1)-1, uint64(len(s.first))
		if i >= first && i-first >= s.o.runs {
			return
		}
		seed := s.o.seed + i - first
		if i < first {
			seed = s.first[i]
		}
		o := outcome{seed: seed}
		if o.result, o.err = s.play(seed); o.err == nil && s.o.naive {
			o.naive, o.err = swarms.Naively(seed)
		}
		outcomes <- o
	}
}

func (s *swarm) take(o outcome) {
	if !o.fine() {
		if !s.o.all {
			s.stop.Store(true)
		}
		if len(s.found) < maxFound {
			s.found = append(s.found, o)
		} else {
			s.more++
		}
	}
	if s.corpus != nil && o.result != nil {
		cfg := s.o.of(o.seed)
		reached, err := s.corpus.Add(o.seed, drawHash(cfg), features(cfg, o.result))
		s.err = errors.Join(s.err, err)
		if len(reached) > 0 {
			s.added = append(s.added, corpus.Entry{Seed: o.seed, First: reached})
		}
	}
	s.tally.add(o.result)
	s.tally.addNaive(&o)
}

// progress is one line about how far it is.
func (s *swarm) progress() string {
	wall := s.wall()
	of := ""
	if s.o.runs < math.MaxUint64-s.o.seed {
		of = " of " + report.Count(s.o.runs+uint64(len(s.first)))
	}
	return fmt.Sprintf("swarm: %s%s seeds in %s, %.1f a second", report.Count(s.tally.seeds), of,
		wall.Round(time.Second), float64(s.tally.seeds)/wall.Seconds())
}

// conclude prints the findings and returns the exit code.
func (s *swarm) conclude(interrupted bool) error {
	var b strings.Builder
	if len(s.found) == 0 {
		verb, of := "done", ""
		if interrupted {
			verb, of = "stopped", " of "+report.Count(s.o.runs)
		}
		times := "twice"
		if s.o.once {
			times = "once"
		}
		fmt.Fprintf(&b, "swarm %s: %s%s from seed %d, each run %s, found nothing\n", verb,
			report.Plural(s.tally.seeds, "run"), of, s.o.seed, times)
	}
	s.tally.write(&b, &s.o, s.wall())
	if s.corpus != nil {
		s.writeReached(&b)
	}
	s.writeAgain(&b)
	if _, err := fmt.Fprint(s.p.out, b.String()); err != nil || s.err != nil {
		return exitWith(exitNo, errors.Join(err, s.err))
	}
	switch {
	case len(s.found) > 0:
		return s.blame()
	case interrupted:
		return exitWith(exitNo, errors.New("the swarm was stopped before its end"))
	}
	return nil
}

// blame prints the seeds that found something, and all about the lowest one.
func (s *swarm) blame() error {
	slices.SortFunc(s.found, func(a, b outcome) int { return cmp.Compare(a.seed, b.seed) })
	if s.o.all {
		s.list()
	}
	first := &s.found[0]
	again := s.o.command(first.seed)
	fmt.Fprintf(s.p.out, "\nSeed %d found something:\n\n", first.seed)
	if first.err != nil {
		return simFailure(s.p, first.err, again)
	}
	first.result.Drawn = drawn(s.o.of(first.seed))
	if err := simSummary(s.p.out, first.result, again); err != nil {
		return exitWith(exitNo, err)
	}
	return simVerdict(first.result)
}

// line is the command that runs a seed, with its findings.
func (s *swarm) line(o *outcome) string { return s.o.command(o.seed) + "  # " + o.summary() }

// list prints a line for each seed that found something.
func (s *swarm) list() {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s found something:\n\n", report.Plural(uint64(len(s.found))+s.more, "seed"))
	for i := range s.found {
		fmt.Fprintf(&b, "  %s\n", s.line(&s.found[i]))
	}
	if s.more > 0 {
		fmt.Fprintf(&b, "  and %s more\n", report.Count(s.more))
	}
	fmt.Fprint(s.p.out, b.String())
}
