package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/rules"
)

func testNames() Names {
	o := Default()
	return o.Names()
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Command
	}{
		{"", Command{}},
		{"  # nothing", Command{}},
		{"status", Command{Verb: Status}},
		{"HEAL", Command{Verb: Heal}},
		{"?", Command{Verb: Help}},
		{"exit", Command{Verb: Quit}},
		{"cut eu-west", Command{Verb: Cut, A: "eu-west"}},
		{"cut EU-West us-east # both ways", Command{Verb: Cut, A: "eu-west", B: "us-east"}},
		{"kill us-east-1", Command{Verb: Kill, Daemon: "us-east-1"}},
		{"start us-east-1", Command{Verb: Start, Daemon: "us-east-1"}},
		{"latency us-east ap-south 300ms", Command{Verb: Latency, A: "us-east", B: "ap-south", Time: 300 * time.Millisecond}},
		{"latency us-east ap-south 0s", Command{Verb: Latency, A: "us-east", B: "ap-south"}},
		{"surge spread 10x", Command{Verb: Surge, Rule: "spread", Factor: 10}},
		{"surge spread 0.5", Command{Verb: Surge, Rule: "spread", Factor: 0.5}},
		{"limit burst 500", Command{Verb: SetTo, Rule: "burst", Limit: 500}},
		{"limit burst 1,500", Command{Verb: SetTo, Rule: "burst", Limit: 1500}},
		{"skew ap-south-0 -2s", Command{Verb: Skew, Daemon: "ap-south-0", Time: -2 * time.Second}},
		{"budget login 2%", Command{Verb: Budget, Rule: "login", Share: 2 * rules.Percent}},
		{"budget login off", Command{Verb: Budget, Rule: "login", Off: true}},
		{"budget login 0.5%", Command{Verb: Budget, Rule: "login", Share: rules.Percent / 2}},
		{"sleep 10", Command{Verb: Sleep, Time: 10 * time.Second}},
		{"sleep 0.5", Command{Verb: Sleep, Time: 500 * time.Millisecond}},
		{"sleep 1m30s", Command{Verb: Sleep, Time: 90 * time.Second}},
	} {
		got, err := Parse(tt.line, testNames())
		if err != nil || got != tt.want {
			t.Errorf("%q: got %+v, %v; want %+v", tt.line, got, err, tt.want)
		}
	}
}

func TestParseSuggestsACommand(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"cutt eu-west", `there is no command "cutt" (did you mean cut?): use status, cut, heal,`},
		{"cut", "cut takes 1 or 2 words: use cut REGION [REGION]"},
		{"cut eu-wst", `there is no region "eu-wst" (did you mean eu-west?): use us-east, eu-west or ap-south`},
		{"cut mars", `there is no region "mars": use us-east, eu-west or ap-south`},
		{"cut eu-west EU-WEST", "eu-west twice: name two regions"},
		{"heal all", "heal takes nothing more: use heal"},
		{"kill us-east", `there is no daemon "us-east"`},
		{"latency us-east eu-west", "latency takes 3 words: use latency REGION REGION 300ms"},
		{"latency us-east eu-west fast", `the latency "fast" is no time from 0s to 10s: use 300ms`},
		{"latency us-east eu-west -1ms", `the latency "-1ms" is no time from 0s to 10s: use 300ms`},
		{"surge spread lots", `the factor "lots" is none from 0x to 1000x: use 10x`},
		{"surge spread NaNx", `the factor "NaNx" is none from 0x to 1000x: use 10x`},
		{"surge user 10x", `there is no rule "user": use steady, spread, burst or login`},
		{"limit spread 0", `the limit "0" is no number from 1 to 10000000: use 500`},
		{"limit mark 5", `there is no rule "mark"`},
		{"budget spread 2", `the budget "2" is no share from 0% to 100%: use 2%, or off`},
		{"budget spread 101%", `the budget "101%" is no share from 0% to 100%: use 2%, or off`},
		{"skew ap-south-0 25h", `the skew "25h" is no time from -24h0m0s to 24h0m0s: use 2s or -2s`},
		{"sleep", "sleep takes one word: use sleep 10s"},
		{"sleep -1", `the time "-1s" is no time from 0s to 24h0m0s: use 10s`},
		{"sleep inf", "is no time from"},
		{"cut " + strings.Repeat("x", 5000), `"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"`},
	} {
		got, err := Parse(tt.line, testNames())
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: got %+v, %v; want an error with %q", tt.line, got, err, tt.want)
		}
	}
}

func TestHelpNamesEveryCommandOnALine(t *testing.T) {
	lines := HelpLines()
	if len(lines) != len(forms) {
		t.Fatalf("%d lines for %d commands", len(lines), len(forms))
	}
	for i, f := range forms {
		if !strings.HasPrefix(lines[i], "  "+string(f.verb)) || len(lines[i]) > tableWidth {
			t.Errorf("line %d is %q", i, lines[i])
		}
		if !strings.Contains(helpText, f.usage()) {
			t.Errorf("help does not say %q", f.usage())
		}
	}
	for line := range strings.SplitSeq(helpText, "\n") {
		if len(line) > tableWidth {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

func TestReadScript(t *testing.T) {
	text := "# a cut\nsleep 10; cut eu-west # now; this is not read\n\n;; sleep 10;heal\n"
	got, err := ReadScript("cut.txt", text, testNames())
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, c := range got {
		verbs = append(verbs, string(c.Verb))
	}
	if s := strings.Join(verbs, " "); s != "sleep cut sleep heal" {
		t.Errorf("got %s", s)
	}
	_, err = ReadScript("cut.txt", "sleep 1\nheal; cut mars", testNames())
	if err == nil || !strings.HasPrefix(err.Error(), `cut.txt:2: there is no region "mars"`) {
		t.Errorf("got %v", err)
	}
	if _, err := ReadScript("long", strings.Repeat("heal\n", maxCommands+1), testNames()); err == nil {
		t.Error("a script without end was read")
	}
}

func FuzzReadScript(f *testing.F) {
	f.Add("sleep 10; cut eu-west; sleep 10; heal")
	f.Add("latency us-east eu-west 1ns;budget login 1e-9%;surge spread 1e3x")
	n := testNames()
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ReadScript("fuzz", text, n)
		if err != nil && all != nil {
			t.Error("both commands and an error")
		}
		for _, c := range all {
			if c.Verb == "" || c.Time < -maxSkew || c.Time > maxSkew || c.Factor < 0 || c.Factor > maxFactor || c.Limit > maxLimit {
				t.Errorf("out of range: %+v", c)
			}
		}
	})
}
