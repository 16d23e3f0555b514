package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/certs"
)

// helloAs is the hello of a daemon with an incarnation of its name.
func helloAs(region, name string) Hello {
	return helloOf(gossip.DaemonIncarnation(region, name, 1), region, name)
}

// named has a certificate name daemons, as URIs.
func named(names ...certs.Name) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, n := range names {
			u, err := url.Parse(n.URI())
			if err != nil {
				panic(err)
			}
			c.URIs = append(c.URIs, u)
		}
	}
}

// names of the daemons in these tests.
var (
	us0 = certs.Name{Region: "us", Daemon: "us-0"}
	us1 = certs.Name{Region: "us", Daemon: "us-1"}
	eu0 = certs.Name{Region: "eu", Daemon: "eu-0"}
)

// issueTo returns the files of a daemon.
func (a *authority) issueTo(t *testing.T, names ...certs.Name) issued {
	t.Helper()
	return a.issue(t, t.TempDir(), "rld", named(names...))
}

// join starts a daemon with a certificate of its name.
func (n *network) join(t *testing.T, ca *authority, name certs.Name, adjust func(*Config)) *daemon {
	t.Helper()
	secure := secured(t, ca.issueTo(t, name))
	return n.start(t, helloAs(name.Region, name.Daemon), func(c *Config) {
		secure(c)
		if adjust != nil {
			adjust(c)
		}
	})
}

// A daemon with names in its certificate talks to those with theirs, over both
// kinds of names.
func TestNamedPeers(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		ca := newAuthority(t, "the cluster")
		a := n.join(t, ca, us0, nil)
		dns := ca.issue(t, t.TempDir(), "rld", func(c *x509.Certificate) { c.DNSNames = []string{"eu-0.eu.rld", "localhost"} })
		b := n.start(t, helloAs("eu", "eu-0"), secured(t, dns))
		a.Targets([]Target{to(b)})
		b.Targets([]Target{to(a)})
		time.Sleep(2 * recheckEvery)
		if s := a.Stats(); s.Outgoing != 1 || s.Accepted != 1 || len(s.Refused) != 0 {
			t.Errorf("stats %+v, log %s", s, a.log)
		}
	})
}

// TestImpersonate has mallory, with a certificate of one region, claim to be
// another daemon, at both ends of a stream.
func TestImpersonate(t *testing.T) {
	asEU0, asUS1 := helloAs("eu", "eu-0"), helloAs("us", "us-1")
	for name, c := range map[string]struct {
		cert  []certs.Name
		hello Hello
		want  string // "" for a peer that is accepted
	}{
		"itself":               {[]certs.Name{eu0}, asEU0, ""},
		"one of several":       {[]certs.Name{us1, eu0}, asEU0, ""},
		"another daemon":       {[]certs.Name{eu0}, asUS1, "the certificate is of eu/eu-0, want one of us/us-1 (spiffe://rld/us/us-1)"},
		"another region":       {[]certs.Name{eu0}, helloAs("us", "eu-0"), "want one of us/eu-0"},
		"a name in its region": {[]certs.Name{eu0}, helloAs("eu", "eu-1"), "want one of eu/eu-1"},
		"no name":              {nil, asUS1, "the certificate names no daemon"},
		"another incarnation": {
			[]certs.Name{eu0},
			helloOf(asUS1.Member.ID, "eu", "eu-0"),
			"its incarnation " + asUS1.Member.ID.String() + " is of a daemon with another name",
		},
		"an id of another region": {
			[]certs.Name{eu0},
			func() Hello { h := asEU0; h.Member.ID++; return h }(),
			"is of a daemon in region",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				ca := newAuthority(t, "the cluster")
				stolen := identityOf(asEU0.Member.ID + 1).Key.ID()
				a := n.join(t, ca, us0, func(c *Config) {
					c.RegionOf = func(id control.ID) string {
						if id == stolen {
							return "us"
						}
						return ""
					}
				})
				m := n.start(t, c.hello, secured(t, ca.issueTo(t, c.cert...)))
				a.Targets([]Target{to(m)})
				m.Targets([]Target{to(a)})
				synctest.Wait()
				m.Send(a.hello.Member.ID, []byte("in another's name"))
				synctest.Wait()
				s := a.Stats()
				if c.want == "" {
					if s.Outgoing != 1 || s.Accepted != 1 || len(a.got(c.hello.Member.ID)) != 1 {
						t.Errorf("stats %+v, log %s", s, a.log)
					}
					return
				}
				if s.Outgoing != 0 || s.Accepted != 0 || s.Refused[ReasonIdentity] != 2 || len(a.got(c.hello.Member.ID)) != 0 {
					t.Errorf("stats %+v, frames %q", s, a.got(c.hello.Member.ID))
				}
				if got := a.lines("peer refused", "reason=identity", c.want); got != 2 {
					t.Errorf("%d lines, want one of each end: %s", got, a.log)
				}
				if err := a.outgoing(m.addr).Err; !isRefused(err, ReasonIdentity, false) {
					t.Errorf("the dialer has %v", err)
				}
				if err := m.outgoing(a.addr).Err; !isRefused(err, ReasonIdentity, true) {
					t.Errorf("mallory has %v", err)
				}
			})
		})
	}
}

