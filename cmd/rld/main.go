// Command rld is a rate limit daemon and the tools around it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/georld/rld/cmd/rld/bench"
	"github.com/georld/rld/cmd/rld/caller"
	"github.com/georld/rld/cmd/rld/cert"
	"github.com/georld/rld/cmd/rld/keyring"
	"github.com/georld/rld/config"
)

// Exit codes. `rld check` and `rld limits check` answer with theirs: 0 is yes
// and 1 is no, and 2 means that there is no answer.
const (
	exitOK     = 0
	exitNo     = 1 // denied, refused, or failed while running
	exitNoneOf = 2 // wrong usage, or no answer to be had
)

// Further exit codes of the commands about the cluster.
const (
	exitPartly  = 3  // done, and not everywhere in time
	exitUnknown = 4  // sent, and the result is not known: repeat it
	exitUsage   = 64 // wrong usage: nothing was sent
)

// process is the part of the process that commands see.
type process struct {
	out, err io.Writer
	environ  []string
	program  string // as it was started
}

// upstream reports whether the program was started in place of
// envoyproxy/ratelimit, under its name.
func (p process) upstream() bool { return filepath.Base(p.program) == config.UpstreamName }

// upstreamArguments returns the arguments of a program with the name of
// envoyproxy/ratelimit, which serves and ignores all arguments: flags without a
// command are ignored here, too.
func (p process) upstreamArguments(args []string) []string {
	switch {
	case len(args) == 0:
	case !strings.HasPrefix(args[0], "-") || slices.Contains([]string{"-h", "--help", "--version"}, args[0]):
		return args
	default:
		fmt.Fprintf(p.err, "warning: not used, as by envoyproxy/ratelimit: %s\n", strings.Join(args, " ")) // best effort
	}
	return []string{"serve"}
}

// write writes the output of a command, and its warnings and faults to standard
// error.
func (p process) write(out, faults string) error {
	_, errFaults := io.WriteString(p.err, faults)
	_, errOut := io.WriteString(p.out, out)
	return exitWith(exitNoneOf, errors.Join(errFaults, errOut))
}

// warningText returns warnings as lines.
func warningText(warnings []string) string {
	var b strings.Builder
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

func main() {
	os.Exit(run(os.Args[1:], process{
		out: os.Stdout, err: os.Stderr, environ: os.Environ(), program: os.Args[0],
	}))
}

// run executes a command line and returns its exit code. What went wrong is
// on p.err, without the usage.
func run(args []string, p process) int {
	if p.upstream() {
		args = p.upstreamArguments(args)
	}
	root := newRoot(p)
	root.SetArgs(args)
	root.SetOut(p.out)
	root.SetErr(p.err)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		fmt.Fprintf(p.err, "rld: %v; see %s --help\n", err, cmd.CommandPath())
		return exitNoneOf
	}
	if exit.err != nil {
		fmt.Fprintf(p.err, "rld: %v\n", exit.err)
	}
	return exit.code
}

// exitError ends the process with a code. An error that is none is one of
// usage, found before a command began.
type exitError struct {
	code int
	err  error // nil when the command has printed the error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitWith returns an error that ends the process with a code, nil for nil.
func exitWith(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

func newRoot(p process) *cobra.Command {
	root := &cobra.Command{
		Use:   "rld",
		Short: "A rate limit daemon that needs no store",
		Long: "rld answers \"is this request admitted?\" from its own memory: over Envoy's RLS, its own\n" +
			"gRPC API and HTTP, with limits from YAML.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          help,
		Version:       versionLine(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newServe(p), newConfig(p), newLimits(p), newImport(p), newKey(p), newCheck(p), newNetcheck(p), newBudget(p),
		newExplain(p), newStatus(p), newTop(p), newStrict(p), newBench(p),
		newCluster(p), newRegion(p), newDaemon(p), newCert(p), newKeyring(p), newToken(p), newDemo(p), newSim(p), newVersion(p))
	return root
}

func newToken(p process) *cobra.Command {
	fail := func(err error) error { return exitWith(exitNo, err) }
	return group("token", "Work on the tokens of callers", caller.NewTokenNew(p.out, fail))
}

// group returns a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArguments, RunE: help}
	cmd.AddCommand(commands...)
	return cmd
}

// noArguments is cobra.NoArgs for a command that has others below it.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

// one requires one argument that is not empty. things and want name it in the
// error of another number, and empty is the error of an empty one, "" for the
// same.
func one(things, want, empty string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 1 && strings.TrimSpace(args[0]) != "":
			return nil
		case len(args) == 1 && empty != "":
			return errors.New(empty)
		}
		return fmt.Errorf("%d %s given, want %s", len(args), things, want)
	}
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

func newCert(p process) *cobra.Command {
	return cert.New(p.out, func(err error) error { return exitWith(exitNo, err) })
}

func newKeyring(p process) *cobra.Command {
	return keyring.New(p.out, func(err error) error { return exitWith(exitNo, err) })
}

func newBench(p process) *cobra.Command {
	return bench.New(p.out, p.err, func(err error) error { return exitWith(exitNo, err) })
}

func newVersion(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of rld and of the Go that built it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.out, versionLine())
			return exitWith(exitNo, err)
		},
	}
}

// versionLine is the version as printed.
func versionLine() string {
	return fmt.Sprintf("rld %s, built with %s", version(), runtime.Version())
}

// version is what this binary calls itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return describeVersion(info)
}

// describeVersion is the version of the module, or the commit where it has
// none: "v0.3.0", "devel 1a2b3c4d5e6f, modified".
func describeVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, modified := "", false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	out := "devel"
	if revision != "" {
		out += " " + revision[:min(12, len(revision))]
	}
	if modified {
		out += ", modified"
	}
	return out
}

// onSignal calls handle with each of the signals, one call at a time, until
// done is called, which waits for the last call to return.
func onSignal(handle func(os.Signal), signals ...os.Signal) (done func()) {
	came := make(chan os.Signal, 2) // a stop and the second one
	signal.Notify(came, signals...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := range came {
			handle(s)
		}
	}()
	return func() {
		signal.Stop(came)
		close(came)
		<-ended
	}
}

// stopSignals returns a context that the first SIGTERM or SIGINT ends. The
// second one calls exit with the code that a shell gives to a process which
// died of it.
func stopSignals(parent context.Context, exit func(code int)) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(parent)
	first := true
	ended := onSignal(func(s os.Signal) {
		if !first {
			n, _ := s.(syscall.Signal) // as all signals of this system are
			exit(128 + int(n))
		}
		first = false
		cancel()
	}, syscall.SIGTERM, syscall.SIGINT)
	return ctx, func() {
		ended()
		cancel()
	}
}
