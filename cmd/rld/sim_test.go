package main

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// newTestSwarm returns a swarm of fake clusters, and its output.
func newTestSwarm(o swarmOptions, play func(uint64) (*sim.Result, error)) (*swarm, *strings.Builder) {
	var out strings.Builder
	s := newSwarm(o, process{out: &out, err: &out})
	s.play = play
	return s, &out
}

func exitCode(err error) int {
	var exit *exitError
	if !errors.As(err, &exit) {
		return exitOK
	}
	return exit.code
}

// TestSwarmNamesTheLowestSeed lets seed 3 find something, and seed 2, which
// began before, only after that.
func TestSwarmNamesTheLowestSeed(t *testing.T) {
	found := make(chan struct{})
	s, out := newTestSwarm(swarmOptions{runs: 1000, seed: 1, jobs: 2}, func(seed uint64) (*sim.Result, error) {
		r := &sim.Result{Scenario: "swarm", Seed: seed}
		switch seed {
		case 2:
			<-found
			r.Pending = "eu-1 waits"
		case 3:
			r.Auditors = []sim.Audit{{Name: "overage", Checks: 1, Violations: 1}}
			close(found)
		}
		return r, nil
	})
	s.run(t.Context())
	if got := exitCode(s.conclude(false)); got != sim.ExitLiveness {
		t.Errorf("exit code %d, want %d", got, sim.ExitLiveness)
	}
	if s.tally.seeds > 10 {
		t.Errorf("%d seeds were run after something was found", s.tally.seeds)
	}
	for _, want := range []string{
		"\nSeed 2 found something:\n", "\nNot done: eu-1 waits\n",
		"\nTo run it again: rld sim swarm --runs 1 --seed 2 --draw ", "\nDrawn from the seed:\n  version: 1\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing from\n%s", want, out)
		}
	}
}

func TestSwarmExitCodes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		result *sim.Result
		err    error
		want   int
	}{
		{"fine", &sim.Result{}, nil, sim.ExitFine},
		{"crash", nil, &sim.CrashError{Seed: 1}, sim.ExitCrash},
		{"liveness", &sim.Result{Pending: "x"}, nil, sim.ExitLiveness},
		{"correctness", &sim.Result{Auditors: []sim.Audit{{Violations: 1}}}, nil, sim.ExitCorrectness},
		{"not the same twice", nil, &sim.DivergenceError{First: &sim.Result{Seed: 1}, Second: &sim.Result{}}, sim.ExitCorrectness},
		{"cannot be run", nil, errors.New("sim: no rules"), exitNoneOf},
	} {
		s, out := newTestSwarm(swarmOptions{runs: 3, seed: 1, jobs: 1},
			func(uint64) (*sim.Result, error) { return tc.result, tc.err })
		s.run(t.Context())
		if got := exitCode(s.conclude(false)); got != tc.want {
			t.Errorf("%s: exit code %d, want %d\n%s", tc.name, got, tc.want, out)
		}
	}
}

// TestSwarmIsStopped checks that runs which began are finished and counted.
func TestSwarmIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, out := newTestSwarm(swarmOptions{runs: 1000, seed: 1, jobs: 3}, func(seed uint64) (*sim.Result, error) {
		if seed == 20 {
			cancel()
		}
		return &sim.Result{Events: 1}, nil
	})
	s.run(ctx)
	if got := exitCode(s.conclude(true)); got != exitNo {
		t.Errorf("exit code %d, want %d", got, exitNo)
	}
	if !strings.HasPrefix(out.String(), "swarm stopped: ") || !strings.Contains(out.String(), "found nothing") {
		t.Errorf("it printed\n%s", out)
	}
	if n := s.tally.seeds; n < 20 || n > 25 || s.tally.sum.Events != n {
		t.Errorf("%d seeds of %d events", n, s.tally.sum.Events)
	}
}

