package sim

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim/load"
)

// parsed compiles limits or fails the test.
func parsed(t testing.TB, text string) *rules.Set {
	t.Helper()
	set, diags := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(text)}}, limits.Options{})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

const smallLimits = `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 20}
`

// small is a cluster of two regions with two daemons each for a few seconds.
func small(t testing.TB) *Config {
	cfg := Default()
	cfg.Name, cfg.Duration = "small", 5*time.Second
	cfg.Regions = []Region{{"eu", 2}, {"us", 2}}
	cfg.Rules = parsed(t, smallLimits)
	cfg.Workloads = []load.Workload{{
		Name: "users", Domain: "edge", Hits: 1, Rate: 200, Keys: 10, Zipf: 1,
		Descriptors: [][]rules.Entry{{{Key: "user", Value: load.Drawn}}},
	}}
	return &cfg
}

// TestRunRepeats: a seed gives one run, whatever is recorded of it, and another
// seed another.
func TestRunRepeats(t *testing.T) {
	hashes := make(map[string]bool)
	for _, shards := range []int{1, 4} {
		for seed := range uint64(3) {
			cfg := small(t)
			cfg.Shards, cfg.Seed = shards, seed
			first, err := RunTwice(cfg, Options{Auditors: TestAuditors()})
			if err != nil {
				t.Fatal(err)
			}
			if first.Code() != ExitFine {
				t.Errorf("exit %d, pending %q, %v", first.Code(), first.Pending, violated(first))
			}
			bare, err := Run(cfg, Options{Series: true})
			if err != nil {
				t.Fatal(err)
			}
			if bare.TraceHash != first.TraceHash {
				t.Errorf("trace %s with auditors and without a series, %s the other way", first.TraceHash, bare.TraceHash)
			}
			hashes[first.TraceHash] = true
		}
	}
	if len(hashes) != 6 {
		t.Errorf("%d different runs of 6", len(hashes))
	}
}

// TestRunTwiceCatchesMapOrder: a leak of map order is seen in every seed.
func TestRunTwiceCatchesMapOrder(t *testing.T) {
	for seed := range uint64(20) {
		cfg := small(t)
		cfg.Seed, cfg.Duration = seed, time.Second
		again := ""
		for i := range 2 {
			_, r, err := run(cfg, Options{}, leakMapOrder)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 && r.TraceHash == again {
				t.Errorf("seed %d: two runs have one trace", seed)
			}
			again = r.TraceHash
		}
	}
}

// leakMapOrder lets clients draw a number for each daemon that a map yields
// before the first one.
func leakMapOrder(w *World) {
	daemons := make(map[*Daemon]bool)
	for _, d := range w.daemons {
		daemons[d] = true
	}
	w.auditors = watching(append(w.auditors.all, &Auditor{Decided: func(*Decided) {
		for d := range daemons {
			if d.Index == 0 {
				return
			}
			w.load.rng.Uint64()
		}
	}}))
}

// TestTimeDoesNotGoBack: an event that is due in the past ends the run.
func TestTimeDoesNotGoBack(t *testing.T) {
	w, _, err := run(small(t), Options{}, func(w *World) { w.events.push(w.now-1, evViews, 0) })
	if err == nil || !strings.Contains(err.Error(), "views at -3.000000001s is due in the past, it is -3s") {
		t.Errorf("%v after %d events", err, w.count)
	}
}

// TestCrashIsReported: a panic anywhere is an error that names run and seed.
func TestCrashIsReported(t *testing.T) {
	cfg := small(t)
	cfg.Seed = 77
	w := newWorld(cfg)
	w.prepare()
	_, err := guarded(w, func() *Result {
		w.daemons[0].Nodes = make([]*node.Node, 1)
		w.drain(w.daemons[0], allShards)
		return nil
	})
	crash := (*CrashError)(nil)
	if !errors.As(err, &crash) || len(crash.Stack) == 0 {
		t.Fatalf("%v", err)
	}
	if !strings.HasPrefix(err.Error(), "sim: small, seed 77: crash at -3s, ") {
		t.Error(err)
	}
}

