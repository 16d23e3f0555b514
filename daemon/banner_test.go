package daemon

import (
	"context"
	"strings"
	"testing"

	"github.com/georld/rld/internal/await"
)

// TestBanner: the example call has the name that started the program, and is
// answered.
func TestBanner(t *testing.T) {
	c := testConfig(t, "{domain: d, descriptors: [{key: hits, descriptors: [{key: d, rate_limit: {unit: hour, requests_per_unit: 5}}]}]}")
	var out lockedBuffer
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, Options{Config: c, Out: &out, Program: "./my bin/rld"}) }()
	await.True(t, "the banner is printed", func() bool { return strings.Contains(out.String(), "check --addr") })
	call := out.String()[strings.Index(out.String(), "'http://")+8:]
	call = call[:strings.Index(call, "'")]
	addr, path, _ := strings.Cut(call, "/")
	if body := get(t, addr, "/"+path); !strings.Contains(body, `"limit":`) { // though its keys are parameters too
		t.Errorf("%s meets no limit: %s", call, body)
	}
	stop()
	if err := await.Value(t, "the end of the daemon", done); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{": 2 rules in 1 domain from ", "\n  './my bin/rld' check --addr 127.0.0.1:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestNetwork: a listener on an IPv4 address is not on IPv6 too.
func TestNetwork(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:0": "tcp4", "127.0.0.1:80": "tcp4", "[::]:80": "tcp", "[::1]:80": "tcp", "localhost:80": "tcp",
		":80": "tcp", "here": "tcp",
	} {
		if got := network(addr); got != want {
			t.Errorf("%s is listened on over %s, want %s", addr, got, want)
		}
	}
}