func TestSwarmEndsWithItsTime(t *testing.T) {
	o := swarmOptions{limit: time.Nanosecond, seed: 5, jobs: 2}
	if err := o.check(false); err != nil || o.runs != math.MaxUint64-5+1 {
		t.Fatalf("%v, %d runs", err, o.runs)
	}
	s, out := newTestSwarm(o, func(uint64) (*sim.Result, error) { return &sim.Result{}, nil })
	s.run(t.Context())
	if err := s.conclude(false); err != nil || s.tally.seeds != 0 {
		t.Errorf("%v after %d seeds\n%s", err, s.tally.seeds, out)
	}
}

func TestSwarmOptions(t *testing.T) {
	for _, tc := range []struct {
		o    swarmOptions
		want string
	}{
		{swarmOptions{runs: 0, jobs: 1}, "--runs 0 runs nothing: use 1 or more"},
		{swarmOptions{runs: 1, jobs: 0}, "--jobs 0: use 1 to 1024"},
		{swarmOptions{runs: 1, jobs: 1, limit: -1}, "--for -1ns: use a time such as 1h"},
	} {
		if err := tc.o.check(true); err == nil || err.Error() != tc.want {
			t.Errorf("%+v: %v, want %s", tc.o, err, tc.want)
		}
	}
	last := swarmOptions{runs: 10, seed: math.MaxUint64, jobs: 1}
	if err := last.check(true); err != nil || last.runs != 1 {
		t.Errorf("%v, %d runs from the last seed", err, last.runs)
	}
}

func TestShellWords(t *testing.T) {
	for word, want := range map[string]string{
		"region-loss": "region-loss", "./a_b.yaml": "./a_b.yaml", "": "''", "my file": "'my file'",
		"it's": `'it'\''s'`, "$HOME": "'$HOME'", "a;b": "'a;b'", "é": "'é'",
	} {
		if got := shellWord(word); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", word, got, want)
		}
	}
}

// TestOutputs checks that what would lose a result is found before the run.
func TestOutputs(t *testing.T) {
	folder := t.TempDir()
	for _, tc := range []struct {
		out  simOutputs
		want string
	}{
		{simOutputs{json: "-", html: folder + "/r.html"}, ""},
		{simOutputs{json: "-", html: "-"}, "--json - and --report -: only one"},
		{simOutputs{json: folder + "/none/r.json"}, "no such file or directory"},
		{simOutputs{html: folder}, "it is a folder"},
	} {
		err := tc.out.check()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v, want %q", tc.out, err, tc.want)
		}
	}
}

func TestTerminals(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(&strings.Builder{}) || isTerminal(null) {
		t.Error("what is no terminal was taken for one")
	}
}

func TestRefill(t *testing.T) {
	for _, tc := range []struct {
		limit rules.Limit
		want  float64
	}{
		{rules.Limit{Unit: rules.Minute, Multiplier: 5, Requests: 7}, 300},
		{rules.Limit{Algorithm: rules.TokenBucket, Unit: rules.Second, Multiplier: 1, Requests: 10, Burst: 20}, 2},
		{rules.Limit{Algorithm: rules.LeakyBucket, Unit: rules.Second, Multiplier: 1, Burst: 20}, 0},
		{rules.Limit{Algorithm: rules.TokenBucket, Unit: rules.Year, Multiplier: 1, Requests: 1, Burst: 1000}, 31_536e6},
	} {
		if got := refill(&tc.limit); got != tc.want {
			t.Errorf("%+v: %v, want %v", tc.limit, got, tc.want)
		}
	}
}

// TestSituationsAreCounted adds up in how many seeds situations took effect,
// and the lowest of these seeds.
func TestSituationsAreCounted(t *testing.T) {
	var sums tally
	for _, seed := range []uint64{9, 2, 5} {
		r := &sim.Result{Seed: seed}
		r.Situations = append(r.Situations, struct {
			Name  string `json:"name"`
			Times uint64 `json:"times"`
		}{"a disk lost", seed % 2 * 3})
		sums.add(r)
	}
	sums.add(&sim.Result{Seed: 1}) // without a control log
	var b strings.Builder
	sums.writeSituations(&b)
	if got := strings.Join(strings.Fields(b.String()), " "); got != "SITUATION SEEDS ONE OF THEM a disk lost 2 5" {
		t.Error(got)
	}
}
