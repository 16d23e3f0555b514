package demo

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// fixture is a report of a cut.
func fixture(regions ...string) *Report {
	took := 1.234
	r := &Report{
		Regions:     regions,
		Seconds:     83.5,
		Traffic:     TrafficReport{PerSecond: 498.4, Asked: 41_000, Admitted: 30_000, Denied: 11_000, Failed: 3},
		Daemons:     DaemonsReport{Of: 3 * len(regions), Up: 3*len(regions) - 1, Ready: 3, SeeLeast: 7, SeeMost: 8, Ghosts: 1},
		WAN:         WANReport{Profile: "global", Parts: [][]string{regions}},
		Convergence: &took,
		KnownAfter: Spans{
			InRegion: Quantiles{900, 0.071, 0.163}, Across: Quantiles{1800, 0.314, 0.498},
		},
	}
	if len(regions) > 1 {
		r.WAN.Parts = [][]string{regions[:1], regions[1:]}
		for _, b := range regions[1:] {
			r.WAN.Cuts = append(r.WAN.Cuts, [2]string{regions[0], b})
		}
	}
	for i, rule := range NewRules(500)[:ruleCount] {
		row := RuleReport{Rule: rule.Name, Window: rule.Window, Bound: float64(len(regions) - 1)}
		row.Key, row.Admitted = crowds[i].key(1), make(map[string]int)
		row.Limit, row.Worst, row.Passed, row.Denied = int(rule.Limit), float64(i)*0.0314, 1000, 10
		if i == login {
			row.Strict, row.Most, row.MostOf, row.Full, row.Bound, row.Worst = true, 5, 5, 12, 0, 0
		}
		if i == burst {
			row.Bound, row.Budget, row.SinceBudget = 0.025, new(0.025), new(0.0125)
		}
		for j, region := range regions {
			n := 100*j + 37*i
			if i == login {
				n = 1 - j/5 // at most 5 of 5
			}
			row.Admitted[region] = n
			row.Total += n
		}
		if row.Total > row.Limit {
			row.Over = float64(row.Total-row.Limit) / float64(row.Limit)
		}
		r.Rules = append(r.Rules, row)
	}
	for i, in := range regions {
		for j, of := range regions {
			age := float64(i+j) * 0.11
			if i == len(regions)-1 && j == 0 {
				age = -1
			}
			r.Staleness = append(r.Staleness, StalenessReport{in, of, age})
		}
	}
	return r
}

func TestTable(t *testing.T) {
	var all strings.Builder
	for _, regions := range [][]string{
		{"us-east", "eu-west", "ap-south"},
		{"one"},
		{"us-east-1", "us-east-2", "eu-central-1", "eu-west-1", "ap-northeast-1", "sa-east-1"},
	} {
		lines := Table(fixture(regions...))
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > tableWidth {
				t.Errorf("%d columns: %q", n, l)
			}
			all.WriteString(l + "\n")
		}
		if n := len(lines); n+1+leastScroll > 24 {
			t.Errorf("%d lines leave no room in 24", n)
		}
		all.WriteString(strings.Repeat("=", tableWidth) + "\n")
	}
	golden(t, "table.txt", all.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is not as in %s; run go test ./demo -rewrite and look at the difference\n%s", path, got)
	}
}

func TestPlainIsOneLine(t *testing.T) {
	got := Plain(fixture("us-east", "eu-west", "ap-south"))
	for _, want := range []string{"1:23 up 8/9", "spread 411/300", "login 3/5 strict, worst minute 5 of 5 |", "cut in 2", "converged in 1.23 s"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if strings.Contains(got, "\n") {
		t.Error("more than a line")
	}
}

func TestShortTexts(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{share(0), "-"},
		{share(0.0314), "3.1%"},
		{share(1.5), "150%"},
		{share(2000), ">999x"},
		{count(99_999), "99999"},
		{count(1_234_567), "1234k"},
		{count(12_345_678), "12M"},
		{shorten("eu-west", 9), "eu-west"},
		{shorten("eu-central-1", 8), "eu-cen~1"},
		{clock(3661), "61:01"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// terminal keeps its output.
type terminal struct{ strings.Builder }

func TestScreenDrawsInPlaceAndPromptsBelow(t *testing.T) {
	rows := 24
	var out terminal
	s := &screen{size: func() (int, bool) { return rows, true }, out: writer{w: &out}}
	s.banner("hello")
	r := fixture("us-east", "eu-west", "ap-south")
	height := len(Table(r)) + 1
	s.report(r)
	first := out.String()
	if !strings.HasPrefix(first, "hello\n") || !strings.Contains(first, escClear) || !strings.Contains(first, prompt) {
		t.Errorf("at first: %q", first)
	}
	out.Reset()
	s.report(r)
	again := out.String()
	if strings.Contains(again, escClear) || strings.Contains(again, "\n") || strings.Contains(again, prompt) {
		t.Errorf("again it moved what is below: %q", again)
	}
	if !strings.Contains(again, escSave) || !strings.Contains(again, escBack) {
		t.Error("the cursor does not stay")
	}
	out.Reset()
	s.say("done")
	if got := out.String(); got != "\r"+escRest+"done\n"+prompt {
		t.Errorf("said %q", got)
	}
	rows = 10
	s.report(r)
	if s.height != rows-leastScroll || s.height >= height {
		t.Errorf("a table of %d rows in a terminal of %d", s.height, rows)
	}
	out.Reset()
	s.last(r)
	if got := out.String(); !strings.HasPrefix(got, escNoScope) || !strings.Contains(got, "worst overage: steady none, spread 3.1%") ||
		!strings.Contains(got, "\nlogin: worst minute 5 of 5, 12 used up\n") {
		t.Errorf("at last: %q", got)
	}
}

func TestJSONHoldsOneObjectALine(t *testing.T) {
	var out, err strings.Builder
	v := &jsonView{out: writer{w: &out}, err: writer{w: &err}}
	v.banner("hello")
	v.say("eu-west is cut off")
	v.report(fixture("us-east", "eu-west"))
	v.last(fixture("us-east", "eu-west"))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 || err.String() != "hello\n" {
		t.Fatalf("got %q and %q", out.String(), err.String())
	}
	var r Report
	if err := json.Unmarshal([]byte(lines[0]), &r); err != nil || len(r.Notes) != 1 || len(r.Rules) != ruleCount {
		t.Errorf("%v: %s", err, lines[0])
	}
	if strings.Contains(lines[1], "eu-west is cut off") {
		t.Error("a note comes twice")
	}
}

func TestAWriterThatFailsIsLeftAlone(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	v := &lineView{out: writer{w: f}}
	v.say("x")
	v.say("y")
	if !v.out.failed {
		t.Error("it is still written to")
	}
}
