// Command bench measures what rld promises about its speed and size, each
// figure beside the bare cost or the other side measured in the same run, and
// prints one table. It is for developers: run it in the repository, with
// nothing else running.
//
// Figures over the network come from processes of their own: rld as users run
// it, a gRPC server that answers without looking, and one client for both.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitOK     = 0
	exitMissed = 1 // a bound was missed or a line could not be measured
	exitUsage  = 2
)

// deadline bounds a whole run, children included.
const deadline = 30 * time.Minute

func main() {
	if serve := roleOf(os.Args); serve != nil {
		os.Exit(exitCode(catch(func() { serve(os.Stdin, os.Stdout) })))
	}
	// Children die with the thread that started them, see dieWithParent: this
	// goroutine starts them all and keeps its thread.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// roleOf returns the function of a child process, or nil for the main process.
func roleOf(args []string) func(in io.Reader, out io.Writer) {
	if len(args) != 2 {
		return nil
	}
	return map[string]func(io.Reader, io.Writer){
		roleNoop:      serveNoop,
		roleNoContent: serveNoContent,
		roleNeighbors: serveNeighbors,
		roleRelay:     serveRelay,
		roleClient:    serveJobs,
	}[args[1]]
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
	return exitMissed
}

// options holds the command line.
type options struct {
	only   *regexp.Regexp // of line names
	rounds int            // of each line; 0 selects the line's default
	quick  bool
	json   string // file for the rows, "" for none
	binary string // rld to measure, "" to build it
	paces
}

// paces is how long the parts of a round take.
type paces struct {
	loop time.Duration // one side of a round in process
	load time.Duration // one side of a round over the network
	warm time.Duration // unmeasured load before the first round
	rest time.Duration // of an idle daemon before its memory is read
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	var only string
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&only, "run", "", "measure the lines whose name matches this `regexp`")
	fs.IntVar(&o.rounds, "rounds", 0, "`rounds` a line (default 5; unary-64 takes 7, unary-open 11)")
	fs.BoolVar(&o.quick, "quick", false, "one short round a line: shows that all of it works, judges nothing")
	fs.StringVar(&o.json, "json", "", "write the rows to this `file` too")
	fs.StringVar(&o.binary, "rld", "", "the rld `binary` to measure; without it ./cmd/rld is built")
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: bench [flags]")
		fs.PrintDefaults()
		fmt.Fprintln(stderr, "lines:")
		for _, l := range lines() {
			fmt.Fprintf(stderr, "  %-14s %s\n", l.Name, l.What)
		}
	}
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	err := o.check(fs.Args(), only)
	return o, err
}

// check completes o from the rest of the command line.
func (o *options) check(args []string, only string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.rounds < 0:
		return fmt.Errorf("-rounds %d, want 1 or more", o.rounds)
	}
	var err error
	if o.only, err = regexp.Compile(only); err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	o.paces = paces{loop: time.Second, load: 2 * time.Second, warm: time.Second, rest: 4 * time.Second}
	if o.quick {
		o.paces = paces{loop: 50 * time.Millisecond, load: 200 * time.Millisecond, rest: 300 * time.Millisecond}
		o.warm = o.load / 2
		o.rounds = max(1, o.rounds)
	}
	return nil
}

// run measures and prints, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if err == flag.ErrHelp {
		return exitOK
	}
	var b *bench
	if err == nil {
		b, err = newBench(ctx, o, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return exitUsage
	}
	rows := b.measure(ctx)
	// Children of a run that was broken off were killed.
	if err := b.stop(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "bench: cleaning up: %v\n", err)
	}
	if len(rows) == 0 {
		fmt.Fprintf(stderr, "bench: no line matches -run %s\n", o.only)
		return exitUsage
	}
	r := report{Machine: thisMachine(), Quick: o.quick, Rows: rows}
	fmt.Fprint(stdout, r.text())
	if o.json != "" {
		if err := r.write(o.json); err != nil {
			fmt.Fprintf(stderr, "bench: %v\n", err)
			return exitUsage
		}
	}
	return r.exit()
}

// report is all that a run found.
type report struct {
	Machine machine `json:"machine"`
	Quick   bool    `json:"quick,omitempty"`
	Rows    []row   `json:"rows"`
}

// exit returns the exit code: a quick run is judged by its failures alone.
func (r *report) exit() int {
	if slices.ContainsFunc(r.Rows, func(x row) bool { return x.Problem != "" || !x.OK && x.LeftOut == "" && !r.Quick }) {
		return exitMissed
	}
	return exitOK
}

func (r *report) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "rld on %s\n\n%s", r.Machine, table(r.Rows))
	if r.Quick {
		s.WriteString("\nA quick run is too short to judge: its figures mean nothing.\n")
	}
	return s.String()
}

func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	return nil
}
