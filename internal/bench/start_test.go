package main

import (
	"strings"
	"testing"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

func TestManyRulesAreAThousand(t *testing.T) {
	set, found := limits.Parse(manyRules(), limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range set.Rules() {
		if r.Limit != nil {
			n++
		}
	}
	if n != 1_000 {
		t.Errorf("%d rules with a limit, want 1,000", n)
	}
}

// benchRules returns the rules of benchLimits.
func benchRules(t *testing.T) *rules.Set {
	t.Helper()
	files := []limits.File{{Name: "bench.yaml", Data: []byte(benchLimits())}}
	set, found := limits.Parse(files, limits.Options{})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestServedRuleIsWhatTheNoopAnswers(t *testing.T) {
	set := benchRules(t)
	if err := verify(newNoop().answer); err != nil {
		t.Error(err)
	}
	r := set.Rules()[0]
	if r.Domain != benchDomain || r.Limit == nil || r.Limit.Requests != benchRequests {
		t.Errorf("rule %+v, want %d requests in domain %s", r, benchRequests, benchDomain)
	}
}

func TestListener(t *testing.T) {
	const banner = `rld v1: 4 rules in 1 domains from bench.yaml

  gRPC   127.0.0.1:8081   Envoy RLS v3, rld.v1.RateLimiter
  gRPC   unix:/run/rld.sock
  HTTP   127.0.0.1:8080   /v1/check

  WARNING: 0.0.0.0:1 answers anybody
`
	var got []string
	for line := range strings.Lines(banner) {
		if what, addr, ok := listener(line); ok && what != "WARNING:" {
			got = append(got, what+" "+addr)
		}
	}
	if want := "gRPC 127.0.0.1:8081,HTTP 127.0.0.1:8080"; strings.Join(got, ",") != want {
		t.Errorf("listeners %q, want %q", got, want)
	}
}

func TestParseRSS(t *testing.T) {
	got, err := parseRSS("status", "Name:\trld\nVmHWM:\t   99 kB\nVmRSS:\t   1000 kB\n")
	if err != nil || got != 1_024_000 {
		t.Errorf("%v bytes, error %v; want 1,024,000", got, err)
	}
	for _, bad := range []string{"", "VmRSS:\t many kB\n"} {
		if got, err := parseRSS("status", bad); err == nil {
			t.Errorf("%q reads as %v bytes, want an error", bad, got)
		}
	}
}
