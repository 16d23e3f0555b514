package link

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/georld/rld/internal/await"
)

// priorityPair are two daemons of a region over TCP, of which a has a stream
// and a priority stream to b.
type priorityPair struct {
	a, b    *daemon
	addr    string
	arrived chan string
}

func newPriorityPair(t *testing.T, secure func(name string) func(*Config)) *priorityPair {
	t.Helper()
	n := newNetwork()
	overTCP := func(name string) func(*Config) {
		return func(c *Config) {
			secure(name)(c)
			c.Dial = nil
		}
	}
	l := &priorityPair{a: n.start(t, helloOf(1, "eu", "a"), overTCP("a")), arrived: make(chan string, 100)}
	l.b = n.start(t, helloOf(2, "eu", "b"), overTCP("b"))
	l.b.mu.Lock()
	l.b.judge = func(_ Hello, frame []byte) error {
		if string(frame) == "invalid" {
			return &ProtocolError{Reason: "format", Err: errors.New("invalid")}
		}
		l.arrived <- string(frame)
		return nil
	}
	l.b.mu.Unlock()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.addr = lis.Addr().String()
	served := make(chan error, 1)
	go func() { served <- l.b.Serve(lis) }()
	t.Cleanup(func() {
		l.b.Close()
		if err := await.Value(t, "the end of Serve", served); err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	l.a.Targets([]Target{{Addr: l.addr, Region: "eu"}})
	await.True(t, "there is a priority stream", func() bool { return l.priority() })
	return l
}

// priority reports whether a has a priority stream to b.
func (l *priorityPair) priority() bool {
	l.a.routes.RLock()
	defer l.a.routes.RUnlock()
	all := l.a.route[2]
	if len(all) == 0 {
		return false
	}
	all[0].priority.mu.Lock()
	defer all[0].priority.mu.Unlock()
	return all[0].priority.conn != nil
}

func plainly(string) func(*Config) { return func(*Config) {} }

func TestPriority(t *testing.T) {
	ca := newAuthority(t, "the cluster")
	for name, secure := range map[string]func(string) func(*Config){
		"plain": plainly,
		"tls":   func(name string) func(*Config) { return secured(t, ca.issue(t, t.TempDir(), name, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newPriorityPair(t, secure)
			// The second one is too long for a priority stream, and takes the
			// stream.
			for _, frame := range []string{"soon", strings.Repeat("x", maxPriorityFrame+1), "again"} {
				if !l.a.SendNow(2, []byte(frame)) {
					t.Fatalf("a frame of %d bytes was not sent", len(frame))
				}
				if got := await.Value(t, "the frame", l.arrived); got != frame {
					t.Errorf("a frame of %d bytes arrived, want %d", len(got), len(frame))
				}
			}
			// ProtocolErrors costs the priority stream and the bulk stream, as
			// it does there.
			l.a.SendNow(2, []byte("invalid"))
			await.True(t, "both streams have ended", func() bool { return !l.priority() && l.b.Stats().Accepted == 0 })
			if l.b.Stats().ProtocolErrors["format"] == 0 {
				t.Errorf("the protocol error is not counted: %+v", l.b.Stats().ProtocolErrors)
			}
		})
	}
}

// The opener of a priority stream without a bulk stream gets no answer, and the
// handler gets none of its frames.
func TestPriorityOfUnknownPeer(t *testing.T) {
	l := newPriorityPair(t, plainly)
	hello := func(change func(*greeting)) []byte {
		g := greetingFrom(helloOf(1, "eu", "a"))
		change(&g)
		body, err := g.encode()
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	for name, says := range map[string][]byte{
		"no stream":      hello(func(g *greeting) { g.hello.Member.ID = 9 }),
		"another secret": hello(func(g *greeting) { g.secrets[0][0] = 1 }),
		"a long hello":   binary.LittleEndian.AppendUint32(nil, 1<<31),
		"no hello":       append(binary.LittleEndian.AppendUint32(nil, 4), "what"...),
		"an empty one":   binary.LittleEndian.AppendUint32(nil, 0),
	} {
		conn, err := net.Dial("tcp", l.addr)
		if err != nil {
			t.Fatal(err)
		}
		frame := append(binary.LittleEndian.AppendUint32(nil, 5), "frame"...)
		_, _ = conn.Write(append(append([]byte(priorityMagic), says...), frame...))
		await.Done(t, "the end of the connection: "+name, func() {
			if answer, err := io.ReadAll(conn); len(answer) > 0 {
				t.Errorf("%s: %q, %v, want the end of the connection", name, answer, err)
			}
		})
		conn.Close()
	}
	// The priority stream of a member still works.
	if !l.a.SendNow(2, []byte("mine")) {
		t.Error("a frame was not sent")
	}
	if got := await.Value(t, "the frame", l.arrived); got != "mine" {
		t.Errorf("%q arrived", got)
	}
}
