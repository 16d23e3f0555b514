package daemon

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/certs/certstest"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/server/auth"
)

// operator is one way to the admin listener.
type operator struct {
	tls    *tls.Config // nil for plain text
	token  string
	socket bool
	header http.Header
}

// ask sends a request and returns the status, 0 for none.
func (o *operator) ask(t *testing.T, r *running, method, path string) (status int, header http.Header) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: o.tls, DisableKeepAlives: true}
	scheme := "http"
	if o.tls != nil {
		scheme = "https"
	}
	if o.socket {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socketPath(r.edges.adminUDSLis))
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, scheme+"://"+r.edges.adminAddr()+path, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range o.header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	if o.token != "" {
		req.Header.Set("Authorization", "Bearer "+o.token)
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header
}

const (
	revealPath = "/v1/top?reveal=true"       // auth.Operate
	initPath   = "/v1/cluster/region-resume" // auth.Admin; 409 from a daemon alone
)

// withOperators gives a token for each role, named as the role.
func (g *guarded) withOperators(t *testing.T) {
	t.Helper()
	var b strings.Builder
	b.WriteString("tokens:\n")
	for role := auth.View; role <= auth.Admin; role++ {
		sum := auth.Hash(role.String())
		fmt.Fprintf(&b, "  - {name: %s, sha256: %q, role: %s}\n", role, hex.EncodeToString(sum[:]), role)
	}
	g.put(t, "operators", []byte(b.String()))
	g.Admin.TokensFile = g.file("operators")
}

// TestOperators asks a daemon with tokens, and with certificates, with all
// kinds of credentials.
func TestOperators(t *testing.T) {
	people, outsiders := certstest.New(t, nil), certstest.New(t, nil)
	g := newGuarded(t)
	bare := trusting(t, g.server, nil, "")
	ann := trusting(t, g.server, people, auth.OperatorURI(auth.Operate, "ann").String())
	boss := trusting(t, g.server, people, auth.OperatorURI(auth.Admin, "boss").String())
	peer := trusting(t, g.server, people, "spiffe://rld/us/us-0")
	foreign := trusting(t, g.server, outsiders, auth.OperatorURI(auth.Admin, "boss").String())
	withTLS := func(t *testing.T, g *guarded) {
		g.Admin.TLS.CertFile, g.Admin.TLS.KeyFile = g.file("cert"), g.file("key")
	}
	withCertificates := func(t *testing.T, g *guarded) {
		withTLS(t, g)
		g.put(t, "people", people.PEM())
		g.Admin.TLS.ClientCAFile = g.file("people")
	}
	type statuses [3]int // of a view, a reveal and a command
	for _, d := range []struct {
		name  string
		setup func(*testing.T, *guarded)
		want  map[string]statuses
	}{
		{"nothing", func(*testing.T, *guarded) {}, map[string]statuses{"plain": {200, 401, 401}, "admin": {200, 401, 401}, "socket": {200, 200, 409}}},
		{
			"tokens", func(t *testing.T, g *guarded) { g.withOperators(t) },
			map[string]statuses{
				"plain": {401, 401, 401}, "view": {200, 403, 403}, "operate": {200, 200, 403}, "admin": {200, 200, 409},
				"wrong": {401, 401, 401}, "socket": {200, 200, 409},
			},
		},
		{
			"certificates", withCertificates,
			map[string]statuses{
				"bare": {}, "ann": {200, 200, 403}, "boss": {200, 200, 409}, "peer": {403, 403, 403}, "foreign": {}, "socket": {200, 200, 409},
			},
		},
		{
			"both", func(t *testing.T, g *guarded) { withCertificates(t, g); g.withOperators(t) },
			map[string]statuses{"bare": {401, 401, 401}, "ann": {200, 200, 403}, "TLS operate": {200, 200, 403}, "foreign": {}},
		},
		{"TLS alone", withTLS, map[string]statuses{"bare": {200, 401, 401}, "plain": {400, 400, 400}, "socket": {200, 200, 409}}},
	} {
		t.Run(d.name, func(t *testing.T) {
			g := *g
			d.setup(t, &g)
			r := startDaemon(t, g.Config)
			for name, want := range d.want {
				o := map[string]*operator{
					"plain": {}, "view": {token: "view"}, "operate": {token: "operate"}, "admin": {token: "admin"}, "wrong": {token: "wrong"},
					"bare": {tls: bare}, "ann": {tls: ann}, "boss": {tls: boss}, "peer": {tls: peer}, "foreign": {tls: foreign},
					"TLS operate": {tls: bare, token: "operate"}, "socket": {socket: true},
				}[name]
				var got statuses
				got[0], _ = o.ask(t, r, "GET", "/v1/status")
				got[1], _ = o.ask(t, r, "GET", revealPath)
				got[2], _ = o.ask(t, r, "POST", initPath)
				if got != want {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
			}
		})
	}
}

// TestHostileLocalUser: another user of the machine can only view. The socket
// is for the user of the daemon, and the listener over TCP takes no command,
// whatever the address that a request claims to come from.
func TestHostileLocalUser(t *testing.T) {
	c := testConfig(t, oneRule)
	r := startDaemon(t, c)
	path := socketPath(r.edges.adminUDSLis)
	for file, want := range map[string]fs.FileMode{path: 0o600 | fs.ModeSocket, filepath.Dir(path): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(file); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", file, info.Mode(), err, want)
		}
	}
	for _, header := range []http.Header{
		{}, {"X-Forwarded-For": {"127.0.0.1"}}, {"Authorization": {"Bearer admin"}}, {api.AddrHeader: {r.edges.adminAddr()}},
	} {
		for _, path := range []string{initPath, "/v1/cluster/init", "/v1/limits/set"} {
			o := &operator{header: header}
			if status, _ := o.ask(t, r, "POST", path); status != 401 && status != 403 {
				t.Errorf("%s with %v: %d", path, header, status)
			}
		}
	}
	if status, _ := (&operator{}).ask(t, r, "GET", revealPath); status != 401 {
		t.Errorf("texts of keys: %d", status)
	}
	if os.Geteuid() == 0 { // as another user
		attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "test ! -r " + path + " && test ! -w " + path},
			&os.ProcAttr{Sys: attr, Files: []*os.File{nil, nil, nil}, Dir: "/"})
		if errors.Is(err, syscall.EPERM) {
			t.Skip("root of this container may not be another user: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if state, err := p.Wait(); err != nil || !state.Success() {
			t.Errorf("another user can reach the socket: %v", err)
		}
	}
}

