package main

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/report"
	"github.com/georld/rld/sim/scenario"
)

// traceOptions holds the flags about the trace of a run.
type traceOptions struct {
	span    string
	daemons []string

	from, to time.Duration // of span
}

func (o *traceOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.span, "trace", "", "print the events and states from `FROM..TO` of virtual time, a line each: 12s..12.5s")
	f.StringSliceVar(&o.daemons, "trace-daemons", nil, "with --trace: those of these `daemons` and regions alone")
}

// check reads the range.
func (o *traceOptions) check() error {
	if o.span == "" {
		if len(o.daemons) > 0 {
			return errors.New("--trace-daemons is about --trace FROM..TO")
		}
		return nil
	}
	from, to, two := strings.Cut(o.span, "..")
	var errFrom, errTo error
	o.from, errFrom = time.ParseDuration(from)
	o.to, errTo = time.ParseDuration(to)
	switch {
	case !two || errFrom != nil || errTo != nil:
		return fmt.Errorf("--trace %s: write FROM..TO in virtual time, such as 12s..12.5s", o.span)
	case o.from > o.to:
		return fmt.Errorf("--trace %s: it ends before it begins, write %v..%v", o.span, o.to, o.from)
	}
	return nil
}

// tracer prints the lines of a run.
type tracer struct {
	sim.Trace
	span  string
	out   *bufio.Writer
	lines uint64
}

// of returns the tracer of a run, nil when none is asked for.
func (o *traceOptions) of(p process, cfg *sim.Config) (*tracer, error) {
	if o.span == "" {
		return nil, nil
	}
	if err := checkPlaces(o.daemons, cfg); err != nil {
		return nil, err
	}
	switch most := cfg.Duration + cfg.Settle + cfg.Liveness; {
	case cfg.Grid != nil:
		return nil, errors.New("--trace is about one run, and this scenario is a grid of many")
	case o.from > most:
		return nil, fmt.Errorf("--trace %s: the run ends at %v at the latest", o.span, most)
	}
	t := &tracer{span: o.span, out: bufio.NewWriter(p.out)}
	t.Trace = sim.Trace{From: o.from, To: o.to, Daemons: o.daemons, States: true, Line: t.write}
	return t, nil
}

// checkPlaces returns an error for the first of --trace-daemons that a run does
// not have.
func checkPlaces(names []string, cfg *sim.Config) error {
	places := cfg.Places()
	for _, name := range names {
		if !slices.Contains(places, name) {
			return fmt.Errorf("--trace-daemons: no region or daemon %q: %s", name,
				suggest.Hint(name, places, "the places are "+suggest.List(places)))
		}
	}
	return nil
}

// selection returns the settings of a trace for a run, nil for no trace.
func (t *tracer) selection() *sim.Trace {
	if t == nil {
		return nil
	}
	return &t.Trace
}

func (t *tracer) write(line string) {
	t.lines++
	_, _ = t.out.WriteString(line + "\n") // end returns the error
}

// end writes the remaining lines. It returns an error if the range was not
// within the run, which ended at the given time.
func (t *tracer) end(at float64) error {
	if t == nil {
		return nil
	}
	if err := t.out.Flush(); err != nil {
		return exitWith(exitNo, err)
	}
	if t.lines == 0 {
		return exitWith(exitNoneOf, fmt.Errorf("--trace %s is outside the run: use a range from -3s to %.3fs", t.span, at))
	}
	return nil
}

// around returns the flag that traces a run up to a time.
func around(at time.Duration) string {
	const before = 200 * time.Millisecond
	return fmt.Sprintf("--trace %v..%v", (at - before).Truncate(time.Millisecond), (at + time.Millisecond).Truncate(time.Millisecond))
}

// drawn returns a drawn run as a scenario.
func drawn(cfg *sim.Config) string {
	file, err := scenario.Format(cfg)
	if err != nil {
		return "# " + err.Error() + "\n" // no drawn run has rules without a text
	}
	return string(file)
}

// drawHash returns the hash of a seed's draw. Another version of rld may draw
// another run.
func drawHash(cfg *sim.Config) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, drawn(cfg)) // never fails
	return fmt.Sprintf("%08x", h.Sum32())
}

// diffOptions holds the flags of `rld sim diff`.
type diffOptions struct {
	draw    swarmOptions
	context int
	daemons []string
}

