package report

import (
	"strings"
	"testing"

	"github.com/georld/rld/rules"
)

func TestWhyNoRule(t *testing.T) {
	hour := &rules.Limit{Unit: rules.Hour, Multiplier: 1, Requests: 5}
	set, err := rules.NewSet([]rules.DomainNode{{Name: "edge", Children: []rules.Node{
		{Key: "tier", Value: "premium", Children: []rules.Node{{Key: "user_id", Limit: hour}}},
		{Key: "tier", Value: "free", Limit: hour},
		{Key: "path", Value: "/api/*", Children: []rules.Node{{Key: "method", Value: "GET", Limit: hour}}},
		{Key: "path", Children: []rules.Node{{Key: "ip", Limit: hour}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ domain, asked, why, closest string }{
		{"egde", "tier=free", `there is no domain "egde"`, "edge"},
		{"other", "tier=free", `there is no domain "other"`, ""},
		{"edge", "teir=free", `no rule begins with "teir"`, "tier"},
		{"edge", "x=1", `no rule begins with "x"`, ""},
		{"edge", "tier=fere", `no rule has "tier" with the value "fere"`, "free"},
		{"edge", "tier=gold", `no rule has "tier" with the value "gold"`, ""},
		{"edge", "tier=premium,userid=4", `no rule continues after "tier=premium" with "userid"`, "user_id"},
		{"edge", "tier=free,user_id=4", `no rule continues after "tier=free"`, ""},
		{"edge", "path=/api/x,ip=1", `no rule continues after "path=/api/x" with "ip"`, ""}, // rules do not backtrack
		{"edge", "path=/api/x,method=PUT", `no rule has "method" with the value "PUT"`, ""},
		{"edge", "tier=" + strings.Repeat("x", 100), `no rule has "tier" with the value "` + strings.Repeat("x", 64) + `"...`, ""},
	} {
		var entries []rules.Entry
		for _, e := range strings.Split(tc.asked, ",") {
			key, value, _ := strings.Cut(e, "=")
			entries = append(entries, rules.Entry{Key: key, Value: value})
		}
		if d := set.Domain(tc.domain); d != nil && d.Match(entries) != nil {
			t.Errorf("%s matches", tc.asked)
		}
		if why, closest := whyNoRule(set, tc.domain, entries); why != tc.why || closest != tc.closest {
			t.Errorf("%s: %s (%q), want %s (%q)", tc.asked, why, closest, tc.why, tc.closest)
		}
	}
	if why, _ := whyNoRule(set, "edge", nil); why != "the descriptor has no entry" {
		t.Error(why)
	}
}