// TestSocketOfAnotherDaemon: a process that listens at the address of a daemon
// that is down sends no command to the socket of another one.
func TestSocketOfAnotherDaemon(t *testing.T) {
	r := startDaemon(t, testConfig(t, oneRule))
	for addr, want := range map[string]int{r.edges.adminAddr(): 409, "127.0.0.1:1": 421, "x": 421} {
		o := &operator{socket: true, header: http.Header{api.AddrHeader: {addr}}}
		if status, _ := o.ask(t, r, "POST", initPath); status != want {
			t.Errorf("for %s: %d, want %d", addr, status, want)
		}
	}
}

// TestHostileWebPage: what a browser sends for the page of another site is
// refused by all HTTP listeners, and charges nothing. A gateway that copies the
// headers of a browser is served.
func TestHostileWebPage(t *testing.T) {
	c := testConfig(t, oneRule)
	c.Probe.Addr = "127.0.0.1:0"
	r := startDaemon(t, c)
	send := func(addr, method, path string, header http.Header, host string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(`{"domain": "edge"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header, req.Host = header.Clone(), host
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	pages := []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}},
		{"Sec-Fetch-Site": {"same-site"}},
		{"Origin": {"http://evil.example"}, "Content-Type": {"text/plain"}},
		{"Origin": {"null"}},
	}
	web, admin, probe := r.edges.httpAddr(), r.edges.adminAddr(), addrOf(r.edges.probeLis)
	const check = "/v1/check?domain=edge&user=a"
	for _, page := range pages {
		for _, to := range []struct{ addr, method, path string }{
			{web, "GET", check},
			{web, "POST", "/v1/check"},
			{web, "POST", "/json"},
			{web, "GET", "/healthcheck"},
			{admin, "GET", "/metrics"},
			{admin, "GET", "/v1/status"},
			{admin, "POST", "/v1/explain"},
			{admin, "POST", initPath},
			{probe, "GET", "/metrics"},
		} {
			if status := send(to.addr, to.method, to.path, page, ""); status != http.StatusForbidden {
				t.Errorf("%s %s with %v: %d", to.method, to.path, page, status)
			}
		}
	}
	if status := send(admin, "GET", "/v1/status", nil, "evil.example"); status != http.StatusForbidden {
		t.Errorf("a rebound name: %d", status)
	}
	if keys := r.engine.Stats().LiveKeys; keys != 0 {
		t.Errorf("pages charged %d keys", keys)
	}
	for _, header := range []http.Header{{}, {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"http://shop.example"}, "X-Forwarded-For": {"10.0.0.9"}}} {
		if status := send(web, "GET", check, header, "shop.example"); status != http.StatusOK {
			t.Errorf("a gateway with %v: %d", header, status)
		}
	}
}

// TestAuditNamesTheUser: the kernel names the user of the socket.
func TestAuditNamesTheUser(t *testing.T) {
	r := startDaemon(t, testConfig(t, oneRule))
	(&operator{socket: true}).ask(t, r, "GET", revealPath)
	want := fmt.Sprintf(`audit.who="uid %d"`, os.Getuid())
	lines := bufio.NewScanner(strings.NewReader(r.log.String()))
	for lines.Scan() {
		if strings.Contains(lines.Text(), "event=audit") && strings.Contains(lines.Text(), want) &&
			strings.Contains(lines.Text(), `audit.what="GET /v1/top?reveal=true"`) {
			return
		}
	}
	t.Errorf("no line with %s in\n%s", want, r.log)
}

// TestProbeListener: everyone may probe, over any address, and do nothing else.
func TestProbeListener(t *testing.T) {
	c := testConfig(t, oneRule)
	c.Probe.Addr = "0.0.0.0:0"
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	r := startDaemon(t, c)
	_, port, _ := net.SplitHostPort(addrOf(r.edges.probeLis))
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n", "/metrics": "rld_", "/v1/status": "404", "/rlconfig": "404"} {
		if got := get(t, "127.0.0.1:"+port, path); !strings.Contains(got, want) {
			t.Errorf("%s: %.100q, want %q", path, got, want)
		}
	}
}

// TestCommandSocketOfState: a daemon of a cluster has its socket in the folder
// of state, and replaces the one of a killed daemon.
func TestCommandSocketOfState(t *testing.T) {
	c := config.Default()
	c.Region, c.State.Dir = "eu", t.TempDir()
	d := &daemon{Options: Options{Config: c}}
	for range 2 {
		lis := d.listenForCommands()
		if want := filepath.Join(c.State.Dir, "admin.sock"); socketPath(lis) != want {
			t.Fatalf("at %s, want %s", socketPath(lis), want)
		}
		lis.(*net.UnixListener).SetUnlinkOnClose(false)
		lis.Close()
	}
}