func newSimDiff(p process) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff RUN RUN",
		Short: "Compare two runs up to their first difference",
		Long: "Play two runs side by side, compare the lines of their traces, and print those around the\n" +
			"first difference. A run is a scenario, a file, or a seed of rld sim swarm; NAME@SEED is a\n" +
			"scenario with another seed. The exit code is 0 for equal runs, 1 for a difference, and 2 for\n" +
			"runs that cannot be played.",
		Example: "  rld sim diff region-loss region-loss@7\n" +
			"  rld sim diff before.yaml after.yaml --context 20 --trace-daemons eu-0\n" +
			"  rld sim diff 57 57   # does a run depend on more than its seed?",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%d runs given, want two: scenarios, files or seeds", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(p, args) },
	}
	f := cmd.Flags()
	f.IntVar(&o.context, "context", 5, "lines of each run from the first difference on, and before it")
	f.StringSliceVar(&o.daemons, "trace-daemons", nil, "compare the lines of these `daemons` and regions alone")
	f.BoolVar(&o.draw.known, "known", false, "of seeds: as they are drawn by rld sim swarm --known")
	return cmd
}

// player is a run that is compared.
type player struct {
	name   string
	cfg    *sim.Config
	result *sim.Result
	err    error
}

// open reads a run.
func (o *diffOptions) open(p process, name string) (*player, error) {
	r, err := o.read(p, name)
	if err != nil {
		return nil, err
	}
	return r, checkPlaces(o.daemons, r.cfg)
}

func (o *diffOptions) read(p process, name string) (*player, error) {
	if seed, err := strconv.ParseUint(name, 10, 64); err == nil {
		return &player{name: name, cfg: o.draw.of(seed)}, nil
	}
	file, seedText, given := name, "", false
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		file, seedText, given = name[:i], name[i+1:], true
	}
	cfg, err := findScenario(p, file)
	if err != nil {
		return nil, err
	}
	if given {
		if cfg.Seed, err = strconv.ParseUint(seedText, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %q is no seed, write NAME@SEED such as %s@7", name, seedText, file)
		}
	}
	if cfg.Grid != nil {
		return nil, fmt.Errorf("%s is a grid of many runs: diff is about two", name)
	}
	return &player{name: name, cfg: cfg}, nil
}

// lines plays the run, and yields the lines of its trace.
func (r *player) lines(daemons []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		stopped := false
		all := &sim.Trace{From: math.MinInt64, To: math.MaxInt64, Daemons: daemons, Line: func(line string) {
			if stopped = stopped || !yield(line); stopped {
				panic("the comparison is over") // ends the run, which returns it as an error
			}
		}}
		result, err := sim.Run(r.cfg, sim.Options{Auditors: audit.All, Trace: all})
		if !stopped {
			r.result, r.err = result, err
		}
	}
}

// outcome describes how the run ended.
func (r *player) outcome() string {
	if r.err != nil {
		return r.err.Error()
	}
	return "trace hash " + r.result.TraceHash
}

func (o *diffOptions) run(p process, names []string) error {
	if o.context < 0 || o.context > 10_000 {
		return fmt.Errorf("--context %d: use 0 to 10000", o.context)
	}
	a, err := o.open(p, names[0])
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	b, err := o.open(p, names[1])
	if err != nil {
		return exitWith(exitNoneOf, err)
	}
	nextA, stopA := iter.Pull(a.lines(o.daemons))
	defer stopA()
	nextB, stopB := iter.Pull(b.lines(o.daemons))
	defer stopB()
	var common []string // the last equal lines
	for equal := uint64(0); ; equal++ {
		lineA, moreA := nextA()
		lineB, moreB := nextB()
		if moreA && lineA == lineB {
			if common = append(common, lineA); len(common) > o.context {
				common = common[1:]
			}
			continue
		}
		if !moreA && !moreB && a.outcome() == b.outcome() {
			fmt.Fprintf(p.out, "%s and %s do the same: %s, %s\n", a.name, b.name, report.Plural(equal, "line"), a.outcome())
			return nil
		}
		var out strings.Builder
		fmt.Fprintf(&out, "%s and %s differ after %s\n", a.name, b.name, report.Plural(equal, "equal line"))
		for _, line := range common {
			out.WriteString("  " + line + "\n")
		}
		o.rest(&out, "- ", a, lineA, moreA, nextA)
		o.rest(&out, "+ ", b, lineB, moreB, nextB)
		if _, err := io.WriteString(p.out, out.String()); err != nil {
			return exitWith(exitNo, err)
		}
		return &exitError{code: exitNo}
	}
}

// rest prints the next lines of a run, or how it ended.
func (o *diffOptions) rest(out *strings.Builder, mark string, r *player, line string, more bool, next func() (string, bool)) {
	for n := 0; more && n <= o.context; n++ {
		out.WriteString(mark + line + "\n")
		line, more = next()
	}
	if !more {
		out.WriteString(mark + r.name + " ends: " + r.outcome() + "\n")
	}
}
