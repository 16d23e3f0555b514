package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/disk/osdir"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
)

// again starts a daemon with a folder that a stopped one used.
func again(t *testing.T, c *config.Config) (r *running, end func()) {
	t.Helper()
	r = &running{done: make(chan error, 1), log: &lockedBuffer{}}
	r.daemon = &daemon{Options: Options{
		Config: *c, Log: slog.New(slog.NewTextHandler(r.log, nil)), Out: io.Discard, Version: "test",
		Secret: []byte("the secret of a region under test"),
	}}
	if err := r.build(); err != nil {
		t.Fatal(err)
	}
	e, err := r.listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.edges, r.stop = e, cancel
	go func() { r.done <- r.serve(ctx, e) }()
	ended := false
	end = func() {
		if !ended {
			ended = true
			cancel()
			await.Value(t, "the end", r.done)
			r.closeState()
		}
	}
	t.Cleanup(end)
	await.True(t, "it is ready", func() bool { return r.ready() == nil })
	return r, end
}

// admitted returns how many hits of a key a daemon admits, of more than fit.
func admitted(t *testing.T, r *running, atMost int) (n int) {
	t.Helper()
	for range atMost {
		c := node.Call{Domain: "edge", Descriptors: []rules.Descriptor{{Hits: 1, Entries: []rules.Entry{{Key: "org", Value: "a"}}}}}
		if err := r.engine.Check(context.Background(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Decision.Allowed {
			n++
		}
	}
	return n
}

// afterHits returns the settings of a daemon that admitted hits of an hour of
// 100, and stopped.
func afterHits(t *testing.T, hits int) config.Config {
	t.Helper()
	r := startRegion(t, "domain: edge\ndescriptors:\n"+
		"  - {key: org, rate_limit: {unit: hour, requests_per_unit: 100, consistency: partition}}\n", "us-0")[0]
	await.True(t, "it holds rights", func() bool { return r.agent.Status().Holds })
	if got := admitted(t, r, hits); got != hits {
		t.Fatalf("%d admitted, want %d", got, hits)
	}
	r.stop()
	await.True(t, "it has stopped", func() bool { return strings.Contains(r.log.String(), "msg=stopped") })
	r.closeState()
	return r.Config
}

// TestRestartTakesUpAccounts: a daemon that stops and starts again has what is
// left of its rights of the running hour, also a second time, and nothing after
// a crash.
func TestRestartTakesUpAccounts(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long, and other tests run the same goroutines")
	}
	hour := func() int64 { return time.Now().Unix() / 3600 }
	began := hour()
	c := afterHits(t, 30)
	file := filepath.Join(c.State.Dir, replica.AccountsFile)
	for _, step := range []struct{ ask, want int }{{20, 20}, {100, 50}, {10, 0}} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("after a stop: %v", err)
		}
		next, end := again(t, &c)
		if _, err := os.Stat(file); err == nil {
			t.Error("the accounts are still there after they were taken up")
		}
		await.True(t, "it goes on", func() bool { return strings.Contains(next.log.String(), "goes on with the accounts") })
		await.True(t, "it holds rights", func() bool { return next.agent.Status().Holds })
		if got := admitted(t, next, step.ask); got != step.want && hour() == began {
			t.Errorf("%d of %d admitted, want %d", got, step.ask, step.want)
		}
		end()
	}
	next, end := again(t, &c)
	next.kill(errKilled)
	end()
	next, _ = again(t, &c)
	await.True(t, "it goes on", func() bool { return strings.Contains(next.log.String(), "goes on with its record") })
	if strings.Contains(next.log.String(), "goes on with the accounts") {
		t.Error("accounts are taken up after a crash")
	}
}

// TestRefusedStartLeavesAccounts: a start that is refused leaves the accounts
// of the former run to the next one.
func TestRefusedStartLeavesAccounts(t *testing.T) {
	c := afterHits(t, 30)
	folder := osdir.Dir(c.State.Dir)
	control, err := folder.ReadFile(replica.ControlFile)
	if err != nil {
		t.Fatal(err)
	}
	control[len(control)-3] ^= 1
	if err := os.WriteFile(folder.Path(replica.ControlFile), control, 0o600); err != nil {
		t.Fatal(err)
	}
	before := map[string][]byte{}
	for _, name := range replica.StateFiles {
		if data, err := folder.ReadFile(name); err == nil {
			before[name] = data
		}
	}
	if before[replica.AccountsFile] == nil {
		t.Fatal("there are no accounts")
	}
	err = Run(context.Background(), Options{Config: c, Secret: []byte("the secret of a region under test")})
	if err == nil || !strings.Contains(err.Error(), "is damaged at byte") {
		t.Fatalf("it starts with a damaged journal: %v", err)
	}
	for _, name := range replica.StateFiles {
		if data, _ := folder.ReadFile(name); !bytes.Equal(data, before[name]) {
			t.Errorf("the refused start left %d bytes of %s, want the %d of before", len(data), name, len(before[name]))
		}
	}
}

// TestNoRightsBeforeAgent: a daemon that took up accounts answers calls before
// it knows the record of the cluster, as it does while the journal of the
// control log cannot be opened, and after its region was removed.
func TestNoRightsBeforeAgent(t *testing.T) {
	c := afterHits(t, 30)
	next := &running{log: &lockedBuffer{}}
	next.daemon = &daemon{Options: Options{
		Config: c, Log: slog.New(slog.NewTextHandler(next.log, nil)), Out: io.Discard, Version: "test",
		Secret: []byte("the secret of a region under test"),
	}}
	t.Cleanup(next.closeState)
	if err := next.build(); err != nil {
		t.Fatal(err)
	}
	next.takeUp()
	if next.agent.left == nil {
		t.Fatalf("no accounts are taken up:\n%s", next.log)
	}
	if got := admitted(t, next, 10); got != 0 {
		t.Errorf("%d of 10 admitted without an agent, want 0", got)
	}
}

// TestResumeWaitsForConfirmation: a daemon that restarts in a partition begins
// with its record of rights, but uses the rights of its former run only once
// the control log confirms the start: until then its disk may be an old one.
func TestResumeWaitsForConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := beginRegion(t)
		r := w.find("us-0")
		gone := w.leave(r)
		w.soon(time.Minute, "it has left", gone)

		var resumed atomic.Int32
		mend := w.mend
		w.mend = func(r *resident, cc *clusterConfig) {
			mend(r, cc)
			left, err := cc.agent.storage.TakeAccounts()
			if err != nil || left == nil {
				t.Fatalf("%+v, %v: want accounts", left, err)
			}
			cc.agent.left, cc.agent.resume = left, func() { resumed.Add(1) }
		}
		for _, other := range w.alive() {
			w.cut(r, other)
		}
		r.start()
		f := w.agents["us-0"]
		w.soon(time.Minute, "its agent begins", func() bool {
			return read(f, func(*agent.Agent) bool { return true })
		})
		time.Sleep(10 * time.Second)
		if n := resumed.Load(); n != 0 {
			t.Error("it uses the rights of its former run before the start is confirmed")
		}
		w.heal()
		w.soon(time.Minute, "it resumes once", func() bool { return resumed.Load() == 1 })
	})
}
