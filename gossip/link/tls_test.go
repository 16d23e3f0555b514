package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/certs/certstest"
)

// authority signs certificates that are valid in a bubble.
type authority struct{ *certstest.Authority }

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	return &authority{certstest.New(t, func(c *x509.Certificate) { c.Subject.CommonName = name })}
}

// issued is the files of a daemon.
type issued struct{ cert, key, ca string }

func (f issued) files() certs.Files { return certs.Files{Cert: f.cert, Key: f.key, CA: f.ca} }

// issue writes the files of a daemon into dir and overwrites existing ones.
func (a *authority) issue(t *testing.T, dir, name string, mend func(*x509.Certificate)) issued {
	t.Helper()
	f := a.Write(t, dir, func(c *x509.Certificate) {
		c.Subject.CommonName = name
		if mend != nil {
			mend(c)
		}
	})
	return issued{f.Cert, f.Key, f.CA}
}

func secured(t *testing.T, f issued) func(*Config) {
	t.Helper()
	c, err := LoadCertificates(f.files(), slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	return func(config *Config) { config.Certificates = c }
}

func TestTLS(t *testing.T) {
	bubble(t, func(t *testing.T, n *network) {
		ca := newAuthority(t, "the cluster")
		a := n.start(t, helloOf(1, "eu", "a"), secured(t, ca.issue(t, t.TempDir(), "a", nil)))
		b := n.start(t, helloOf(2, "eu", "b"), secured(t, ca.issue(t, t.TempDir(), "b", nil)))
		a.Targets([]Target{to(b)})
		synctest.Wait()
		frame := strings.Repeat("count", 100)
		if !a.Send(2, []byte(frame)) {
			t.Fatalf("no stream: %+v", a.Streams())
		}
		synctest.Wait()
		if got := b.got(1); len(got) != 1 || got[0] != frame {
			t.Errorf("frames %q", got)
		}
	})
}

// TestNoTrust has daemons that do not agree on TLS dial each other. Both ends
// report it clearly, and count it.
func TestNoTrust(t *testing.T) {
	ca, other := newAuthority(t, "the cluster"), newAuthority(t, "another")
	own := ca.issue(t, t.TempDir(), "own", nil)
	foreign := other.issue(t, t.TempDir(), "foreign", nil)
	// One that trusts the cluster, and is not trusted by it.
	untrusted := foreign
	untrusted.ca = own.ca
	for _, c := range []struct {
		name             string
		dialer, acceptor func(t *testing.T) func(*Config)
		dialerKnows      string
		acceptorKnows    string
		// Whether the dialer knows that it was refused, and by which daemon.
		refused, there bool
	}{
		{
			"other authority", with(foreign), with(own),
			"b:7947: TLS: failed to verify certificate: x509: certificate signed by unknown authority", "remote error: tls: bad certificate", true, false,
		},
		{
			"untrusted", unchecked(untrusted), with(own),
			"b:7947: TLS: remote error: tls", "failed to verify certificate: x509: certificate signed by unknown authority", true, true,
		},
		{
			"no certificate", func(*testing.T) func(*Config) {
				return func(c *Config) { c.Client = &tls.Config{InsecureSkipVerify: true} }
			}, with(own),
			"b:7947: TLS: remote error: tls: certificate required", "client didn't provide a certificate", true, true,
		},
		{
			"plain dials TLS", plain, with(own),
			"b:7947 hung up (EOF): if it speaks TLS, give this daemon peer.tls too",
			"it does not speak TLS, and this daemon does: give all daemons peer.tls", false, false,
		},
		{
			"TLS dials plain", with(own), plain,
			"b:7947: it does not speak TLS, and this daemon does: give all daemons peer.tls",
			"it speaks TLS, and this daemon does not: give all daemons peer.tls", true, false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), c.dialer(t))
				b := n.start(t, helloOf(2, "eu", "b"), c.acceptor(t))
				a.Targets([]Target{to(b)})
				time.Sleep(10 * time.Second)
				synctest.Wait()
				var refused *Refused
				err := a.outgoing(b.addr).Err
				if c.there && strings.Contains(err.Error(), "b:7947 hung up") {
					// The connection broke before the dialer could read why.
					c.refused, c.dialerKnows = false, "its log says why it does not take this daemon's certificate"
				}
				if !strings.Contains(err.Error(), c.dialerKnows) {
					t.Errorf("the dialer knows %v, want %s", err, c.dialerKnows)
				}
				if ok := errors.As(err, &refused); ok != c.refused ||
					ok && (refused.Reason != ReasonTLS || refused.ByPeer != c.there) {
					t.Errorf("the dialer has %#v, want refused %t, there %t", err, c.refused, c.there)
				}
				if got := a.lines(c.dialerKnows); got > 1 || got == 0 && !c.there {
					t.Errorf("%d lines of the dialer: %s", got, a.log)
				}
				if b.Stats().Refused[ReasonTLS] == 0 || b.Stats().Accepted != 0 {
					t.Errorf("stats of the acceptor: %+v", b.Stats())
				}
				if got := b.lines("peer refused", "eu/b (b:7947) refuses bufconn", c.acceptorKnows); got != 1 {
					t.Errorf("%d lines of the acceptor, want %q: %s", got, c.acceptorKnows, b.log)
				}
			})
		})
	}
}

