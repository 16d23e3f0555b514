package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRolesAsProcesses(t *testing.T) {
	dir := t.TempDir()
	noop, err := startRole(t.Context(), roleNoop, dir)
	if err != nil {
		t.Fatal(err)
	}
	target, err := noop.readLine()
	if err != nil {
		t.Fatal(err)
	}
	client, err := startRole(t.Context(), roleClient, dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := ask(client, job{Kind: kindClosed, Target: target, Flight: 2, Length: short})
		if err != nil || r.Checks == 0 {
			t.Errorf("%+v, error %v; want calls", r, err)
		}
	}
	if _, err := ask(client, job{Kind: "nonsense", Target: target}); err == nil {
		t.Error("a kind of job that does not exist was done")
	}
	if err := errors.Join(client.stop(), noop.stop()); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(noop.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the no-op is still there: %v", err)
	}
}

func TestRelaysPassOn(t *testing.T) {
	dir := t.TempDir()
	relays := &cleanup{}
	target := startRelays(t.Context(), dir, relays)
	client, err := startRole(t.Context(), roleClient, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, pass := range []bool{false, true} {
		res, err := ask(client, job{Kind: kindBare, Target: target, Pass: pass, Rate: 1_000, Length: short})
		if err != nil || res.Checks == 0 {
			t.Errorf("pass %v: %+v, error %v; want exchanges", pass, res, err)
		}
	}
	if err := relays.steps[0](); err != nil { // the end of the way
		t.Error(err)
	}
	relays.steps = relays.steps[1:]
	if _, err := ask(client, job{Kind: kindBare, Target: target, Pass: true, Rate: 1_000, Length: short}); err == nil {
		t.Error("something was passed on to nobody")
	}
	if err := errors.Join(client.stop(), relays.stop()); err != nil {
		t.Error(err)
	}
}

func TestRolesEndWithTheirInput(t *testing.T) {
	for _, role := range []string{roleNoop, roleClient, roleRelay} {
		c, err := startRole(t.Context(), role, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		inTime := c.killAfter(10 * time.Second)
		if err := c.in.Close(); err != nil {
			t.Error(err)
		}
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("%s: %v, want an orderly end", role, err)
		}
		inTime()
	}
}

func TestFailingChildReportsTheReason(t *testing.T) {
	c, err := startChild(t.Context(), "sh", t.TempDir(), "/bin/sh", "-c", "echo nothing to serve >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	_, read := c.readLine()
	if stop := c.stop(); stop == nil || !strings.Contains(stop.Error(), "exit status 3") {
		t.Errorf("stopping says %v, want the exit status", stop)
	}
	// Only now all written bytes have surely arrived.
	for _, want := range []string{"sh: ", "nothing to serve"} {
		if err := c.failed(read); !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want who failed and what it said: %q", err, want)
		}
	}
}

func TestChildIsKilledWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := startRole(ctx, roleNoop, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := c.cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
}

func TestChildrenDoNotSeeSettings(t *testing.T) {
	got := environ([]string{
		"PATH=/bin", "RLD_SHADOW=true", "SHADOW_MODE=true", "GOMAXPROCS=2", "LOG_LEVEL=debug",
	})
	if d := cmp.Diff([]string{"PATH=/bin", "GOMAXPROCS=2"}, got); d != "" {
		t.Errorf("environment (-want +got):\n%s", d)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var l tail
	for range 3 {
		if n, err := l.Write([]byte(strings.Repeat("x", tailBytes/2) + "end")); n != tailBytes/2+3 || err != nil {
			t.Fatalf("wrote %d bytes, error %v", n, err)
		}
	}
	if s := l.String(); len(s) != tailBytes || !strings.HasSuffix(s, "end") {
		t.Errorf("kept %d bytes, want the last %d", len(s), tailBytes)
	}
}

func TestScratchIsRemoved(t *testing.T) {
	b, err := newBench(t.Context(), options{}, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", b.dir, err)
	}
}
