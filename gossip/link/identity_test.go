package link

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/internal/await"
)

// forgeries are the proofs of an end that does not have the key of its hello,
// or that did not make them for this handshake. s is the handshake, as the end
// in the role knows it.
var forgeries = []struct {
	name string
	make func(s handshake, as role) []byte
}{
	{"the key of another daemon", func(s handshake, as role) []byte { return s.prove(identityOf(9).Key, as) }},
	{"the proof of the other end", func(s handshake, as role) []byte {
		return s.prove(identityOf(2).Key, map[role]role{dialing: accepting, accepting: dialing}[as])
	}},
	{"a proof for another purpose", func(s handshake, as role) []byte {
		return identityOf(2).Key.Sign(control.ForVote, s.message(as)).Value
	}},
	{"the proof of another connection", func(s handshake, as role) []byte {
		s.binding = []byte("another TLS connection")
		return s.prove(identityOf(2).Key, as)
	}},
	{"the proof of another handshake", func(s handshake, as role) []byte {
		s.dialer = bytes.Clone(s.dialer)
		s.dialer[len(s.dialer)-1]++
		return s.prove(identityOf(2).Key, as)
	}},
	{"a short proof", func(handshake, role) []byte { return []byte("short") }},
	{"an empty proof", func(handshake, role) []byte { return nil }},
}

// TestFalseProofOfDialer has a dialer prove falsely that it is daemon 2.
func TestFalseProofOfDialer(t *testing.T) {
	for _, c := range forgeries {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), nil)
				stream := n.open(t, a)
				s := n.hello(t, stream, greetingFrom(helloOf(2, "us", "b")))
				if err := stream.SendMsg(&item{kind: kindProof, body: c.make(s, dialing)}); err != nil {
					t.Fatal(err)
				}
				_ = stream.SendMsg(&item{kind: kindFrame, body: []byte("as daemon 2")})
				wantIdentity(t, end(stream))
				synctest.Wait()
				if got := a.Stats(); got.ProtocolErrors[ReasonIdentity] != 1 || got.Accepted != 0 || len(a.got(2)) != 0 {
					t.Errorf("stats %+v, frames %v", got, a.got(2))
				}
				if a.lines("peer dropped", "reason=identity", "us/b (b:7947) does not prove its id") != 1 {
					t.Errorf("log: %s", a.log)
				}
			})
		})
	}
}

// wantIdentity checks how the other end reports a false proof.
func wantIdentity(t *testing.T, err error) {
	t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) || refused.Reason != ReasonIdentity || !refused.ByPeer {
		t.Errorf("the stream ended with %v, want a protocol error of %s", err, ReasonIdentity)
	}
}

// TestFalseProofOfAcceptor has an acceptor prove falsely that it is daemon 2.
func TestFalseProofOfAcceptor(t *testing.T) {
	for _, c := range forgeries {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), nil)
				hello := encoded(t, greetingFrom(helloOf(2, "us", "b")))
				n.impersonateBy(t, "b:7947", &impostor{hello: hello, prove: func(s *handshake) []byte { return c.make(*s, accepting) }})
				a.Targets([]Target{{Addr: "b:7947"}})
				synctest.Wait()
				if got := a.Stats(); got.ProtocolErrors[ReasonIdentity] != 1 || got.Outgoing != 0 || a.happened() != "" {
					t.Errorf("stats %+v, events %q", got, a.happened())
				}
				if a.lines("peer dropped", "addr=b:7947", "reason=identity", "does not prove its id") != 1 {
					t.Errorf("log: %s", a.log)
				}
			})
		})
	}
}

