package limits

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// TestPlaced checks the places of the rights of loaded rules, under every size
// of limit and cluster.
func TestPlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Daemons: rapid.IntRange(0, 12).Draw(t, "daemons")}
		for i := range rapid.IntRange(0, 3).Draw(t, "regions") {
			o.Regions = append(o.Regions, fmt.Sprint("r", i))
		}
		o.DaemonsOfRegion = o.Daemons / max(len(o.Regions), 1)
		scope := rapid.SampledFrom([]string{"global", "region"}).Draw(t, "scope")
		consistency := rapid.SampledFrom([]string{"partition", "strict"}).Draw(t, "consistency")
		placement := rules.Placement(rapid.IntRange(0, 3).Draw(t, "placement"))
		if consistency == "strict" && placement != rules.Owner {
			placement = rules.Auto
		}
		requests := rapid.IntRange(0, 200).Draw(t, "requests")
		text := fmt.Sprintf("domain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: %d, "+
			"consistency: %s, scope: %s, placement: %s}}]", requests, consistency, scope, placement)

		daemons, regions := o.Daemons, max(len(o.Regions), 1)
		if scope == "region" {
			daemons, regions = o.DaemonsOfRegion, 1
		}
		want := placement
		switch {
		case daemons == 0:
			want = rules.Auto
		case consistency == "strict":
			want = rules.Owner
		case placement != rules.Auto:
		case requests == 0 || requests >= 10*daemons:
			want = rules.Spread
		case requests >= 10*regions:
			want = rules.PerRegion
		default:
			want = rules.Owner
		}
		if want == rules.Owner && scope == "region" {
			want = rules.PerRegion
		}
		granted := want == rules.PerRegion && daemons > regions || want == rules.Owner && daemons > 1
		if daemons > 0 && !granted && consistency != "strict" {
			want = rules.Spread
		}

		set, faults := Parse([]File{{Name: "f.yaml", Data: []byte(text)}}, o)
		if set == nil {
			t.Fatalf("%s\n%+v: refused: %v", text, o, faults)
		}
		l := set.Rules()[0].Limit
		if l.Placed != want || l.Homed() != (granted || consistency == "strict") {
			t.Fatalf("%s\n%+v: placed %s, want %s; homed: %v", text, o, l.Placed, want, l.Homed())
		}
		if l.Homed() && daemons > 0 && l.HomeInRegion() != (want == rules.PerRegion) {
			t.Fatalf("%s\n%+v: placed %s, home in the region: %v", text, o, l.Placed, l.HomeInRegion())
		}
	})
}

// TestWeightsOfALimit checks the weights that the engine reads.
func TestWeightsOfALimit(t *testing.T) {
	set, faults := parseOne("domain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 9, " +
		"overage_budget: 2%, weights: {us: 50.5%, ap: 0%, eu: 49.5%}}}]")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := []rules.Weight{{Region: "ap"}, {Region: "eu", Share: 495_000}, {Region: "us", Share: 505_000}}
	if diff := cmp.Diff(want, set.Rules()[0].Limit.Weights); diff != "" {
		t.Error(diff)
	}
}

// TestNotes checks that a default that was chosen for a rule is neither an
// error nor a warning.
func TestNotes(t *testing.T) {
	files := []File{{Name: "f.yaml", Data: []byte("domain: d\ndescriptors: [{key: k, rate_limit: " +
		"{unit: hour, requests_per_unit: 99, overage_budget: 2%}}]")}}
	_, faults := Parse(files, Options{Daemons: 4})
	notes := faults.Notes()
	if faults.Err() != nil || len(faults.Warnings()) != 0 || len(notes) != 1 || notes[0].Severity.String() != "note" {
		t.Errorf("got %v", faults)
	}
}

// TestRightsBounds checks that neither weights nor notes grow without end.
func TestRightsBounds(t *testing.T) {
	for _, tc := range []struct {
		regions int
		want    string
	}{{maxWeights, ""}, {maxWeights + 1, "weights of 65 regions; at most 64"}} {
		text := "r0: 100%"
		for i := 1; i < tc.regions; i++ {
			text += fmt.Sprintf(", r%d: 0%%", i)
		}
		_, faults := parseOne("domain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, overage_budget: 2%, weights: {" +
			text + "}}}]")
		if got := faults.String(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%d regions: got %q, want %q", tc.regions, got, tc.want)
		}
	}

	text := "domain: d\ndescriptors:\n"
	for i := range 100 + 7 {
		text += fmt.Sprintf("- {key: k%d, rate_limit: {unit: hour, requests_per_unit: 99, consistency: partition}}\n", i)
	}
	set, faults := Parse([]File{{Name: "f.yaml", Data: []byte(text)}}, Options{Daemons: 2})
	if set == nil || len(faults) != 100+1 || faults[100].String() != "note: and 7 more\n" {
		t.Errorf("%d diagnostics for %d notes, the last: %v", len(faults), 100+7, faults[len(faults)-1])
	}
}
