package swim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/fakenet"
)

var (
	keyA = []byte("0123456789abcdef")
	keyB = []byte("fedcba9876543210fedcba9876543210")
)

// rig is some daemons of one memory network, in a bubble.
type rig struct {
	t           *testing.T
	net         *fakenet.Network
	incarnation crdt.Incarnation // the last one given
}

func newRig(t *testing.T) *rig { return &rig{t: t, net: fakenet.New()} }

// host is the address of the i-th host.
func host(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i) }

// hosts are the addresses of hosts 1 to n.
func hosts(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = host(i + 1)
	}
	return out
}

// config is that of a daemon called name on host i.
func (r *rig) config(name string, i int, seeds ...string) Config {
	r.t.Helper()
	tr, err := r.net.Transport(host(i))
	if err != nil {
		r.t.Fatal(err)
	}
	r.incarnation++
	return Config{
		Self: gossip.Member{
			Peer:  gossip.Peer{ID: r.incarnation, Name: name, Region: "us-east"},
			Addr:  fmt.Sprintf("10.0.0.%d:7947", i),
			Build: "v1",
		},
		Keys: [][]byte{keyA}, Seeds: seeds, Transport: tr,
	}
}

// start starts c and closes it at the end of the test.
func (r *rig) start(c Config) *Swim {
	r.t.Helper()
	s, err := Start(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return s
}

// region starts n daemons called d1 to dn, which are each other's seeds, and
// waits until all know all.
func (r *rig) region(n int) []*Swim {
	r.t.Helper()
	all := make([]*Swim, n)
	for i := range all {
		all[i] = r.start(r.config(fmt.Sprintf("d%d", i+1), i+1, hosts(n)...))
	}
	r.within(5*time.Second, "all know all", func() bool { return agree(n, all...) })
	return all
}

// within waits until cond holds and fails the test if that takes longer, in
// virtual time.
func (r *rig) within(limit time.Duration, what string, cond func() bool) {
	r.t.Helper()
	for begin := time.Now(); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > limit {
			r.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// agree reports whether each of s knows n members, and the same.
func agree(n int, s ...*Swim) bool {
	for _, one := range s {
		if len(one.Members()) != n || fmt.Sprint(one.Members()) != fmt.Sprint(s[0].Members()) {
			return false
		}
	}
	return true
}

// find returns the member called name.
func find(s *Swim, name string) (gossip.Member, bool) {
	for _, m := range s.Members() {
		if m.Name == name {
			return m, true
		}
	}
	return gossip.Member{}, false
}

// logbook is a slog.Handler that keeps lines of level Info and above.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logbook) WithGroup(string) slog.Handler                    { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

// with returns the lines that hold all words.
func (l *logbook) with(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
next:
	for _, line := range l.lines {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
}