// TestReplayedHello sends the recorded hello and proof of a stream again: the
// acceptor has another nonce.
func TestReplayedHello(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		g := greetingFrom(helloOf(2, "us", "b"))
		first := n.open(t, a)
		s := n.hello(t, first, g)
		proof := s.prove(keyOf(g.hello), dialing)
		if err := first.SendMsg(&item{kind: kindProof, body: proof}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := a.Stats().Accepted; got != 1 {
			t.Fatalf("%d streams are accepted, want 1", got)
		}
		again := n.open(t, a)
		n.hello(t, again, g)
		if err := again.SendMsg(&item{kind: kindProof, body: proof}); err != nil {
			t.Fatal(err)
		}
		wantIdentity(t, end(again))
		synctest.Wait()
		if got := a.Stats(); got.Accepted != 1 || got.ProtocolErrors[ReasonIdentity] != 1 {
			t.Errorf("stats %+v", got)
		}
	})
}

// TestNoProof sends frames without a proof.
func TestNoProof(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		a := n.start(t, helloOf(1, "eu", "a"), nil)
		stream := n.open(t, a)
		n.hello(t, stream, greetingFrom(helloOf(2, "us", "b")))
		if err := stream.SendMsg(&item{kind: kindFrame, body: []byte("frame")}); err != nil {
			t.Fatal(err)
		}
		wantIdentity(t, end(stream))
		if len(a.got(2)) != 0 {
			t.Errorf("frames %v", a.got(2))
		}
	})
}

// A hello that has no key, no run or no nonce is malformed.
func TestHelloWithoutIdentity(t *testing.T) {
	for name, change := range map[string]func(*greeting){
		"no key":         func(g *greeting) { g.public = nil },
		"a long key":     func(g *greeting) { g.public = make([]byte, 33) },
		"no nonce":       func(g *greeting) { g.nonce = nil },
		"a short nonce":  func(g *greeting) { g.nonce = g.nonce[1:] },
		"the id in full": func(g *greeting) { g.public = g.hello.Daemon[:] },
	} {
		g := greetingFrom(helloOf(2, "us", "b"))
		change(&g)
		if _, err := decodeGreeting(encoded(t, g)); err == nil || !strings.Contains(err.Error(), "want 32, 16 and 32") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// The id of a hello is that of its key, whatever its sender wants.
func TestIDOfHello(t *testing.T) {
	g := greetingFrom(helloOf(2, "us", "b"))
	g.public = identityOf(3).Key.Public()
	got, err := decodeGreeting(encoded(t, g))
	if err != nil || got.hello.Daemon != identityOf(3).Key.ID() {
		t.Errorf("id %v, error %v, want %v", got.hello.Daemon, err, identityOf(3).Key.ID())
	}
}

// TestRenew changes the id of a daemon: both directions get it at once, and no
// frame travels under the former one.
func TestRenew(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		is := identityOf(1)
		a := n.start(t, helloOf(1, "eu", "a"), func(c *Config) { c.Identity = func() control.Identity { return is } })
		b := n.start(t, helloOf(2, "us", "b"), nil)
		var under []control.ID
		b.judge = func(from Hello, _ []byte) error {
			under = append(under, from.Daemon)
			return nil
		}
		a.Targets([]Target{to(b)})
		b.Targets([]Target{to(a)})
		synctest.Wait()
		a.Send(2, []byte("before"))
		synctest.Wait()
		is.Key = identityOf(7).Key
		a.Renew()
		if a.Send(2, []byte("nobody")) {
			t.Error("a frame was sent on a former stream")
		}
		time.Sleep(10 * maxBackoff)
		synctest.Wait()
		a.Send(2, []byte("after"))
		synctest.Wait()
		if len(under) != 2 || under[0] != identityOf(1).Key.ID() || under[1] != is.Key.ID() {
			t.Errorf("frames under %v", under)
		}
		if got := b.outgoing(a.addr).Hello.Daemon; got != is.Key.ID() {
			t.Errorf("b knows a as %v, want %v", got, is.Key.ID())
		}
	})
}

