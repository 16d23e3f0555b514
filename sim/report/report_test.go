package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/sim"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata with what came out")

func TestText(t *testing.T) {
	fine := &sim.Result{Scenario: "quiet\x1b[31m", Seed: 7, Regions: 1, Daemons: 1, Decisions: 1, TraceHash: "01"}
	stuck := regionLoss()
	stuck.Auditors = stuck.Auditors[:1]
	stuck.Pending = "us-1 has not heard eu-0 since 300s"
	for name, r := range map[string]*sim.Result{"violated": regionLoss(), "stuck": stuck, "fine": fine} {
		var got strings.Builder
		if err := Text(&got, r, "rld sim run x --seed 7"); err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".txt"
		if *rewrite {
			if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func write(t *testing.T, r *sim.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r, "rld sim run region-loss --seed 1"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// embedded returns the JSON that a page carries, with its numbers as written.
func embedded(t *testing.T, page string) map[string]any {
	t.Helper()
	_, text, found := strings.Cut(page, `<script type="application/json" id="result">`)
	text, _, ended := strings.Cut(text, "</script>")
	if !found || !ended {
		t.Fatal("no JSON in the page")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// scalars gathers the numbers and the texts of JSON.
func scalars(v any, numbers, texts map[string]bool) {
	switch v := v.(type) {
	case json.Number:
		numbers[v.String()] = true
	case string:
		texts[v] = true
	case []any:
		for _, e := range v {
			scalars(e, numbers, texts)
		}
	case map[string]any:
		for _, e := range v {
			scalars(e, numbers, texts)
		}
	}
}

// TestEveryNumber checks that the page shows every figure of the result but
// the samples, which its charts draw, and none that is not in its JSON.
func TestEveryNumber(t *testing.T) {
	r := regionLoss()
	text := write(t, r)
	document := embedded(t, text)
	all := map[string]bool{}
	scalars(document, all, map[string]bool{})
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`<data value="([^"]*)">`).FindAllStringSubmatch(text, -1) {
		shown[m[1]] = true
		if !all[m[1]] {
			t.Errorf("the page shows %s, which is not in its JSON", m[1])
		}
	}
	delete(document, "series")
	figures, texts := map[string]bool{}, map[string]bool{}
	scalars(document, figures, texts)
	for n := range figures {
		if !shown[n] {
			t.Errorf("the page does not show the number %s", n)
		}
	}
	for s := range texts {
		if !strings.Contains(text, html.EscapeString(s)) {
			t.Errorf("the page does not show %q", s)
		}
	}
	for _, f := range r.Series.Faults {
		if !strings.Contains(text, f.Text) {
			t.Errorf("the page does not name the fault %q", f.Text)
		}
	}
}

// TestNothingOutside checks that a page loads nothing from outside, and that
// the texts of a scenario stay text.
func TestNothingOutside(t *testing.T) {
	r := regionLoss()
	r.Scenario = `</title><script>alert("name")</script><img src=x onerror=alert(2)>`
	r.Pending = "</script><script>alert(3)</script>"
	r.Series.Regions[0] = "</script><script>alert(4)</script>"
	r.Series.Faults[0].Text = `"><script>alert(5)</script>`
	text := write(t, r)
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<img") {
		t.Error("a text of the result became an element")
	}
	if got := strings.Count(text, "</script>"); got != 3 {
		t.Errorf("%d ends of scripts, want 3", got)
	}
	for _, outside := range []string{`src="`, `href="`, "@import", "url(", "fetch(", "XMLHttpRequest"} {
		if strings.Contains(text, outside) {
			t.Errorf("the page holds %q: it could read something else", outside)
		}
	}
	if !strings.Contains(text, "Copyright (c) 2022 Leon Sorokin") {
		t.Error("the license of uPlot is missing")
	}
	if got := embedded(t, text)["scenario"]; got != r.Scenario {
		t.Errorf("the JSON says scenario %q, want %q", got, r.Scenario)
	}
}

func TestWithoutSeries(t *testing.T) {
	r := regionLoss()
	r.Series = nil
	if text := write(t, r); strings.Contains(text, "<figure") || strings.Contains(text, "uPlot=") {
		t.Error("a result without samples has charts")
	}
}

func TestChartsAreBounded(t *testing.T) {
	r := &sim.Result{Series: &sim.Series{}}
	for i := range 30 {
		name := Plural(i, "rule")
		r.Rules = append(r.Rules, sim.RuleResult{Rule: name, Admitted: uint64(i)})
		r.Series.Rules = append(r.Series.Rules, sim.RuleSeries{Rule: name})
	}
	drawn, leftOut := charts(r)
	if len(drawn) != maxCharts || leftOut != 30-maxCharts {
		t.Fatalf("%d drawn, %d left out", len(drawn), leftOut)
	}
	for i, c := range drawn {
		if c.Index != 18+i {
			t.Errorf("chart %d is of rule %d, want %d", i, c.Index, 18+i)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{Count(0), "0"},
		{Count(uint64(18446744073709551615)), "18,446,744,073,709,551,615"},
		{Count(-1234), "-1,234"},
		{ratio(0), "0%"},
		{ratio(0.00001), "<0.01%"},
		{ratio(0.04217), "4.22%"},
		{ratio(0.5213), "52.1%"},
		{ratio(1.95), "195%"},
		{ratio(25), "2,500%"},
		{ratio(-0.00001), "0%"},
		{Millis(0.254), "0.25 ms"},
		{Millis(250), "250 ms"},
		{Millis(9999.9), "10,000 ms"},
		{Millis(61234), "61.2 s"},
		{Plural(1, "rule"), "1 rule"},
		{Plural(uint64(1200), "rule"), "1,200 rules"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}
