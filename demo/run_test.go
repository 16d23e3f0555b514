package demo

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a demo of three daemons that are a moment apart.
func small(t *testing.T, script string) (Options, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	o := Default()
	o.Daemons, o.WAN, o.Traffic, o.JSON, o.Out = 1, Fast, 300, true, &out
	o.GRPC, o.HTTP, o.Admin = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	all, err := ReadScript("test", script, o.Names())
	if err != nil {
		t.Fatal(err)
	}
	o.Script = all
	return o, &out
}

// director directs a demo: it types commands, and waits for what the reports
// say. The speed of the machine does not matter.
type director struct {
	t       *testing.T
	reports chan Report
	typed   *io.PipeWriter
	end     context.CancelFunc
	ended   chan error
	latest  Report
	notes   string
}

// direct runs a demo until end is called.
func direct(t *testing.T, o Options) *director {
	t.Helper()
	in, typed := io.Pipe()
	out, written := io.Pipe()
	s := &director{t: t, reports: make(chan Report, 1_000), typed: typed, ended: make(chan error, 1)}
	o.In, o.Out = in, written
	ctx, cancel := context.WithCancel(t.Context())
	s.end = cancel
	go func() {
		s.ended <- Run(ctx, o)
		written.Close()
	}()
	go func() {
		defer close(s.reports)
		d := json.NewDecoder(out)
		for r := new(Report); d.Decode(r) == nil; r = new(Report) {
			s.reports <- *r
		}
	}()
	t.Cleanup(func() {
		cancel()
		in.Close()
	})
	return s
}

// until takes reports until cond holds.
func (s *director) until(what string, cond func(r *Report) bool) {
	s.t.Helper()
	await.True(s.t, what, func() bool {
		select {
		case r, ok := <-s.reports:
			if !ok {
				s.t.Fatalf("the demo ended before: %s", what)
			}
			s.latest, s.notes = r, s.notes+strings.Join(r.Notes, "\n")+"\n"
			return cond(&r)
		default:
			return false
		}
	})
}

// does types commands and waits for the replies.
func (s *director) does(line string, replies ...string) {
	s.t.Helper()
	from := len(s.notes)
	await.Done(s.t, line+" is read", func() { _, _ = io.WriteString(s.typed, line+"\n") })
	s.until(strings.Join(replies, ", "), func(*Report) bool {
		return !slices.ContainsFunc(replies, func(w string) bool { return !strings.Contains(s.notes[from:], w) })
	})
}

func TestRegionsCountTogetherAndAgreeAfterACut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	o, _ := small(t, "status")
	s := direct(t, o)
	s.until("counts are known elsewhere, and calls are denied", func(r *Report) bool {
		return r.Traffic.Admitted > 0 && r.Traffic.Denied > 0 && r.KnownAfter.Across.Samples > 0 && r.Ages.Across.Samples > 0
	})
	s.does("cut eu-west", "eu-west is partitioned from all other regions")
	s.until("the partition is seen", func(r *Report) bool { return len(r.WAN.Parts) == 2 })
	s.does("heal", "healed")
	s.until("the counts converge", func(r *Report) bool { return r.Convergence != nil && *r.Convergence > 0 })
	if got := s.latest.Traffic; got.Failed > got.Asked/20 {
		t.Errorf("%d of %d asks failed while all daemons ran", got.Failed, got.Asked)
	}
	s.does("limit spread 5000; budget spread 2%; sleep 0.1; budget spread off",
		"the limit of spread is 5000 instead of 180, on all daemons",
		"spread has overage_budget 2% on all daemons", "rights to 5100 hits", "spread has no overage_budget", "200% over")
	s.does("latency us-east eu-west 20ms; surge login 0x; skew ap-south-0 100ms",
		"us-east and eu-west are 20ms apart", "login gets 0x as many calls", "ap-south-0 is off by 100ms")
	s.does("kill us-east-0", "us-east-0 is killed")
	s.until("a daemon is down", func(r *Report) bool { return r.Daemons.Up == 2 })
	s.does("start us-east-0; status; help", "us-east-0 is back", "ports of gRPC", "surge RULE 10x")
	s.until("all daemons run", func(r *Report) bool { return r.Daemons.Up == 3 })
	s.typed.Close() // the end of the input is not the end
	s.until("another report", func(*Report) bool { return true })
	s.end()
	if err := await.Value(t, "the end of the demo", s.ended); err != nil {
		t.Error(err)
	}
	s.until("the last report", func(r *Report) bool { return r.Done })
	if last := &s.latest; len(last.Worst) != ruleCount || last.Worst["steady"] != 0 || last.Rules[spread].Limit != 5000 {
		t.Errorf("the last is %+v", last)
	}
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	o, _ := small(t, "")
	o.HTTP = lis.Addr().String()
	err = Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), o.HTTP) || !strings.Contains(err.Error(), "--http-addr") {
		t.Errorf("got %v", err)
	}
}

func TestTheEndComesInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	o, out := small(t, "kill us-east-0; kill us-east-0; start eu-west-0; quit")
	o.JSON = false
	var err error
	await.Done(t, "the end of the demo", func() { err = Run(t.Context(), o) })
	if err == nil || !strings.Contains(err.Error(), "2 commands of the script failed") {
		t.Errorf("got %v, want two failures", err)
	}
	for _, want := range []string{"us-east-0 does not run: start it with start us-east-0", "eu-west-0 runs already", "worst overage: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nobody said %q in:\n%s", want, out)
		}
	}
}

func TestOptionsAreValidated(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"0 regions":            func(o *Options) { o.Regions = nil },
		"7 regions":            func(o *Options) { o.Regions = strings.Split("a,b,c,d,e,f,g", ",") },
		"named twice":          func(o *Options) { o.Regions = []string{"a", "A"} },
		"no name of a region":  func(o *Options) { o.Regions = []string{"a b"} },
		"0 daemons":            func(o *Options) { o.Daemons = 0 },
		"27 daemons in all":    func(o *Options) { o.Daemons = 9 },
		"-1 asks":              func(o *Options) { o.Traffic = -1 },
		"the time is negative": func(o *Options) { o.For = -1 },
		"global, fast or none": func(o *Options) { o.WAN = "" },
		"at most 24 fit into":  func(o *Options) { o.Regions, o.Daemons = strings.Split("a,b,c,d,e", ","), 5 },
	} {
		o := Default()
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	o := Default()
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

// TestABudgetThatDaemonsWouldRefuseIsNotWritten: too few rights for each
// daemon, or more than bounds anything.
func TestABudgetThatDaemonsWouldRefuseIsNotWritten(t *testing.T) {
	f, err := newLimitsFile(t.TempDir(), NewRules(500), []string{"us-east", "eu-west", "ap-south"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	set := func(rule string, share rules.PPM) error {
		return f.change(rule, func(r *Rule) { r.Budget, r.HasBudget = share, true })
	}
	if err := set("spread", 2*rules.Percent); err != nil || !f.Rules()[spread].HasBudget {
		t.Errorf("got %v and %+v", err, f.Rules()[spread])
	}
	if n := f.Rules()[spread].Most(); n != 306 {
		t.Errorf("%d hits a window with 2%% over 300, want 306", n)
	}
	was, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]string{"login": "an overage_budget with consistency strict", "burst": "more bounds nothing"} {
		if err := set(rule, 250*rules.Percent); err == nil || !strings.Contains(err.Error(), want) || f.Rules()[burst].HasBudget {
			t.Errorf("%s: got %v, want one with %q", rule, err, want)
		}
	}
	if is, err := os.ReadFile(f.path); err != nil || string(is) != string(was) {
		t.Errorf("the file is another: %v\n%s", err, is)
	}
}
