package demo

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

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

func reports(t *testing.T, out string) []Report {
	t.Helper()
	var all []Report
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var r Report
		if err := d.Decode(&r); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		all = append(all, r)
	}
}

func TestRegionsCountTogetherAndAgreeAfterACut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	o, out := small(t, `sleep 2; cut eu-west; sleep 1.5; heal; sleep 2
		limit spread 5000; budget spread 2%; sleep 0.1; budget spread off; latency us-east eu-west 20ms; surge login 0x; skew ap-south-0 100ms
		kill us-east-0; sleep 0.2; start us-east-0; sleep 1; status; help; quit`)
	in, typing := io.Pipe()
	typing.Close() // the end of the input is not the end
	o.In = in
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	all := reports(t, out.String())
	if len(all) < 5 {
		t.Fatalf("%d reports: %s", len(all), out)
	}
	notes := ""
	cut := false
	for _, r := range all {
		notes += strings.Join(r.Notes, "\n") + "\n"
		cut = cut || len(r.WAN.Parts) == 2
	}
	last := all[len(all)-1]
	switch {
	case !last.Done || len(last.Worst) != ruleCount:
		t.Errorf("the last is %+v", last)
	case last.Convergence == nil || *last.Convergence <= 0 || *last.Convergence > 10:
		t.Errorf("no convergence: %+v", last)
	case !cut:
		t.Error("nothing was seen of the cut")
	case last.Traffic.Admitted == 0 || last.Traffic.Denied == 0 || last.Worst["steady"] != 0:
		t.Errorf("the asks came to %+v, %v", last.Traffic, last.Worst)
	case last.Traffic.Failed > last.Traffic.Asked/20:
		t.Errorf("%d of %d asks failed", last.Traffic.Failed, last.Traffic.Asked)
	case last.Rules[spread].Limit != 5000:
		t.Errorf("the limit is %d", last.Rules[spread].Limit)
	case last.Daemons.Up != 3 || last.KnownAfter.Across.Samples == 0 || last.Ages.Across.Samples == 0:
		t.Errorf("at last %+v, %+v, %+v", last.Daemons, last.KnownAfter, last.Ages)
	}
	for _, want := range []string{
		"eu-west is partitioned from all other regions", "healed", "the limit of spread is 5000 instead of 180, on all daemons",
		"spread has overage_budget 2% on all daemons", "rights to 5100 hits", "spread has no overage_budget", "200% over", "us-east and eu-west are 20ms apart", "login gets 0x as many calls",
		"ap-south-0 is off by 100ms", "us-east-0 is killed", "us-east-0 is back", "budget 2%", "surge RULE 10x",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("nobody said %q in:\n%s", want, notes)
		}
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
	o, out := small(t, "kill us-east-0; kill us-east-0; start eu-west-0")
	o.JSON = false
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := Run(ctx, o)
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
