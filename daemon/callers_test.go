package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/certs/certstest"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/server/auth"
)

// issue returns a certificate for 127.0.0.1 with a URI, and its key, in PEM.
func issue(t *testing.T, a *certstest.Authority, uri string) (cert, key []byte) {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return a.Issue(t, func(c *x509.Certificate) {
		c.IPAddresses, c.URIs = []net.IP{net.IPv4(127, 0, 0, 1)}, []*url.URL{u}
	})
}

// caller is one way to call a daemon.
type caller struct {
	tls   *tls.Config // nil for plain text
	token string
	unix  bool
}

// trusting returns TLS of a caller that trusts a, with a certificate of by for
// a URI, or with none.
func trusting(t *testing.T, a, by *certstest.Authority, uri string) *tls.Config {
	t.Helper()
	out := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
	out.RootCAs.AddCert(a.Cert)
	if by != nil {
		cert, key := issue(t, by, uri)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		// Even if the listener asks for another authority.
		out.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return out
}

// grpc returns the code of a check over gRPC.
func (c *caller) grpc(t *testing.T, r *running) codes.Code {
	t.Helper()
	target, transport := r.edges.grpcAddr(), insecure.NewCredentials()
	if c.tls != nil {
		transport = credentials.NewTLS(c.tls)
	}
	if c.unix {
		target = "unix:" + r.Config.GRPC.UDS
	}
	cc, err := grpc.NewClient(target, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if c.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
	}
	_, err = rldv1.NewRateLimiterClient(cc).Check(ctx, &rldv1.CheckRequest{
		Domain: "edge", Descriptors: []*rldv1.Descriptor{{Entries: []*rldv1.Entry{{Key: "user", Value: "a"}}}},
	})
	return status.Code(err)
}

// http returns the status of a check over HTTP, 0 for none.
func (c *caller) http(t *testing.T, r *running) int {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: c.tls, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	scheme := "http"
	if c.tls != nil {
		scheme = "https"
	}
	if c.unix {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", r.Config.HTTP.UDS)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		scheme+"://"+r.edges.httpAddr()+"/v1/check?domain=edge&user=a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// guarded is a configuration with TLS, and the files of it.
type guarded struct {
	config.Config
	dir    string
	server *certstest.Authority
}

func (g *guarded) file(name string) string { return filepath.Join(g.dir, name) }

// put replaces a file at once, as a ConfigMap does.
func (g *guarded) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(g.file(name+".new"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(g.file(name+".new"), g.file(name)); err != nil {
		t.Fatal(err)
	}
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{Config: testConfig(t, oneRule), dir: t.TempDir(), server: certstest.New(t, nil)}
	cert, key := issue(t, g.server, "https://rld.example")
	g.put(t, "cert", cert)
	g.put(t, "key", key)
	files := config.ServerTLS{CertFile: g.file("cert"), KeyFile: g.file("key")}
	g.GRPC.TLS, g.HTTP.TLS = files, files
	g.GRPC.UDS, g.HTTP.UDS = g.file("grpc.sock"), g.file("http.sock")
	return g
}

func (g *guarded) withClients(t *testing.T, by *certstest.Authority, san string) {
	t.Helper()
	g.put(t, "clients", by.PEM())
	for _, s := range []*config.ServerTLS{&g.GRPC.TLS, &g.HTTP.TLS} {
		s.ClientCAFile, s.ClientSAN = g.file("clients"), san
	}
}

func (g *guarded) withTokens(t *testing.T, names ...string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("tokens:\n")
	for _, name := range names {
		sum := auth.Hash(name)
		fmt.Fprintf(&b, "  - {name: %s, sha256: %q, domains: [edge]}\n", name, hex.EncodeToString(sum[:]))
	}
	g.put(t, "tokens", []byte(b.String()))
	g.Auth.TokensFile = g.file("tokens")
}

// TestCallers calls daemons with all kinds of credentials.
func TestCallers(t *testing.T) {
	const envoy = "spiffe://mesh/envoy"
	clients, outsiders := certstest.New(t, nil), certstest.New(t, nil)
	g := newGuarded(t)
	bare := trusting(t, g.server, nil, "")
	named, other := trusting(t, g.server, clients, envoy), trusting(t, g.server, clients, "spiffe://mesh/other")
	foreign := trusting(t, g.server, outsiders, envoy)
	for _, d := range []struct {
		name  string
		setup func(*guarded)
		want  map[string]int // status by the name of a caller
	}{
		{"TLS", func(*guarded) {}, map[string]int{"bare": 200, "plain": 400, "unix": 200}},
		{
			"client certificates", func(g *guarded) { g.withClients(t, clients, "") },
			map[string]int{"bare": 0, "named": 200, "other": 200, "foreign": 0, "plain": 400, "unix": 200},
		},
		{
			"one client", func(g *guarded) { g.withClients(t, clients, envoy) },
			map[string]int{"bare": 0, "named": 200, "other": 0, "foreign": 0, "unix": 200},
		},
		{
			"tokens", func(g *guarded) { g.withTokens(t, "right") },
			map[string]int{"bare": 401, "right": 200, "wrong": 401, "unix": 200},
		},
		{
			"both", func(g *guarded) { g.withTokens(t, "right"); g.withClients(t, clients, "") },
			map[string]int{"bare": 401, "right": 200, "wrong": 401, "named": 200, "foreign": 0, "unix": 200},
		},
	} {
		t.Run(d.name, func(t *testing.T) {
			g := *g
			d.setup(&g)
			r := startDaemon(t, g.Config)
			for name, want := range d.want {
				c := map[string]*caller{
					"bare": {tls: bare}, "named": {tls: named}, "other": {tls: other}, "foreign": {tls: foreign},
					"right": {tls: bare, token: "right"}, "wrong": {tls: bare, token: "wrong"}, "plain": {}, "unix": {unix: true},
				}[name]
				if got := c.http(t, r); got != want {
					t.Errorf("%s over HTTP: %d, want %d", name, got, want)
				}
				code := map[int]codes.Code{0: codes.Unavailable, 200: codes.OK, 400: codes.Unavailable, 401: codes.Unauthenticated}[want]
				if got := c.grpc(t, r); got != code {
					t.Errorf("%s over gRPC: %v, want %v", name, got, code)
				}
			}
		})
	}
}

// TestOldTLS refuses versions of TLS before 1.2, and connections for other
// protocols than HTTP. Callers of HTTP/2 have no ciphers for old versions in
// Go, so this one speaks HTTP/1.1.
func TestOldTLS(t *testing.T) {
	g := newGuarded(t)
	r := startDaemon(t, g.Config)
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := trusting(t, g.server, nil, "")
		c.MinVersion, c.MaxVersion, c.NextProtos = version, version, []string{"http/1.1"}
		conn, err := tls.Dial("tcp", r.edges.httpAddr(), c)
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("%s: %v, want success: %v", tls.VersionName(version), err, want)
		}
		if err == nil {
			conn.Close()
		}
	}
	for _, addr := range []string{r.edges.httpAddr(), r.edges.grpcAddr()} {
		c := trusting(t, g.server, nil, "")
		c.NextProtos = []string{"smtp"}
		conn, err := tls.Dial("tcp", addr, c)
		if err == nil || !strings.Contains(err.Error(), "no application protocol") {
			t.Errorf("%s: SMTP: %v, want that it is refused", addr, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// TestCallersReload changes the files of a daemon that runs. Invalid ones leave
// the former in force.
func TestCallersReload(t *testing.T) {
	g := newGuarded(t)
	g.withTokens(t, "first")
	r := startDaemon(t, g.Config)
	first, second := &caller{tls: trusting(t, g.server, nil, ""), token: "first"}, &caller{tls: trusting(t, g.server, nil, ""), token: "second"}
	if a, b := first.http(t, r), second.http(t, r); a != 200 || b != 401 {
		t.Fatalf("at first: %d, %d", a, b)
	}
	logged := func(text string) {
		t.Helper()
		await.True(t, text, func() bool { return strings.Contains(r.log.String(), text) })
	}

	g.put(t, "tokens", []byte("tokens: [first]\n"))
	logged("the former tokens stay in force")
	if !strings.Contains(r.log.String(), "tokens:1:10: is not the map of a token") {
		t.Errorf("the place of the fault is not in the log:\n%s", r.log)
	}
	if got := first.http(t, r); got != 200 {
		t.Errorf("with an invalid file: %d", got)
	}
	if m := get(t, r.edges.adminAddr(), "/metrics"); !strings.Contains(m, `rld_credentials_stale{file="tokens"} 1`) {
		t.Error("the metric does not show the invalid file")
	}
	g.withTokens(t, "second")
	logged("tokens changed")
	if a, b := first.grpc(t, r), second.grpc(t, r); a != codes.Unauthenticated || b != codes.OK {
		t.Errorf("after the change: %v, %v", a, b)
	}

	g.put(t, "cert", []byte("broken"))
	logged("the former ones stay in force")
	if got := second.http(t, r); got != 200 {
		t.Errorf("with a broken certificate: %d", got)
	}
	next := certstest.New(t, nil)
	cert, key := issue(t, next, "https://rld.example")
	g.put(t, "key", key)
	g.put(t, "cert", cert)
	third := &caller{tls: trusting(t, next, nil, ""), token: "second"}
	await.True(t, "the certificate changes", func() bool { return third.http(t, r) == 200 && third.grpc(t, r) == codes.OK })
	m := get(t, r.edges.adminAddr(), "/metrics")
	for _, want := range []string{
		fmt.Sprintf("rld_listener_certificate_expiry_timestamp_seconds{listener=\"grpc\"} %g", expiryOf(t, cert)),
		`rld_token_calls_total{token="second"}`, `rld_refused_calls_total{reason="unknown_token",token=""} 2`,
		`rld_credentials_stale{file="grpc"} 0`,
	} {
		if !strings.Contains(m, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
}

func expiryOf(t *testing.T, cert []byte) float64 {
	t.Helper()
	block, _ := pem.Decode(cert)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return float64(c.NotAfter.Unix())
}

// TestFailedHandshakesAreNamedOnce counts the callers without TLS on both
// listeners.
func TestFailedHandshakesAreNamedOnce(t *testing.T) {
	r := startDaemon(t, newGuarded(t).Config)
	for range 3 {
		(&caller{}).http(t, r)
	}
	for _, addr := range []string{r.edges.grpcAddr(), r.edges.grpcAddr()} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		io.Copy(io.Discard, conn)
		conn.Close()
	}
	await.True(t, "all are counted", func() bool {
		m := get(t, r.edges.adminAddr(), "/metrics")
		return strings.Contains(m, `rld_tls_handshake_failures_total{listener="http",reason="plain_text"} 3`) &&
			strings.Contains(m, `rld_tls_handshake_failures_total{listener="grpc",reason="plain_text"} 2`)
	})
	if n := strings.Count(r.log.String(), "a TLS handshake failed"); n != 2 {
		t.Errorf("%d lines in the log, want one a listener:\n%s", n, r.log)
	}
}

// TestOpenToAll: health needs no token, and the reflection for those with a
// token.
func TestOpenToAll(t *testing.T) {
	c := testConfig(t, oneRule)
	g := &guarded{Config: c, dir: t.TempDir()}
	g.withTokens(t, "right")
	g.GRPC.Reflection = true
	r := startDaemon(t, g.Config)
	cc := dial(t, r.edges.grpcAddr())
	if _, err := healthpb.NewHealthClient(cc).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	reflect := func(ctx context.Context) codes.Code {
		stream, err := reflectionpb.NewServerReflectionClient(cc).ServerReflectionInfo(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
		_, err = stream.Recv()
		stream.CloseSend()
		return status.Code(err)
	}
	if got := reflect(t.Context()); got != codes.Unauthenticated {
		t.Errorf("reflection without a token: %v", got)
	}
	if got := reflect(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer right")); got != codes.OK {
		t.Errorf("reflection with a token: %v", got)
	}
}
