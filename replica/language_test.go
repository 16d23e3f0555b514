package replica

import (
	"strings"
	"testing"

	"github.com/georld/rld/control"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// TestLanguage checks the limits language of the control log: the sizes of the
// regions decide placements, and a fault has its file, line and column.
func TestLanguage(t *testing.T) {
	const text = `domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: %, overage_budget: 5%}
  - key: host
    rate_limit: {unit: hour, requests_per_unit: 10, algorithm: sliding_log, scope: region}
`
	sizes := []control.RegionSize{{Name: "a", Daemons: 2}, {Name: "b", Daemons: 1}}
	l := Language("b", limits.Options{Replicated: true, Daemons: 99})
	for _, tc := range []struct {
		name, requests string
		want           string
		placed         rules.Placement
	}{
		{"spread", "100", "", rules.Spread},
		{"few rights", "15", "", rules.Owner},
		{"fault", "many", "edge.yaml:4:51: ", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := []control.RuleFile{{Name: "edge.yaml", Text: strings.Replace(text, "%", tc.requests, 1)}}
			set, err := l.Parse(files, sizes)
			if tc.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
					t.Fatalf("error %v, want it to begin with %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if is := set.Rules()[0].Limit.Placed; is != tc.placed {
				t.Errorf("placed %v, want %v", is, tc.placed)
			}
		})
	}
	set, err := l.Parse([]control.RuleFile{{Name: "edge.yaml", Text: strings.Replace(text, "%", "100", 1)}}, sizes)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		rule int
		edit func(*rules.Limit)
		want string
	}{
		{"as it is", 0, func(*rules.Limit) {}, ""},
		{"most budget", 0, func(l *rules.Limit) { l.Budget = rules.Whole }, ""},
		{"budget", 0, func(l *rules.Limit) { l.Budget = rules.Whole + 1 }, "want at most 100%"},
		{"most of a log", 1, func(l *rules.Limit) { l.Requests = limits.MaxSharedLogHits }, ""},
		{"log", 1, func(l *rules.Limit) { l.Requests = limits.MaxSharedLogHits + 1 }, "want at most 1000"},
		{"any log", 1, func(l *rules.Limit) { l.Requests, l.Scope = limits.MaxLogHits+1, rules.NodeLocal }, "want at most 10000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limit := *set.Rules()[tc.rule].Limit
			tc.edit(&limit)
			err := l.Check(&limit, sizes)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
