package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// suiteName is a way to find mutations.
type suiteName string

// The suites, in the order in which they are tried.
const (
	packageSuite  suiteName = "package"   // the tests of the mutated package, without explorers
	explorerSuite suiteName = "explorers" // those that try schedules
	scenarioSuite suiteName = "scenarios" // those found by the swarm, and the built-in ones
	swarmSuite    suiteName = "swarm"
	otherSuite    suiteName = "others" // the tests of packages that use the mutated one
)

var suiteNames = []suiteName{packageSuite, explorerSuite, scenarioSuite, swarmSuite, otherSuite}

// explorers are the tests that try many schedules, by package.
var explorers = []struct{ pkg, tests string }{
	{"control", "^(TestCuts|TestFoundings|TestStorms|TestTornFounding|TestTornRecovery|TestTornWrites)$"},
	{"quota/epoch", "^(TestExplore|TestExploreUnion|TestWander)$"},
	{"quota/agent", "^(TestChaos|TestChaosHeals)$"},
	{"quota/transfer", "^TestBoundHoldsAnywhere$"},
	{"sticky/quorum", "^(TestExplore|TestWander)$"},
	{"sticky/lease", "^TestLimitHoldsIn"},
	{"journal", "^(TestHistories|TestDisks)$"},
	{"node", "^TestRightsStorm$"},
	{"sim/explore", "^(TestExploreSmallScopes|TestExploreIsDeterministic)$"},
}

// otherPackages are those whose tests are tried in the last suite.
var otherPackages = regexp.MustCompile(
	`^(gossip|gossip/link|quota/.*|sticky/.*|node|replica|journal|wire|limits|sim|sim/scenario|daemon)$`)

// outcome is the result of one suite.
type outcome struct {
	Caught  bool
	By      string  `json:",omitempty"` // the test, or the run and its auditors
	Seconds float64 // until then, or of all of it
	// Shrunk is the run of the swarm, after it was shrunk.
	Shrunk *shrunk `json:",omitempty"`
	// Absent is true if nothing of the suite runs the mutated code.
	Absent bool `json:",omitempty"`
}

// runner tries mutations.
type runner struct {
	root     string
	o        *options
	uses     map[string][]string // packages of the module that a package's tests reach
	folder   string              // of the bundle and of the binaries built with it
	bundle   *bundle
	building sync.Mutex
	failing  []string // runs of the simulator that fail without a mutation
}

