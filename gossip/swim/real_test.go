package swim

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/fakenet"
)

func realConfig(name string, incarnation crdt.Incarnation, bind string, seeds ...string) Config {
	return Config{
		Self: gossip.Member{
			Peer: gossip.Peer{ID: incarnation, Name: name, Region: "us-east"},
			Addr: fmt.Sprintf("127.0.0.1:%d", incarnation), Build: "v1",
		},
		Bind: bind, Keys: [][]byte{keyA}, Seeds: seeds,
	}
}

func startReal(t *testing.T, c Config) *Swim {
	t.Helper()
	s, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Real UDP and TCP: join by a name and by an address, a kill, a restart on the
// same port within a second, garbage, and a goodbye.
func TestLoopback(t *testing.T) {
	var book logbook
	c := realConfig("d1", 1, "127.0.0.1:0")
	c.Log = slog.New(&book)
	a := startReal(t, c)
	_, port, err := net.SplitHostPort(a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b := startReal(t, realConfig("d2", 2, "127.0.0.1:0", "localhost:"+port))
	d := startReal(t, realConfig("d3", 3, "127.0.0.1:0", a.Addr(), b.Addr()))
	await.True(t, "all have joined", func() bool { return agree(3, a, b, d) })

	for _, network := range []string{"udp", "tcp"} {
		conn, err := net.Dial(network, a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(strings.Repeat("garbage", 100))); err != nil {
			t.Error(err)
		}
		conn.Close()
	}

	if err := b.Close(); err != nil {
		t.Error(err)
	}
	b = startReal(t, realConfig("d2", 4, b.Addr(), a.Addr()))
	await.True(t, "the new incarnation is known", func() bool {
		m, _ := find(a, "d2")
		return m.ID == 4 && agree(3, a, b, d)
	})
	await.True(t, "garbage is counted", func() bool { return a.Stats().Refused["wrong_key"] >= 2 })
	if got := book.with("WARN"); len(got) != 1 || !strings.Contains(got[0], "wrong key") {
		t.Errorf("logged: %q", got)
	}

	b.SetReady(true)
	await.True(t, "readiness is known", func() bool { m, _ := find(d, "d2"); return m.Ready })
	if err := b.Leave(time.Minute); err != nil {
		t.Error(err)
	}
	await.True(t, "one has left", func() bool { return agree(2, a, d) })
}

func TestStartRefuses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	long := func(n int) string { return strings.Repeat("x", n) }
	for want, change := range map[string]func(*Config){
		"name of 0 bytes":   func(c *Config) { c.Self.Name = "" },
		"name of 129":       func(c *Config) { c.Self.Name = long(129) },
		"region of 0":       func(c *Config) { c.Self.Region = "" },
		"region of 65":      func(c *Config) { c.Self.Region = long(65) },
		"build of 65":       func(c *Config) { c.Self.Build = long(65) },
		"stream address":    func(c *Config) { c.Self.Addr = ":7947" },
		"incarnation 0":     func(c *Config) { c.Self.ID = 0 },
		"key 2 of 2":        func(c *Config) { c.Keys = [][]byte{keyA, []byte("short")} },
		"interval":          func(c *Config) { c.Interval = time.Millisecond },
		"rejoin":            func(c *Config) { c.Rejoin = -1 },
		"seed \"nowhere\"":  func(c *Config) { c.Seeds = []string{"nowhere"} },
		"seed \"h:70000\"":  func(c *Config) { c.Seeds = []string{"h:70000"} },
		"bind \"nowhere\"":  func(c *Config) { c.Bind = "nowhere" },
		"advertise \":80\"": func(c *Config) { c.Advertise = ":80" },
		"advertise must":    func(c *Config) { c.Bind = "[::]:0" },
		"in use":            func(c *Config) { c.Bind = busy.Addr().String() },
	} {
		c := realConfig("d1", 1, "127.0.0.1:0")
		change(&c)
		if s, err := Start(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			if s != nil {
				s.Close()
			}
		}
	}
}

// A transport that was handed over is free again after a start that failed.
func TestStartReleases(t *testing.T) {
	n := fakenet.New()
	for _, change := range []func(*Config){
		func(c *Config) { c.Self.Name = "" },
		func(c *Config) { c.Advertise = "0.0.0.0:1" },
	} {
		tr, err := n.Transport(host(1))
		if err != nil {
			t.Fatal(err)
		}
		c := realConfig("d1", 1, "")
		c.Transport = tr
		change(&c)
		if _, err := Start(c); err == nil {
			t.Error("started")
		}
	}
}
