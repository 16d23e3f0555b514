package report

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

func parseRules(t *testing.T, text string) *rules.Set {
	t.Helper()
	set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: []byte(text)}}, limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

const limit = "rate_limit: {unit: hour, requests_per_unit: 5}"

// TestExampleCalls: calls meet a limit of the rules, and mean the same to curl,
// to a shell and to the rules.
func TestExampleCalls(t *testing.T) {
	for _, tc := range []struct{ name, limits, query, arguments string }{
		{
			"the embedded examples", "{domain: edge, descriptors: [{key: a, " + limit + "}, " +
				"{key: tier, descriptors: [{key: user_id, descriptors: [{key: endpoint, " + limit + "}]}]}]}",
			"domain=edge&tier=free&user_id=abc&endpoint=/login",
			"--domain edge tier=free user_id=abc endpoint=/login",
		},
		{
			"the first with a limit", "{domain: shop, descriptors: [{key: free}, " +
				"{key: out, rate_limit: {unlimited: true}}, {key: plan, value: gold, descriptors: [{key: user, " + limit + "}]}]}",
			"domain=shop&plan=gold&user=abc", "--domain shop plan=gold user=abc",
		},
		{
			"wildcards", `{domain: d, descriptors: [{key: path, value: "/a/*/b*", ` + limit + "}]}",
			"domain=d&path=/a/x/bx", "--domain d path=/a/x/bx",
		},
		{
			"special characters",
			`{domain: "it's & so", descriptors: [{key: k y, value: "50% $HOME=ä", ` + limit + "}]}",
			"domain=it%27s+%26+so&k+y=50%25+%24HOME%3D%C3%A4", `--domain 'it'\''s & so' 'k y=50% $HOME=ä'`,
		},
		{
			"reserved names",
			`{domain: d, descriptors: [{key: hits, descriptors: [{key: b, value: "1,2:3", ` + limit + "}]}]}",
			"domain=d&d=hits:abc,b:1%2C2%3A3", "--domain d hits=abc b=1,2:3",
		},
		{
			"ambiguous paths and flags",
			`{domain: d, descriptors: [{key: a, value: "b > c", ` + limit + "}, {key: -x, " + limit +
				`}, {key: "a=b", ` + limit + `}, {key: "a\u00a0b", ` + limit + "}, {key: z, " + limit + "}]}",
			"domain=d&z=abc", "--domain d z=abc",
		},
	} {
		set := parseRules(t, tc.limits)
		s, ok := newExampleCall(set)
		if !ok {
			t.Errorf("%s: no call", tc.name)
			continue
		}
		if diff := cmp.Diff([]string{tc.query, tc.arguments}, []string{s.query(), s.arguments()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if got, want := shellWords(t, s.arguments()), words(s); cmp.Diff(want, got) != "" {
			t.Errorf("%s: a shell reads %q, want %q", tc.name, got, want)
		}
	}
	for _, text := range []string{
		"{domain: d, descriptors: [{key: a}, {key: b, rate_limit: {unlimited: true}}]}",
		"{domain: d}",
	} {
		if s, ok := newExampleCall(parseRules(t, text)); ok {
			t.Errorf("%v for %s, without any limit", s, text)
		}
	}
}

func words(s exampleCall) []string {
	out := []string{"--domain", s.domain}
	for _, e := range s.entries {
		out = append(out, e.Key+"="+e.Value)
	}
	return out
}

func shellWords(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
