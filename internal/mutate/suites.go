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

// outcome is what a suite found.
type outcome struct {
	Caught  bool
	By      string  `json:",omitempty"` // the test, or the run and its auditors
	Seconds float64 // until then, or of all of it
	// Absent is true if nothing of the suite runs the mutated code.
	Absent bool `json:",omitempty"`
}

// runner tries mutations.
type runner struct {
	root string
	o    *options
	uses map[string][]string // packages of the module that a package's tests reach
}

// runAll tries all mutations, and keeps and prints each result.
func runAll(ctx context.Context, root string, o *options, list []*mutation, kept *results, out io.Writer) error {
	r := &runner{root: root, o: o}
	if err := r.readUses(ctx); err != nil {
		return err
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
				} else if line != "" {
					fmt.Fprintf(out, "%4d left  %s%s\n", left, m.Name, line)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range list {
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

// overlay is a mutation in files that the go command reads in place of the
// tree's.
type overlay struct {
	folder string // temporary
	file   string // the list of replaced files, "" for the tree as it is
	player string // the built player, "" before that
}

// try tries the suites of a mutation that have no kept result, and returns what
// to print.
func (r *runner) try(ctx context.Context, m *mutation, kept *results) (string, error) {
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	o := &overlay{folder: folder, file: filepath.Join(folder, "overlay.json")}
	mutated := filepath.Join(folder, "mutated.go")
	list, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(r.root, filepath.FromSlash(m.File)): mutated},
	})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(mutated, m.content, 0o600), os.WriteFile(o.file, list, 0o600)); err != nil {
		return "", err
	}
	line := ""
	for _, suite := range r.o.suites {
		out, known := kept.of(m, suite)
		if !known {
			out, err = r.suite(ctx, m, suite, o)
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
func (r *runner) suite(ctx context.Context, m *mutation, suite suiteName, o *overlay) (*outcome, error) {
	out := &outcome{Absent: true}
	begin := time.Now()
	try := func(by string, err error) (bool, error) {
		out.Absent, out.Caught, out.By = false, by != "", by
		return by != "" || err != nil, err
	}
	var err error
	switch ended := false; suite {
	case packageSuite:
		_, err = try(r.test(ctx, m.pkg(), "", o))
	case explorerSuite:
		for _, e := range explorers {
			if r.reaches(e.pkg, m.pkg()) {
				if ended, err = try(r.test(ctx, e.pkg, e.tests, o)); ended {
					break
				}
			}
		}
	case otherSuite:
		for _, pkg := range r.others(m) {
			if ended, err = try(r.test(ctx, pkg, "", o)); ended {
				break
			}
		}
	case scenarioSuite, swarmSuite:
		if r.reaches("internal/mutate", m.pkg()) {
			_, err = try(r.simulate(ctx, suite, o))
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
const limits = "ulimit -t 300; ulimit -v 12582912; exec \"$@\""

// command returns a command in the tree whose process has limits. Property
// tests draw the same values each time, and leave no files.
func (r *runner) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limits, "sh"}, args...)...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=true", "RAPID_SEED=1")
	return cmd
}

// failedTest finds the first test that failed.
var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (Test[^\s/]*|Fuzz[^\s/]*|Example[^\s/]*)`)

// runningTest finds a test that ran when the process ended.
var runningTest = regexp.MustCompile(`(?m)^\s*(?:panic: test timed out.*\n\s*running tests:\n\s*|=== RUN\s+)(Test[^\s/]*)`)

// test runs tests of a package with an overlay: those that match, or all but
// the explorers. It returns the one that failed, "" if none did. A test that
// fails must fail twice, and must pass without the mutation.
func (r *runner) test(ctx context.Context, pkg, tests string, o *overlay) (string, error) {
	args := []string{"-run", tests}
	if tests == "" {
		args = nil
		for _, e := range explorers {
			if e.pkg == pkg {
				args = []string{"-skip", e.tests}
			}
		}
	}
	for range 2 {
		by, err := r.goTest(ctx, pkg, args, o)
		if by == "" || err != nil {
			return "", err
		}
		if !strings.HasPrefix(by, "Test") {
			return pkg + ": " + by, nil // a crash
		}
		one := []string{"-run", "^" + by + "$"}
		again, err := r.goTest(ctx, pkg, one, o)
		if err != nil {
			return "", err
		}
		if again != "" {
			clean, err := r.goTest(ctx, pkg, one, &overlay{})
			if err == nil && clean != "" {
				err = fmt.Errorf("%s of %s fails without a mutation, too", by, pkg)
			}
			return pkg + ": " + by, err
		}
	}
	return "", nil
}

// goTest runs go test and returns which test failed, or how the process ended.
func (r *runner) goTest(ctx context.Context, pkg string, args []string, o *overlay) (string, error) {
	all := []string{"go", "test", "-short", "-failfast", "-vet=off", "-timeout", "5m"}
	if o.file != "" {
		all = append(all, "-overlay", o.file)
	}
	text, err := r.command(ctx, slices.Concat(all, args, []string{"./" + pkg})...).CombinedOutput()
	switch exit := (*exec.ExitError)(nil); {
	case err == nil || ctx.Err() != nil:
		return "", ctx.Err()
	case !errors.As(err, &exit):
		return "", err
	case bytes.Contains(text, []byte("[build failed]")) || bytes.Contains(text, []byte("[setup failed]")):
		return "", fmt.Errorf("it does not compile:\n%s", text)
	}
	if found := failedTest.FindSubmatch(text); found != nil {
		return string(found[1]), nil
	}
	if found := runningTest.FindSubmatch(text); found != nil {
		return "hang in " + string(found[1]), nil
	}
	return "crash: " + firstLine(string(text)), nil
}

// simulate plays the scenarios or the swarm with an overlay. It returns the run
// that failed and its auditors, "" if none did. That run must pass without the
// mutation.
func (r *runner) simulate(ctx context.Context, suite suiteName, o *overlay) (string, error) {
	args := []string{playCommand}
	if suite == swarmSuite {
		args = append(args, "-seeds", fmt.Sprint(r.o.runs))
	}
	found, err := r.player(ctx, args, o)
	if found == nil || err != nil {
		return "", err
	}
	clean, err := r.player(ctx, append(args, "-run", found.Run), &overlay{folder: o.folder})
	if err == nil && clean != nil {
		err = fmt.Errorf("%s fails without a mutation, too: %s", found.Run, clean.What)
	}
	return found.Run + ": " + found.What, err
}

// player builds the player with an overlay, unless it is built, and runs it.
func (r *runner) player(ctx context.Context, args []string, o *overlay) (*finding, error) {
	if o.player == "" {
		binary := filepath.Join(o.folder, "player")
		build := []string{"go", "build", "-o", binary}
		if o.file != "" {
			build = append(build, "-overlay", o.file)
		} else {
			build[3] += ".clean"
			binary = build[3]
		}
		if text, err := r.command(ctx, append(build, "./internal/mutate")...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("it does not compile: %w\n%s", err, text)
		}
		o.player = binary
	}
	cmd := r.command(ctx, append([]string{o.player}, args...)...)
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
