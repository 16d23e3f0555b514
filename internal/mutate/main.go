// Command mutate measures what the tests of this repository and its simulator
// find: it changes one place of the code at a time, and reports what fails.
//
// A mutation is named, with the promise that it breaks (the files of named/),
// or drawn by an operator from a seed. Suites are tried in this order: the
// tests of the mutated package, the explorers, the scenarios, the swarm, and
// the tests of other packages. The first that fails ends a mutation. No file of
// the tree changes: the go command gets an overlay with all mutations in it,
// so everything is built once, and the environment selects a mutation. Results
// are kept by mutation and tree, and an interrupted run continues.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// options holds the command line.
type options struct {
	only    *regexp.Regexp // of names
	files   []string       // patterns of the files that operators change
	drawn   int            // mutations by operators
	seed    uint64
	suites  []suiteName
	all     bool // goes on after a suite that fails
	runs    int  // seeds of the swarm
	shrink  int  // mutations whose runs are shrunk
	jobs    int
	results string
	any     bool // takes results of any tree
	list    bool
	table   bool // prints the known results and runs nothing
	pages   bool // prints the table for docs
	json    string
}

// coreFiles are the files of the core, and those of the daemon that store
// before they send.
var coreFiles = []string{
	"hlc", "crdt", "control", "gossip", "quota", "quota/agent", "quota/epoch", "quota/transfer", "quota/keytable",
	"sticky", "sticky/lease", "sticky/quorum", "sticky/route", "node", "replica", "journal", "wire", "rules",
	"daemon/acceptor.go", "daemon/acceptoropen.go", "daemon/rightsagent.go", "daemon/strict.go", "daemon/replicator.go",
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == playCommand {
		os.Exit(play(os.Args[2:], os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// parseOptions reads the command line.
func parseOptions(args []string) (*options, error) {
	var o options
	var only, files, suites string
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.StringVar(&only, "only", "", "regular expression of names and files")
	f.StringVar(&files, "files", strings.Join(coreFiles, ","), "packages or files that operators change")
	f.IntVar(&o.drawn, "drawn", 54, "number of mutations by operators")
	f.Uint64Var(&o.seed, "seed", 1, "seed of these")
	f.StringVar(&suites, "suites", "package,explorers,scenarios,swarm,others", "what to try, in this order")
	f.BoolVar(&o.all, "all", false, "try all suites, also after one that fails")
	f.IntVar(&o.runs, "runs", 300, "seeds of the swarm")
	f.IntVar(&o.shrink, "shrink", 0, "shrink the runs of so many mutations that the swarm catches, and print what is left")
	f.IntVar(&o.jobs, "j", 1, "mutations at a time")
	f.StringVar(&o.results, "results", "bin/mutate.jsonl", "file that keeps the results")
	f.BoolVar(&o.any, "any-tree", false, "take kept results of other versions of the tree, too")
	f.BoolVar(&o.list, "list", false, "list the mutations and run nothing")
	f.BoolVar(&o.table, "table", false, "print the kept results and run nothing")
	f.BoolVar(&o.pages, "markdown", false, "print the table for a page of docs")
	f.StringVar(&o.json, "json", "", "write the table to this file as JSON, - for standard output")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 || o.drawn < 0 || o.runs < 1 || o.jobs < 1 {
		return nil, errors.New("use -h for the flags; -drawn, -runs and -j are positive")
	}
	var err error
	if o.only, err = regexp.Compile(only); err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	o.files = strings.Split(files, ",")
	if o.shrink > 0 {
		suites = string(swarmSuite)
	}
	for s := range strings.SplitSeq(suites, ",") {
		if !slices.Contains(suiteNames, suiteName(s)) {
			return nil, fmt.Errorf("-suites: %q is none of %v", s, suiteNames)
		}
		o.suites = append(o.suites, suiteName(s))
	}
	return &o, nil
}

// run executes the command line.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	all, err := collect(root, o)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(all), func(m *mutation) bool {
		return !o.only.MatchString(m.Name) && !o.only.MatchString(m.File)
	})
	if o.list {
		for _, m := range list {
			fmt.Fprintf(out, "%s:%d: %s\n\t%s\n", m.File, m.Line, m.Name, cmp.Or(m.Why, m.Change))
		}
		return nil
	}
	kept, err := openResults(root, o)
	if err != nil {
		return err
	}
	if !o.table {
		fmt.Fprintf(out, "%d mutations, drawn with seed %d; results are kept in %s\n", len(list), o.seed, o.results)
		if err := runAll(ctx, root, o, all, list, kept, out); err != nil {
			return err
		}
	}
	if o.shrink > 0 {
		return nil
	}
	t := newTable(list, kept)
	switch {
	case o.json != "":
		err = t.writeJSON(o.json, out)
	case o.pages:
		_, err = io.WriteString(out, t.markdown())
	default:
		_, err = io.WriteString(out, t.text())
	}
	return err
}

// collect returns the named mutations, and then those that are drawn.
func collect(root string, o *options) ([]*mutation, error) {
	named, verdicts, err := readNamed(root)
	if err != nil {
		return nil, err
	}
	drawn, err := draw(root, o.files, o.drawn, o.seed, verdicts)
	return append(named, drawn...), err
}