func isRefused(err error, reason string, byPeer bool) bool {
	var r *Refused
	return errors.As(err, &r) && r.Reason == reason && r.ByPeer == byPeer
}

// Without names in its own certificate a daemon trusts the authorities alone,
// but a certificate with names speaks for these only.
func TestWithoutOwnName(t *testing.T) {
	for name, c := range map[string]struct {
		cert []certs.Name
		up   int
	}{"no names": {nil, 1}, "another name": {[]certs.Name{eu0}, 0}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				ca := newAuthority(t, "the cluster")
				a := n.start(t, helloOf(1, "us", "us-0"), secured(t, ca.issueTo(t)))
				b := n.start(t, helloAs("us", "us-1"), secured(t, ca.issueTo(t, c.cert...)))
				a.Targets([]Target{to(b)})
				time.Sleep(recheckEvery + time.Second)
				synctest.Wait()
				if got := a.Stats().Outgoing; got != c.up {
					t.Errorf("%d streams, want %d: %s", got, c.up, a.log)
				}
			})
		})
	}
}

// TestKick has mallory claim the address, or the incarnation, of another daemon
// again and again: the stream of that one stays up.
func TestKick(t *testing.T) {
	claims := map[string]func(h *Hello, victim Hello){
		"address":     func(h *Hello, victim Hello) { h.Member.Addr = victim.Member.Addr },
		"incarnation": func(h *Hello, victim Hello) { h.Member.ID = victim.Member.ID },
	}
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) { kick(t, n, claim, nil) })
			bubble(t, func(t *testing.T, n *network) { kick(t, n, claim, newAuthority(t, "the cluster")) })
		})
	}
}

func kick(t *testing.T, n *network, claim func(h *Hello, victim Hello), ca *authority) {
	t.Helper()
	start := func(name certs.Name) *daemon {
		if ca == nil {
			return n.start(t, helloAs(name.Region, name.Daemon), nil)
		}
		return n.join(t, ca, name, nil)
	}
	a, victim, m := start(us0), start(us1), start(eu0)
	victim.Targets([]Target{to(a)})
	synctest.Wait()
	for i := range 3 * streamsEach {
		m.mu.Lock()
		m.hello.Member.ID = gossip.DaemonIncarnation("eu", "eu-0", uint32(i))
		claim(&m.hello, victim.hello)
		m.mu.Unlock()
		m.Renew()
		m.Targets(nil)
		synctest.Wait()
		m.Targets([]Target{to(a)})
		time.Sleep(maxBackoff)
	}
	synctest.Wait()
	if got := victim.outgoing(a.addr); got.State != StateUp || got.Attempts != 1 {
		t.Errorf("the victim's stream: %+v, log %s", got, a.log)
	}
}

// reject has a daemon end the streams of all peers that send a frame.
func reject(Hello, []byte) error {
	return &ProtocolError{Reason: "invalid", Err: errors.New("not a frame")}
}