// TestPriorityOfAnotherKey has a daemon open a priority stream beside the bulk
// stream of another one, with its own key, and with a false proof.
func TestPriorityOfAnotherKey(t *testing.T) {
	l := newPriorityPair(t, plainly)
	for name, c := range map[string]struct {
		hello func() greeting
		key   *control.Key
		want  string
	}{
		"another id": {func() greeting {
			g := greetingFrom(helloOf(1, "eu", "a"))
			g.public = identityOf(9).Key.Public()
			return g
		}, identityOf(9).Key, "beside a stream of"},
		"a false proof": {func() greeting { return greetingFrom(helloOf(1, "eu", "a")) }, identityOf(9).Key, "does not prove its id"},
	} {
		t.Run(name, func(t *testing.T) {
			before := l.b.Stats().ProtocolErrors[ReasonIdentity]
			conn, err := net.Dial("tcp", l.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			s := handshake{dialer: encoded(t, c.hello())}
			_, _ = conn.Write(appendPriorityFrame([]byte(priorityMagic), s.dialer))
			await.Done(t, "the end of the connection", func() {
				if s.acceptor, err = readPriorityFrame(conn, nil, maxHello); err == nil {
					_, err = readPriorityFrame(conn, nil, maxHello)
				}
				if err != nil {
					t.Error(err)
				}
				frame := binary.LittleEndian.AppendUint32(nil, 5)
				_, _ = conn.Write(append(appendPriorityFrame(nil, s.prove(c.key, dialingPriority)), append(frame, "frame"...)...))
				_, _ = io.ReadAll(conn)
			})
			await.True(t, "the protocol error is counted", func() bool { return l.b.Stats().ProtocolErrors[ReasonIdentity] == before+1 })
			if l.b.Stats().Accepted != 1 {
				t.Error("the bulk stream of the other one has ended")
			}
		})
	}
	if l.a.SendNow(2, []byte("mine")); await.Value(t, "the frame", l.arrived) != "mine" {
		t.Error("a frame of the other one arrived")
	}
}

// TestRelay has a daemon of the cluster relay the handshake of two others: it
// passes the hellos and proofs of b on, on a TLS connection of its own.
func TestRelay(t *testing.T) {
	ca := newAuthority(t, "the cluster")
	certs := func(name string) *Certificates {
		f := ca.issue(t, t.TempDir(), name, nil)
		c, err := LoadCertificates(f.files(), slog.Default())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	relay := certs("relay")
	bubble(t, func(t *testing.T, n *network) {
		secure := func(name string) func(*Config) {
			return func(c *Config) { c.Certificates = certs(name) }
		}
		a := n.start(t, helloOf(1, "eu", "a"), secure("a"))
		b := n.start(t, helloOf(2, "us", "b"), secure("b"))
		lis := n.listen("relay:7947")
		defer lis.Close()
		go func() {
			for {
				from, err := lis.Accept()
				if err != nil {
					return
				}
				to, err := n.dial(t.Context(), b.addr)
				if err != nil {
					t.Error(err)
					return
				}
				client := relay.Client()
				client.NextProtos = []string{"h2"}
				near, far := tls.Server(from, relay.Server()), tls.Client(to, client)
				for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
					go func() {
						_, _ = io.Copy(ends[0], ends[1])
						from.Close()
						to.Close()
					}()
				}
			}
		}()
		a.Targets([]Target{{Addr: "relay:7947"}})
		synctest.Wait()
		if got := a.Stats(); got.ProtocolErrors[ReasonIdentity] != 1 || got.Outgoing != 0 {
			t.Errorf("stats %+v, log %s", got, a.log)
		}
		if a.lines("peer dropped", "addr=relay:7947", "us/b (b:7947) does not prove its id") != 1 {
			t.Errorf("log: %s", a.log)
		}
		a.Targets([]Target{to(b)})
		synctest.Wait()
		if got := a.outgoing(b.addr).Hello; got != b.hello {
			t.Errorf("a knows b as %+v, want %+v", got, b.hello)
		}
	})
}