// runAll tries the mutations of list, and keeps and prints each result. The
// program contains all mutations, so that the cache of the go command works.
func runAll(ctx context.Context, root string, o *options, all, list []*mutation, kept *results, out io.Writer) error {
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r := &runner{root: root, o: o, folder: folder}
	if err := r.readUses(ctx); err != nil {
		return err
	}
	if r.bundle, err = newBundle(root, folder, all); err != nil {
		return err
	}
	if o.shrink > 0 {
		return r.shrinkAll(ctx, list, kept, out)
	}
	work := make(chan *mutation)
	var done sync.WaitGroup
	var mu sync.Mutex
	var failed error
	left := len(list)
	for range o.jobs {
		done.Go(func() {
			for m := range work {
				line, err := r.try(ctx, m, kept)
				mu.Lock()
				if left--; err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", m.Name, err))
					fmt.Fprintf(out, "%4d left  %s: %v\n", left, m.Name, err)
				} else if line != "" {
					fmt.Fprintf(out, "%4d left  %s%s\n", left, m.Name, line)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range drawnOrder(list, o.seed) {
		if m.Equivalent != "" {
			left--
			continue
		}
		select {
		case work <- m:
		case <-ctx.Done():
		}
	}
	close(work)
	done.Wait()
	return cmp.Or(ctx.Err(), failed)
}

// drawnOrder sorts mutations so that the results of an interrupted run are a
// fair sample.
func drawnOrder(list []*mutation, seed uint64) []*mutation {
	return slices.SortedFunc(slices.Values(list), func(a, b *mutation) int {
		return strings.Compare(rank(seed, a.Name), rank(seed, b.Name))
	})
}

// readUses reads which packages the tests of a package reach.
func (r *runner) readUses(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-test", "-json=ImportPath,Deps", "./...")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	const module = "github.com/georld/rld/"
	r.uses = map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := dec.Decode(&p); err != nil {
			return err
		}
		name, isTest := strings.CutSuffix(strings.TrimPrefix(p.ImportPath, module), ".test")
		if !isTest && name != "internal/mutate" {
			continue
		}
		var deps []string
		for _, d := range p.Deps {
			d, _, _ = strings.Cut(d, " ") // "gossip [gossip.test]"
			if d, ok := strings.CutPrefix(d, module); ok {
				deps = append(deps, strings.TrimSuffix(d, "_test"))
			}
		}
		r.uses[name] = append(r.uses[name], deps...)
	}
	return nil
}

// reaches reports whether the tests of a package, or the player, run code of
// another one.
func (r *runner) reaches(pkg, code string) bool {
	return pkg == code || slices.Contains(r.uses[pkg], code)
}

// try tries the suites of a mutation that have no kept result, and returns the
// line to print.
func (r *runner) try(ctx context.Context, m *mutation, kept *results) (string, error) {
	line := ""
	for _, suite := range r.o.suites {
		out, known := kept.of(m, suite)
		if !known {
			var err error
			out, err = r.suite(ctx, m, suite)
			if err != nil || ctx.Err() != nil {
				return line, cmp.Or(ctx.Err(), err)
			}
			if err := kept.add(m, suite, out); err != nil {
				return line, err
			}
			line += fmt.Sprintf("\n           %s: %s", suite, out)
		}
		if out.Caught && !r.o.all {
			break
		}
	}
	return line, nil
}

// String returns a cell of the table.
func (o *outcome) String() string {
	switch {
	case o.Absent:
		return "not run by it"
	case o.Caught:
		return fmt.Sprintf("caught by %s, %.0f s", o.By, o.Seconds)
	}
	return fmt.Sprintf("not caught, %.0f s", o.Seconds)
}

// suite tries one suite.
func (r *runner) suite(ctx context.Context, m *mutation, suite suiteName) (*outcome, error) {
	out, n := &outcome{Absent: true}, r.bundle.numbers[m]
	begin := time.Now()
	try := func(by string, err error) (bool, error) {
		out.Absent, out.Caught, out.By = false, by != "", by
		return by != "" || err != nil, err
	}
	var err error
	switch ended := false; suite {
	case packageSuite:
		_, err = try(r.test(ctx, m.pkg(), "", n))
	case explorerSuite:
		for _, e := range explorers {
			if r.reaches(e.pkg, m.pkg()) {
				if ended, err = try(r.test(ctx, e.pkg, e.tests, n)); ended {
					break
				}
			}
		}
	case otherSuite:
		if ended, err = try(r.test(ctx, m.pkg(), full, n)); ended {
			break
		}
		for _, pkg := range r.others(m) {
			if ended, err = try(r.test(ctx, pkg, "", n)); ended {
				break
			}
		}
	case scenarioSuite, swarmSuite:
		if r.reaches("internal/mutate", m.pkg()) {
			_, err = try(r.simulate(ctx, suite, n))
		}
	}
	out.Seconds = time.Since(begin).Seconds()
	return out, err
}

// others returns the packages whose tests run the mutated code, ascending.
func (r *runner) others(m *mutation) (list []string) {
	for pkg := range r.uses {
		if pkg != m.pkg() && otherPackages.MatchString(pkg) && r.reaches(pkg, m.pkg()) {
			list = append(list, pkg)
		}
	}
	slices.Sort(list)
	return list
}

// limits keep a mutation from taking the machine with it: seconds of CPU time
// of a process, and KiB of memory.
const limits = "ulimit -t %d; ulimit -v 12582912; exec \"$@\""

// command returns a command with limits that runs a mutation by its number, 0
// for none. Property tests draw the same values each time, and leave no files.
func (r *runner) command(ctx context.Context, n int, cpu time.Duration, args ...string) *exec.Cmd {
	limit := fmt.Sprintf(limits, int(cpu.Seconds()))
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limit, "sh"}, args...)...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=true", "RAPID_SEED=1", fmt.Sprintf("%s=%d", selector, n))
	return cmd
}

// binary returns the program of a package, or that of its tests, with all
// mutations in it, and builds it first if necessary.
func (r *runner) binary(ctx context.Context, pkg string, args ...string) (string, error) {
	r.building.Lock()
	defer r.building.Unlock()
	file := filepath.Join(r.folder, strings.ReplaceAll(pkg, "/", "-")+"-"+args[0])
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat(args, []string{"-overlay", r.bundle.overlay, "-o", file, "./" + pkg})...)
	cmd.Dir = r.root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not build with the mutations in it: %w\n%s", pkg, err, text)
	}
	return file, nil
}

