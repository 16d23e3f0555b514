//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	envoyratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/internal/await"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/certs/certstest"
)

// variable is one of the env of a container.
type variable struct{ Name, Value string }

// deployment is the container of a Deployment.
type deployment struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Command      []string
					Env          []variable
					StartupProbe struct {
						HTTPGet struct {
							Path string
							Port int
						} `yaml:"httpGet"`
					} `yaml:"startupProbe"`
				}
			}
		}
	}
}

// TestEnvoyGatewayMoves moves the rate limit deployment of Envoy Gateway, as
// docs/migrate.md has it: the binary starts by the command and with the
// environment, certificates and probe of the deployment, in shadow and then
// without, gets its limits by xDS and answers Envoy over TLS. The commands of
// the page see it.
func TestEnvoyGatewayMoves(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, ok := strings.Cut(string(text), "\n## Envoy Gateway\n")
	page, _, end := strings.Cut(page, "\n## ")
	if !ok || !end {
		t.Fatal("docs/migrate.md has no section Envoy Gateway")
	}
	var commands []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "curl ") {
			commands = append(commands, line)
		}
	}
	if len(commands) != 2 {
		t.Fatalf("the page has the commands %q, want two", commands)
	}

	// The folder of certificates is a Secret, which all users of the pod read.
	dir := t.TempDir()
	authority := certstest.New(t, nil)
	cert, key := authority.Issue(t, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	f := certs.Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}
	for file, data := range map[string][]byte{f.Cert: cert, f.Key: key, f.CA: authority.PEM()} {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	own, err := certs.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	server := startControlPlane(t, own)
	m := moved{t: t, dir: dir, own: own, commands: commands}
	m.replaced = []string{"/certs", dir, "envoy-gateway:18001", server}

	var d deployment
	readYAML(t, "../../examples/migrate/envoy-gateway/deployment.yaml", &d)
	container := d.Spec.Template.Spec.Containers[0]
	if want := []string{"/bin/ratelimit"}; !slices.Equal(container.Command, want) {
		t.Fatalf("the command is %q, want %q, which the image has", container.Command, want)
	}
	m.probe = container.StartupProbe.HTTPGet.Path
	if container.StartupProbe.HTTPGet.Port != 8080 {
		t.Fatalf("the probe is at port %d", container.StartupProbe.HTTPGet.Port)
	}
	const (
		fine = rlsv3.RateLimitResponse_OK
		over = rlsv3.RateLimitResponse_OVER_LIMIT
	)
	added := gatewayEnv(t, page)
	if !slices.Equal(added, []variable{{"SHADOW_MODE", "true"}}) {
		t.Fatalf("the page adds %v", added)
	}
	m.run(slices.Concat(container.Env, added), fine, fine, fine)
	m.run(container.Env, fine, fine, over)
}

