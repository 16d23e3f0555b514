package daemon

import (
	"context"
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

// The calls are of the rules in force, and mean the same to curl, to a shell
// and to the rules.
func TestSampleCalls(t *testing.T) {
	for _, tc := range []struct{ name, limits, query, arguments string }{
		{"the examples' own", "{domain: edge, descriptors: [{key: a, " + limit + "}, " +
			"{key: tier, descriptors: [{key: user_id, descriptors: [{key: endpoint, " + limit + "}]}]}]}",
			"domain=edge&tier=free&user_id=abc&endpoint=/login",
			"--domain edge tier=free user_id=abc endpoint=/login"},
		{"the first with a limit", "{domain: shop, descriptors: [{key: free}, " +
			"{key: out, rate_limit: {unlimited: true}}, {key: plan, value: gold, descriptors: [{key: user, " + limit + "}]}]}",
			"domain=shop&plan=gold&user=abc", "--domain shop plan=gold user=abc"},
		{"wildcards", `{domain: d, descriptors: [{key: path, value: "/a/*/b*", ` + limit + "}]}",
			"domain=d&path=/a/x/bx", "--domain d path=/a/x/bx"},
		{"what shells and queries read",
			`{domain: "it's & so", descriptors: [{key: k y, value: "50% $HOME=ä", ` + limit + "}]}",
			"domain=it%27s+%26+so&k+y=50%25+%24HOME%3D%C3%A4", `--domain 'it'\''s & so' 'k y=50% $HOME=ä'`},
		{"reserved names",
			`{domain: d, descriptors: [{key: hits, descriptors: [{key: b, value: "1,2:3", ` + limit + "}]}]}",
			"domain=d&d=hits:abc,b:1%2C2%3A3", "--domain d hits=abc b=1,2:3"},
		{"what a path cannot tell, and flags",
			`{domain: d, descriptors: [{key: a, value: "b > c", ` + limit + "}, {key: -x, " + limit +
				`}, {key: "a=b", ` + limit + `}, {key: "a\nb", ` + limit + "}, {key: z, " + limit + "}]}",
			"domain=d&z=abc", "--domain d z=abc"},
	} {
		set := parseRules(t, tc.limits)
		s, ok := newSample(set)
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
		if s, ok := newSample(parseRules(t, text)); ok {
			t.Errorf("%v for %s, where nothing has a limit", s, text)
		}
	}
}

func words(s sample) []string {
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

// The daemon answers the calls for keys that it keeps for itself too.
func TestReservedNamesAreAnswered(t *testing.T) {
	const file = "{domain: d, descriptors: [{key: hits, descriptors: [{key: d, " + limit + "}]}]}"
	r := startDaemon(t, testConfig(t, file))
	s, ok := newSample(r.engine.Rules())
	if !ok {
		t.Fatal("no call")
	}
	if body := get(t, r.edges.httpAddr(), "/v1/check?"+s.query()); !strings.Contains(body, `"limit":`) {
		t.Errorf("%s meets no limit: %s", s.query(), body)
	}
}

// An address for everybody is printed as one that can be called, under the
// name that the program was called by.
func TestBannerOfAWildcardAddress(t *testing.T) {
	for in, want := range map[string]string{
		"[::]:81": "127.0.0.1:81", "0.0.0.0:81": "127.0.0.1:81", "[::1]:81": "[::1]:81",
		"192.0.2.1:81": "192.0.2.1:81",
	} {
		if got := reachable(in); got != want {
			t.Errorf("%s is reached at %s, want %s", in, got, want)
		}
	}
	c := testConfig(t, oneRule)
	var out lockedBuffer
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Config: c, Out: &out, Program: "./my bin/rld"}) }()
	await(t, "the banner is printed", func() bool { return strings.Contains(out.String(), "check --addr") })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{": 1 rule in 1 domain from ", "\n  './my bin/rld' check --addr 127.0.0.1:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// An IPv4 address is not one of IPv6 as well.
func TestNetworkOfAnAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:0": "tcp4", "127.0.0.1:80": "tcp4", "[::]:80": "tcp", "[::1]:80": "tcp", "localhost:80": "tcp",
		":80": "tcp", "here": "tcp",
	} {
		if got := network(addr); got != want {
			t.Errorf("%s is listened on over %s, want %s", addr, got, want)
		}
	}
}