func with(f issued) func(t *testing.T) func(*Config) {
	return func(t *testing.T) func(*Config) { return secured(t, f) }
}

func plain(*testing.T) func(*Config) { return func(*Config) {} }

// unchecked uses files that TLS itself would refuse.
func unchecked(f issued) func(t *testing.T) func(*Config) {
	return func(t *testing.T) func(*Config) {
		t.Helper()
		cert, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			t.Fatal(err)
		}
		return func(c *Config) {
			c.Client = &tls.Config{
				InsecureSkipVerify: true,
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					return &cert, nil
				},
			}
		}
	}
}

// TestHealthChecksAreSilent connects and goes, as load balancers do.
func TestHealthChecksAreSilent(t *testing.T) {
	ca := newAuthority(t, "the cluster")
	f := ca.issue(t, t.TempDir(), "own", nil)
	for name, adjust := range map[string]func(t *testing.T) func(*Config){"plain": plain, "TLS": with(f)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *network) {
				a := n.start(t, helloOf(1, "eu", "a"), adjust(t))
				conn, err := n.dial(t.Context(), a.addr)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				conn.Close()
				synctest.Wait()
				if s := a.Stats(); len(s.Refused) != 0 || a.log.String() != "" {
					t.Errorf("stats %+v, log %s", s, a.log)
				}
			})
		})
	}
}