// TestFreshNames has a peer send invalid frames under another incarnation and
// address each time. It is excluded by its certificate or else by its machine.
func TestFreshNames(t *testing.T) {
	for name, c := range map[string]struct {
		secure bool
		most   uint64 // protocol errors in 45 s
	}{"certificate": {true, 8}, "machine": {false, machineErrors + 8}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				start := func(name certs.Name) *daemon { return n.start(t, helloAs(name.Region, name.Daemon), nil) }
				if c.secure {
					ca := newAuthority(t, "the cluster")
					start = func(name certs.Name) *daemon { return n.join(t, ca, name, nil) }
				}
				a, m := start(us0), start(eu0)
				a.judge = reject
				begin := time.Now()
				for i := uint32(0); time.Since(begin) < 45*time.Second; i++ {
					m.mu.Lock()
					m.hello.Member.ID = gossip.DaemonIncarnation("eu", "eu-0", i)
					m.hello.Member.Addr = fmt.Sprintf("eu-%d:7947", i)
					m.mu.Unlock()
					m.Targets([]Target{to(a)})
					time.Sleep(20 * time.Millisecond)
					m.Send(a.hello.Member.ID, []byte("invalid"))
					time.Sleep(480 * time.Millisecond)
					m.Targets(nil)
					synctest.Wait()
				}
				if got := a.Stats().ProtocolErrors["invalid"]; got > c.most || got == 0 {
					t.Errorf("%d protocol errors, want at most %d", got, c.most)
				}
				if got := a.lines(""); got > 3*sourcesEach {
					t.Errorf("%d lines of the log", got)
				}
			})
		})
	}
}

// A named peer with a penalty has it at each machine, and its neighbors on a
// machine have none.
func TestPenaltyOfName(t *testing.T) {
	var p penalties
	now := time.Unix(0, 0)
	eu := penaltyKeys(&proof{names: []certs.Name{eu0}}, "10.0.0.1:5000", helloAs("eu", "eu-0"))
	p.add(eu, now)
	if p.remaining(penaltyKeys(&proof{names: []certs.Name{eu0}}, "10.0.0.2:1", helloOf(7, "eu", "eu-0")), now) == 0 {
		t.Error("the penalty is escaped at another machine")
	}
	if p.remaining(penaltyKeys(&proof{names: []certs.Name{us1}}, "10.0.0.1:1", helloAs("us", "us-1")), now) > 0 {
		t.Error("a neighbor has the penalty, too")
	}
}

// Few protocol errors exclude no machine, and it forgets them.
func TestPenaltyOfMachine(t *testing.T) {
	var p penalties
	now := time.Unix(0, 0)
	other := penaltyKeys(&proof{}, "10.0.0.1:1", helloOf(999, "eu", "good"))
	for i := range 20 * machineErrors {
		p.add(penaltyKeys(&proof{}, "10.0.0.1:1", helloOf(crdt.Incarnation(i+1), "eu", fmt.Sprint(i))), now)
		if left := p.remaining(other, now); left > 0 {
			t.Fatalf("the machine is excluded after %d errors, one in %v", i+1, machineForgets)
		}
		now = now.Add(machineForgets)
	}
	for i := range machineErrors + 1 {
		p.add(penaltyKeys(&proof{}, "10.0.0.1:1", helloOf(crdt.Incarnation(1000+i), "eu", fmt.Sprint(i))), now)
	}
	if left := p.remaining(other, now); left != minPenalty {
		t.Errorf("after many errors the machine waits %v, want %v", left, minPenalty)
	}
}