// failedTest finds the first test that failed.
var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: ((?:Test|Fuzz|Example)[^\s/]*)`)

// runningTest finds a test that ran when the process ended.
var runningTest = regexp.MustCompile(`(?m)^\s*running tests:\n\s*(Test[^\s/]*)`)

// full stands for all tests of a package, without -short.
const full = "full"

// test runs tests of a package with a mutation: those that match, all that are
// not explorers, or all in full. It returns the one that failed, "" if none
// did. A test that fails must fail twice, and must pass without the mutation.
func (r *runner) test(ctx context.Context, pkg, tests string, n int) (string, error) {
	args := []string{"-test.short", "-test.run", tests}
	switch tests {
	case full:
		args = nil
	case "":
		args = args[:1]
		for _, e := range explorers {
			if e.pkg == pkg {
				args = append(args, "-test.skip", e.tests)
			}
		}
	}
	for range 2 {
		by, err := r.runTests(ctx, pkg, args, n)
		if by == "" || err != nil {
			return "", err
		}
		if !strings.HasPrefix(by, "Test") {
			return pkg + ": " + by, nil // a crash
		}
		one := []string{"-test.run", "^" + by + "$"}
		if tests != full {
			one = append(one, "-test.short")
		}
		again, err := r.runTests(ctx, pkg, one, n)
		if err != nil {
			return "", err
		}
		if again != "" {
			clean, err := r.runTests(ctx, pkg, one, 0)
			if err == nil && clean != "" {
				err = fmt.Errorf("%s of %s fails without a mutation, too", by, pkg)
			}
			return pkg + ": " + by, err
		}
	}
	return "", nil
}

// runTests runs tests of a package and returns which one failed, or how the
// process ended.
func (r *runner) runTests(ctx context.Context, pkg string, args []string, n int) (string, error) {
	file, err := r.binary(ctx, pkg, "test", "-c", "-vet=off")
	if err != nil {
		return "", err
	}
	all := []string{file, "-test.failfast", "-test.timeout", "5m"}
	limit := 5 * time.Minute
	if slices.Contains(args, "-test.short") {
		limit = time.Minute
	}
	cmd := r.command(ctx, n, limit, append(all, args...)...)
	cmd.Dir = filepath.Join(r.root, filepath.FromSlash(pkg))
	text, err := cmd.CombinedOutput()
	switch exit := (*exec.ExitError)(nil); {
	case err == nil || ctx.Err() != nil:
		return "", ctx.Err()
	case !errors.As(err, &exit):
		return "", err
	}
	if found := failedTest.FindSubmatch(text); found != nil {
		return string(found[1]), nil
	}
	if found := runningTest.FindSubmatch(text); found != nil {
		return "hang in " + string(found[1]), nil
	}
	return "crash: " + firstLine(string(text)), nil
}

// simulate plays the scenarios or the swarm with a mutation. It returns the run
// that failed and its auditors, "" if none did. Runs that fail without the
// mutation, too, are left out from then on.
func (r *runner) simulate(ctx context.Context, suite suiteName, n int) (string, error) {
	args := []string{playCommand}
	if suite == swarmSuite {
		args = append(args, "-seeds", fmt.Sprint(r.o.runs))
	}
	for {
		r.building.Lock()
		without := strings.Join(r.failing, ",")
		r.building.Unlock()
		found, err := r.play(ctx, append(args, "-without", without), n)
		if found == nil || err != nil {
			return "", err
		}
		clean, err := r.play(ctx, append(args, "-run", found.Run), 0)
		if clean == nil || err != nil {
			return found.Run + ": " + found.What, err
		}
		r.building.Lock()
		r.failing = append(r.failing, found.Run)
		r.building.Unlock()
	}
}

// play runs the player with a mutation. It returns nil if nothing failed.
func (r *runner) play(ctx context.Context, args []string, n int) (*finding, error) {
	file, err := r.binary(ctx, "internal/mutate", "build")
	if err != nil {
		return nil, err
	}
	cmd := r.command(ctx, n, 15*time.Minute, append([]string{file}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err == nil || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var f finding
	if json.Unmarshal(text, &f) == nil {
		return &f, nil
	}
	// The process ended in a way that it could not report.
	f.What = "crash"
	for line := range strings.Lines(stderr.String()) {
		if run, ok := strings.CutPrefix(strings.TrimSpace(line), "playing "); ok {
			f.Run = run
		} else if strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "panic:") {
			f.What = strings.TrimSpace(line)
		}
	}
	return &f, nil
}