// TestReload changes the files under a running daemon.
func TestReload(t *testing.T) {
	ca := newAuthority(t, "the cluster")
	dir := t.TempDir()
	f := ca.issue(t, dir, "first", nil)
	var log bytes.Buffer
	c, err := LoadCertificates(f.files(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		t.Helper()
		got, err := served(t, c.Server(), c.Client())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := name(); got != "first" || log.Len() != 0 {
		t.Errorf("certificate of %q, log %s", got, &log)
	}
	ca.issue(t, dir, "second", nil)
	if got := name(); got != "second" || !strings.Contains(log.String(), "certificates of peers changed") {
		t.Errorf("certificate of %q, log %s", got, &log)
	}
	log.Reset()
	other := newAuthority(t, "another").issue(t, t.TempDir(), "other", nil)
	for what, broken := range map[string]func() error{
		"another key": func() error { return copyFile(other.key, f.key) },
		"no PEM":      func() error { return os.WriteFile(f.cert, []byte("invalid"), 0o600) },
		"no file":     func() error { return os.Remove(f.ca) },
		"other CA":    func() error { return copyFile(other.ca, f.ca) },
	} {
		ca.issue(t, dir, "second", nil)
		name()
		log.Reset()
		if err := broken(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if got := name(); got != "second" {
				t.Errorf("%s: certificate of %q, want the last good one", what, got)
			}
		}
		if n := strings.Count(log.String(), "broken: the former ones stay in force"); n != 1 || c.store.Fault() == nil {
			t.Errorf("%s: %d lines, error %v: %s", what, n, c.store.Fault(), &log)
		}
	}
	ca.issue(t, dir, "third", nil)
	if got := name(); got != "third" || c.store.Fault() != nil {
		t.Errorf("certificate of %q, error %v", got, c.store.Fault())
	}
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// served makes a connection and returns the name in the server's certificate.
func served(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	done := make(chan error, 1)
	go func() {
		conn := tls.Server(far, server)
		_, err := conn.Write([]byte("x"))
		done <- err
	}()
	conn := tls.Client(near, client)
	_, err := io.ReadFull(conn, make([]byte, 1))
	near.Close()
	if err := errors.Join(err, <-done); err != nil {
		return "", err
	}
	state := conn.ConnectionState()
	if state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "h2" {
		t.Errorf("TLS %x, protocol %q", state.Version, state.NegotiatedProtocol)
	}
	return state.PeerCertificates[0].Subject.CommonName, nil
}

// TestBadCertificates loads what no peer would accept.
func TestBadCertificates(t *testing.T) {
	ca, other := newAuthority(t, "the cluster"), newAuthority(t, "another")
	foreign := other.issue(t, t.TempDir(), "other", nil)
	for name, c := range map[string]struct {
		mend func(*x509.Certificate)
		swap func(f *issued)
		want string
	}{
		"no file":         {swap: func(f *issued) { f.cert += "x" }, want: "no such file"},
		"no PEM":          {swap: func(f *issued) { f.ca = f.key }, want: "no certificate in it"},
		"another key":     {swap: func(f *issued) { f.key = foreign.key }, want: "private key does not match"},
		"other authority": {swap: func(f *issued) { f.ca = foreign.ca }, want: "unknown authority"},
		"expired":         {mend: func(c *x509.Certificate) { c.NotAfter = certstest.From.Add(time.Hour) }, want: "expired"},
		"not yet valid":   {mend: func(c *x509.Certificate) { c.NotBefore = certstest.Until }, want: "not yet valid"},
		"servers only": {
			mend: func(c *x509.Certificate) { c.ExtKeyUsage = certstest.Both()[:1] }, want: "both ends of TLS",
		},
	} {
		f := ca.issue(t, t.TempDir(), "own", c.mend)
		if c.swap != nil {
			c.swap(&f)
		}
		if _, err := LoadCertificates(f.files(), slog.Default()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestRealSockets runs two daemons over TCP and TLS, without a clock of the
// test's own.
func TestRealSockets(t *testing.T) {
	ca := newAuthority(t, "the cluster")
	n := newNetwork()
	dialer := &net.Dialer{}
	overTCP := func(name string) func(*Config) {
		secure := secured(t, ca.issue(t, t.TempDir(), name, nil))
		return func(c *Config) {
			secure(c)
			c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", addr)
			}
		}
	}
	a := n.start(t, helloOf(1, "eu", "a"), overTCP("a"))
	arrived := make(chan string, 100)
	b := n.start(t, helloOf(2, "eu", "b"), overTCP("b"))
	b.mu.Lock()
	b.judge = func(_ Hello, frame []byte) error { arrived <- string(frame); return nil }
	b.mu.Unlock()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- b.Serve(lis) }()
	a.Targets([]Target{{Addr: lis.Addr().String(), Region: "eu", WAN: true}})
	await.True(t, "there is a stream", func() bool { return a.Stats().Outgoing > 0 })
	frame := strings.Repeat("count", 10_000)
	if !a.Send(2, []byte(frame)) {
		t.Fatal("a frame was not sent")
	}
	if got := await.Value(t, "the frame", arrived); got != frame {
		t.Errorf("a frame of %d bytes arrived, want %d", len(got), len(frame))
	}
	b.Close()
	if err := await.Value(t, "the end of Serve", served); err != nil {
		t.Errorf("serving ended with %v", err)
	}
}