// TestCrashNamesItsEvent lets a daemon crash in the middle of a run. The last
// line of a trace is of the event that the error names.
func TestCrashNamesItsEvent(t *testing.T) {
	cfg := small(t)
	last := ""
	_, _, err := run(cfg, Options{Trace: &Trace{From: -time.Minute, To: time.Minute, Line: func(l string) { last = l }}}, func(w *World) {
		post := w.steps.post
		w.steps.post = func(d *Daemon, out []gossip.Message) {
			if post(d, out); d.Name == "us-0" && w.now > 2*time.Second {
				panic("planted")
			}
		}
	})
	crash, is := errors.AsType[*CrashError](err)
	if !is || crash.At <= 2*time.Second {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`^event (\d+), \w+ at us-0$`).FindStringSubmatch(crash.Event)
	if m == nil || !slices.Contains(strings.Fields(last), m[1]) {
		t.Errorf("%s, after %s", crash.Event, last)
	}
}

// TestIncarnationReuse checks that a mutation is in force when it is requested:
// a restarted daemon has its former incarnation, and otherwise another.
func TestIncarnationReuse(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		cfg := small(t)
		cfg.Settle = 0
		m := &mutation{reuseIncarnation: reuse}
		cfg.Faults = []Fault{{Kind: Crash, At: time.Second, For: time.Second, From: []string{"eu-0"}}}
		w, _, err := run(cfg, Options{}, m.rig)
		if err != nil {
			t.Fatal(err)
		}
		var incarnations []string
		for _, m := range w.membership.all {
			if m.daemon == 0 {
				incarnations = append(incarnations, m.incarnations[0].String())
			}
		}
		if len(incarnations) != 2 || (incarnations[0] == incarnations[1]) != reuse {
			t.Errorf("reuse %t: incarnations %v", reuse, incarnations)
		}
	}
}

// TestSeries: the columns of a series are of one length and add up to the
// totals of the result.
func TestSeries(t *testing.T) {
	cfg := small(t)
	cfg.Faults = []Fault{{Kind: Pause, At: time.Second, For: time.Second, From: []string{"us"}}}
	r, err := Run(cfg, Options{Auditors: TestAuditors(), Series: true})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Series
	n := len(s.Seconds)
	if n < 200 || n > 600 || len(s.InRegionMs) != n || len(s.AcrossMs) != n {
		t.Errorf("%d rows, %d and %d ages", n, len(s.InRegionMs), len(s.AcrossMs))
	}
	admitted := 0.0
	for _, region := range s.Rules[0].Admitted {
		if len(region) != n {
			t.Errorf("%d rows of %d", len(region), n)
		}
		for _, v := range region {
			admitted += v
		}
	}
	if uint64(admitted) != r.Rules[0].Admitted || r.Admitted != r.Rules[0].Admitted {
		t.Errorf("%v hits in the series, %d of the rule, %d of the run", admitted, r.Rules[0].Admitted, r.Admitted)
	}
	if len(s.Faults) != 1 || s.Faults[0] != (FaultRecord{1, 2, "us paused"}) {
		t.Errorf("faults %+v", s.Faults)
	}
}

func TestExpectations(t *testing.T) {
	cfg := small(t)
	figure := func(name string) *Figure {
		return &Figures[slices.IndexFunc(Figures, func(f Figure) bool { return f.Name == name })]
	}
	cfg.Expect = Expect{
		Claims: []Claim{{figure("admitted"), 1}, {figure("denied"), 1_000_000}},
		Seen:   []gossip.EventKind{gossip.PeerLeft}, NotSeen: []gossip.EventKind{gossip.PeerJoined},
	}
	r, err := Run(cfg, Options{Auditors: TestAuditors()})
	if err != nil {
		t.Fatal(err)
	}
	a := r.Auditors[len(r.Auditors)-1]
	first := strings.Contains(a.First, "expected at least 1000000")
	if a.Name != "expectations" || a.Checks != 4 || a.Violations != 3 || !first {
		t.Errorf("%+v", a)
	}
	if r.Code() != ExitCorrectness {
		t.Errorf("exit %d", r.Code())
	}
}

// TestPendingHasAReason: a core that cannot agree is reported with a reason.
func TestPendingHasAReason(t *testing.T) {
	cfg := small(t)
	cfg.Settle = time.Millisecond
	cfg.Network.Across.Delay = 10 * time.Second
	r, err := Run(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != ExitLiveness || r.Pending == "" {
		t.Errorf("exit %d, pending %q", r.Code(), r.Pending)
	}
}

// violated lists the auditors that found something.
func violated(r *Result) []Audit {
	var out []Audit
	for _, a := range r.Auditors {
		if a.Violations > 0 {
			out = append(out, a)
		}
	}
	return out
}
