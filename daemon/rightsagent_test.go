package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/replica"
)

// agentOf returns a daemon, alone in its region, before it opens its rights
// agent.
func agentOf(dir, secret string) *daemon {
	d := &daemon{Options: Options{Config: config.Default(), Log: slog.New(slog.DiscardHandler), Secret: []byte(secret)}}
	d.Config.Region, d.Config.Name = "eu", "eu-0"
	d.Config.Regions = []config.Region{{Name: "eu"}}
	d.Config.State.Dir, d.Config.Rights.FirstStart, d.Config.Rights.Daemons = dir, true, []string{"eu-0"}
	return d
}

// serveAgent lets a rights agent take a turn, and returns its rights of a
// hundred then.
func serveAgent(t *testing.T, d *daemon) (uint64, epoch.Reason) {
	t.Helper()
	e, err := NewEngine(EngineConfig{MaxKeys: 100, Node: testNode(d.Config.Region, d.Config.Name)})
	if err != nil {
		t.Fatal(err)
	}
	d.agent.turn(e.Now(), e, func(crdt.Incarnation, []byte) bool { return true })
	x := e.Time(e.Now()).Millis()
	return d.agent.Allotment(1, 100, x+1000, 0, false)
}

// TestAgentFile keeps the record of a rights agent, for its daemon alone.
func TestAgentFile(t *testing.T) {
	dir := t.TempDir()
	open := func(secret string, change func(*daemon)) (*daemon, error) {
		d := agentOf(dir, secret)
		change(d)
		err := d.openAgent()
		t.Cleanup(d.closeState)
		return d, err
	}
	unchanged := func(*daemon) {}
	refused := func(what, want, secret string, change func(*daemon)) {
		t.Helper()
		d, err := open(secret, change)
		d.closeState()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", what, err, want)
		}
	}

	d, err := open("one", unchanged)
	if err != nil {
		t.Fatal(err)
	}
	if n, why := serveAgent(t, d); n != 100 {
		t.Errorf("a first start alone holds %d of 100: %v", n, why)
	}
	refused("a folder in use", "another process uses", "one", unchanged)
	d.closeState()

	refused("another cluster's file", "cluster", "other", unchanged)
	refused("another daemon's file", "eu-1", "one", func(d *daemon) { d.Config.Name = "eu-1" })

	file := filepath.Join(dir, replica.RightsFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{
		"truncated": good[:len(good)-3], "empty": nil, "damaged": append([]byte(strings.Repeat("x", 40)), good[40:]...),
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		refused("a "+what+" file", replica.RightsFile, "one", unchanged)
	}

	// The rest of a write that was cut short does not matter.
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", good[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err = open("one", unchanged); err != nil {
		t.Fatal(err)
	}
	d.closeState()

	// Without the file, and without rights.first_start, it holds nothing.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if d, err = open("one", func(d *daemon) { d.Config.Rights.FirstStart = false }); err != nil {
		t.Fatal(err)
	}
	if n, why := serveAgent(t, d); n != 0 {
		t.Errorf("a daemon that lost its file holds %d of 100: %v", n, why)
	}
}

// TestFence: a daemon without its record uses no window that another clock may
// have shown to its former run.
func TestFence(t *testing.T) {
	d := agentOf(t.TempDir(), "one")
	at := time.UnixMilli(1_767_225_600_000)
	d.Wall = func() time.Time { return at }
	d.Config.Clock.MaxOffset = 250 * time.Millisecond
	if got, want := d.storage("rights").Fence, at.UnixMilli()+500; got != want {
		t.Errorf("fence %d, want %d", got, want)
	}
}

// TestAgentFolder refuses a folder that cannot be written at the start.
func TestAgentFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := agentOf(filepath.Join(file, "folder"), "one")
	if err := Run(context.Background(), Options{Config: d.Config, Secret: d.Secret}); err == nil ||
		!strings.Contains(err.Error(), "state.dir") {
		t.Errorf("%v, want an error that names state.dir", err)
	}
}

func testNode(region, name string) node.Config {
	c := node.Default()
	c.Region, c.Name = region, name
	return c
}

// TestAgentOnFailingDisk starts a daemon whose record cannot be read. It holds
// no rights and changes nothing, and goes on with the record as soon as that
// can be read.
func TestAgentOnFailingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := agentOf(dir, "one")
		if err := d.openAgent(); err != nil {
			t.Fatal(err)
		}
		serveAgent(t, d)
		member := d.agent.Status().Daemons
		d.closeState()

		file := filepath.Join(dir, replica.RightsFile)
		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(file, 0o700); err != nil { // it cannot be read
			t.Fatal(err)
		}
		d = agentOf(dir, "one")
		if err := d.openAgent(); err != nil {
			t.Fatal(err)
		}
		defer d.closeState()
		e, err := NewEngine(EngineConfig{MaxKeys: 100, Node: testNode(d.Config.Region, d.Config.Name)})
		if err != nil {
			t.Fatal(err)
		}
		d.agent.rules(e.Rules())
		turn := func() {
			wake := d.agent.turn(e.Now(), e, func(crdt.Incarnation, []byte) bool { return true })
			if wake <= e.Now().Mono {
				t.Errorf("wakes at %v, now is %v", wake, e.Now().Mono)
			}
		}
		for range 4 {
			turn()
			x := e.Time(e.Now()).Millis()
			if n, _ := d.agent.Allotment(1, 100, x+1000, 0, false); n != 0 || !d.agent.unread {
				t.Errorf("a daemon without its record holds %d of 100", n)
			}
			time.Sleep(replica.RetryAfter)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(replica.RetryAfter)
		turn()
		if got := d.agent.Status().Daemons; d.agent.unread || len(got) == 0 || len(got[0].Members) != len(member[0].Members) {
			t.Errorf("with its record again: unread %v, daemons %+v, want %+v", d.agent.unread, got, member)
		}
		if again := agentOf(dir, "one"); again.openAgent() == nil {
			t.Error("a second daemon uses the folder")
		}
	})
}