// gatewayEnv returns the variables that the configuration of Envoy Gateway on
// the page adds to the deployment.
func gatewayEnv(t *testing.T, page string) []variable {
	t.Helper()
	_, block, _ := strings.Cut(page, "```yaml\n# envoy-gateway.yaml\n")
	block, _, ok := strings.Cut(block, "```")
	var c struct {
		Provider struct {
			Kubernetes struct {
				RateLimitDeployment struct {
					Container struct{ Env []variable }
				} `yaml:"rateLimitDeployment"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(block), &c); err != nil || !ok {
		t.Fatalf("the page has no envoy-gateway.yaml: %v", err)
	}
	return c.Provider.Kubernetes.RateLimitDeployment.Container.Env
}

func readYAML(t *testing.T, path string, out any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// startControlPlane starts the xDS server of go-control-plane over TLS of both
// ends, with a limit of 2 per day for each user of the domain edge.
func startControlPlane(t *testing.T, own *certs.Set) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	snapshot, err := cache.NewSnapshot("1", map[resource.Type][]types.Resource{resource.RateLimitConfigType: {&ratelimit.RateLimitConfig{
		Name: "edge", Domain: "edge", Descriptors: []*ratelimit.RateLimitDescriptor{
			{Key: "user", RateLimit: &ratelimit.RateLimitPolicy{Unit: ratelimit.RateLimitUnit_DAY, RequestsPerUnit: 2}},
		},
	}}})
	if err == nil {
		err = snapshots.SetSnapshot(t.Context(), "envoy-ratelimit", snapshot)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own.Cert}, ClientCAs: own.CA, ClientAuth: tls.RequireAndVerifyClientCert,
	})))
	discovery.RegisterAggregatedDiscoveryServiceServer(g, server.NewServer(ctx, snapshots, nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(lis)
	}()
	t.Cleanup(func() {
		g.Stop()
		cancel()
		<-done
	})
	return lis.Addr().String()
}

// moved is the deployment with the image of rld.
type moved struct {
	t        *testing.T
	dir      string
	own      *certs.Set
	probe    string   // path of the startup probe
	commands []string // of the page
	replaced []string // in values of variables: old, new
}

// run starts the container with an environment and checks the answers to three
// calls of one user.
func (m *moved) run(env []variable, want ...rlsv3.RateLimitResponse_Code) {
	t := m.t
	t.Helper()
	var port []string // in place of the usual ones, which may be in use
	for _, p := range freePorts(t, 4) {
		port = append(port, strconv.Itoa(p))
	}
	replaced := strings.NewReplacer(append(m.replaced, ":19001", ":"+port[3])...)
	program := filepath.Join(m.dir, "ratelimit")
	if err := os.Symlink(binary, program); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "PORT=" + port[0], "GRPC_PORT=" + port[1], "DEBUG_PORT=" + port[2]}
	for _, v := range env {
		cmd.Env = append(cmd.Env, v.Name+"="+replaced.Replace(v.Value))
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := startCommand(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func(s os.Signal) error {
		_ = cmd.Process.Signal(s) // it may have ended
		return await.Value(t, "the end of the container", ended)
	}
	defer func() {
		err := stop(syscall.SIGTERM)
		if text, _ := os.ReadFile(log.Name()); err != nil || t.Failed() {
			t.Errorf("the container ended with %v:\n%s", err, text)
		}
	}()
	if !poll(func() bool { return statusOf("http://127.0.0.1:"+port[0]+m.probe) == http.StatusOK }) {
		t.Error("the container is not ready")
		return
	}
	m.look(strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:"+port[0], "127.0.0.1:19001", "127.0.0.1:"+port[3]))
	m.ask("127.0.0.1:"+port[1], want)
}

// look runs the commands of the page until they show the limits of the server.
func (m *moved) look(replaced *strings.Replacer) {
	m.t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		m.t.Log("left out: curl is not installed")
		return
	}
	want := []string{"OK", "rld_config_rules 1\nrld_config_stale 0\nrld_xds_connected 1\n"}
	for i, c := range m.commands {
		var out []byte
		if !poll(func() bool {
			out, _ = exec.Command("bash", "-c", replaced.Replace(c)).Output() // the output is compared
			return string(out) == want[i]
		}) {
			m.t.Errorf("%s: %q, want %q", strings.TrimSpace(c), out, want[i])
		}
	}
}

// ask calls the rate limit service as Envoy does.
func (m *moved) ask(addr string, want []rlsv3.RateLimitResponse_Code) {
	m.t.Helper()
	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: m.own.CA, MinVersion: tls.VersionTLS12})))
	if err != nil {
		m.t.Error(err)
		return
	}
	defer cc.Close()
	q := &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: []*envoyratelimit.RateLimitDescriptor{
		{Entries: []*envoyratelimit.RateLimitDescriptor_Entry{{Key: "user", Value: "ann"}}},
	}}
	for i, code := range want {
		got, err := rlsv3.NewRateLimitServiceClient(cc).ShouldRateLimit(m.t.Context(), q)
		if err != nil || got.GetOverallCode() != code {
			m.t.Errorf("call %d: %v, %v, want %v", i+1, got.GetOverallCode(), err, code)
		}
	}
}

// poll tries a condition until it holds, for at most patience.
func poll(cond func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if cond() {
			return true
		}
	}
	return cond()
}

// statusOf returns the status of an answer, 0 for none.
func statusOf(url string) int {
	answer, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // the status is what counts
	return answer.StatusCode
}