// TestNotTrustedAnyMore has two daemons with streams to each other, and then
// takes the trust in one of them away: within 60 s it has none.
func TestNotTrustedAnyMore(t *testing.T) {
	for _, c := range []struct {
		name, reason, line string
		change             func(t *testing.T, files issued, revoked *atomic.Bool)
	}{
		{"expired", ReasonTLS, "has expired", func(*testing.T, issued, *atomic.Bool) { time.Sleep(time.Hour) }},
		{"authorities replaced", ReasonTLS, "unknown authority", func(t *testing.T, files issued, _ *atomic.Bool) {
			next := newAuthority(t, "the next one").issueTo(t, us0)
			for from, to := range map[string]string{next.cert: files.cert, next.key: files.key, next.ca: files.ca} {
				b, err := os.ReadFile(from)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(to, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"revoked", ReasonRevoked, "eu/eu-0 is revoked", func(_ *testing.T, _ issued, revoked *atomic.Bool) { revoked.Store(true) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				ca := newAuthority(t, "the cluster")
				files := ca.issueTo(t, us0)
				secure := secured(t, files)
				var revoked atomic.Bool
				a := n.start(t, helloAs("us", "us-0"), func(config *Config) {
					secure(config)
					config.Revoked = func(name certs.Name) bool { return revoked.Load() && name == eu0 }
				})
				b := n.start(t, helloAs("eu", "eu-0"), secured(t, ca.issue(t, t.TempDir(), "rld", func(x *x509.Certificate) {
					named(eu0)(x)
					x.NotAfter = time.Now().Add(time.Hour)
				})))
				other := n.join(t, ca, us1, nil)
				for _, d := range []*daemon{b, other} {
					a.Targets([]Target{to(b), to(other)})
					d.Targets([]Target{to(a)})
				}
				time.Sleep(2 * recheckEvery)
				if s := a.Stats(); s.Outgoing != 2 || s.Accepted != 2 || len(s.Refused) != 0 {
					t.Fatalf("before: %+v, log %s", s, a.log)
				}
				c.change(t, files, &revoked)
				time.Sleep(time.Minute)
				synctest.Wait()
				var up []string
				for _, s := range a.Streams() {
					if s.State == StateUp {
						up = append(up, s.Hello.Member.Name)
					}
				}
				want := "[us-1 us-1]"
				if c.name == "authorities replaced" {
					want = "[]"
				}
				if got := fmt.Sprint(up); got != want {
					t.Errorf("streams of %s, want %s", got, want)
				}
				if s := a.Stats(); s.Refused[c.reason] < 2 {
					t.Errorf("stats %+v", s)
				}
				if a.lines("peer refused", "reason="+c.reason, "eu/eu-0 (eu-0:7947)", c.line) == 0 {
					t.Errorf("log: %s", a.log)
				}
				if a.Send(b.hello.Member.ID, []byte("x")) {
					t.Error("a frame is sent to it")
				}
			})
		})
	}
}

// TestExpiresSoon warns once of the own certificate, and of a peer's, in the
// last third of its time.
func TestExpiresSoon(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		ca := newAuthority(t, "the cluster")
		until := func(name certs.Name, minutes int) *daemon {
			f := ca.issue(t, t.TempDir(), "rld", func(c *x509.Certificate) {
				named(name)(c)
				c.NotBefore, c.NotAfter = time.Now(), time.Now().Add(time.Duration(minutes)*time.Minute)
			})
			return n.start(t, helloAs(name.Region, name.Daemon), secured(t, f))
		}
		a, b := until(us0, 90), until(eu0, 60)
		a.Targets([]Target{to(b)})
		time.Sleep(39 * time.Minute)
		if got := a.Stats().Certified; got.Soon || a.lines("expires soon") != 0 || !got.On || got.Peer != "eu/eu-0" ||
			!got.PeerNotAfter.Before(got.NotAfter) || len(got.Names) != 1 {
			t.Errorf("early: %+v, log %s", got, a.log)
		}
		time.Sleep(5 * time.Minute)
		if a.lines("the certificate of a peer expires soon", "eu/eu-0") != 1 || a.lines("of this daemon") != 0 {
			t.Errorf("16 minutes before the peer's end: %s", a.log)
		}
		time.Sleep(18 * time.Minute)
		if got := a.Stats().Certified; !got.Soon || a.lines("the certificate of this daemon expires soon") != 1 || got.Peer != "" {
			t.Errorf("28 minutes before the own end: %+v, log %s", got, a.log)
		}
	})
}

// TestPriorityOfAnotherName has a daemon with the key of another one open a
// priority stream beside that one's bulk stream: its certificate does not fit.
func TestPriorityOfAnotherName(t *testing.T) {
	ca := newAuthority(t, "the cluster")
	l := newPriorityPair(t, func(name string) func(*Config) { return secured(t, ca.issue(t, t.TempDir(), name, nil)) })
	stolen, err := LoadCertificates(ca.issueTo(t, eu0).files(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	config := stolen.Client()
	config.NextProtos = []string{priorityProto}
	conn, err := tls.Dial("tcp", l.addr, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	hello := helloOf(gossip.DaemonIncarnation("eu", "a", 1), "eu", "a") // all but the name is right
	if _, err := conn.Write(appendPriorityFrame(nil, encoded(t, greetingFrom(hello)))); err != nil {
		t.Fatal(err)
	}
	await.Done(t, "the end of the connection", func() {
		if got, _ := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("it answered with %d bytes", len(got))
		}
	})
	if got := l.b.Stats().Refused[ReasonIdentity]; got != 1 {
		t.Errorf("%d refused for %s, want 1", got, ReasonIdentity)
	}
}
