//go:build e2e

package envoygateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/georld/rld/internal/yamlpos"
)

const module = "github.com/envoyproxy/gateway"

// nobody is the user of the pod.
const nobody = 65534

// TestEnvoyGateway has Envoy Gateway send limits to rld, which is started as
// its deployment starts envoyproxy/ratelimit: Gateway API resources and a
// policy in files limit requests, and changes of the policy apply.
func TestEnvoyGateway(t *testing.T) {
	if os.Getenv("RLD_E2E_LONG") == "" {
		t.Skip("building Envoy Gateway takes minutes: make e2e-long does it")
	}
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	dir := t.TempDir()
	gateway, pod := newHost(t, "10.78.0.1"), newHost(t, "10.78.0.2")
	connect(t, gateway, pod)
	program := build(t, dir)
	must(t, command(program, "certgen", "--local", "--config-home", filepath.Join(dir, "home")))
	write(t, dir, "envoy-gateway.yaml", strings.ReplaceAll(read(t, "testdata/envoy-gateway.yaml"), "DIR", dir))
	policy := read(t, "testdata/policy.yaml")
	write(t, dir, "resources/gateway.yaml", read(t, "testdata/gateway.yaml"))
	write(t, dir, "resources/policy.yaml", policy)
	serve := exec.Command(program, "server", "--config-path", filepath.Join(dir, "envoy-gateway.yaml"))
	serve.Env = append(os.Environ(), "HOME="+dir)
	eg := gateway.start(t, filepath.Join(dir, "envoy-gateway.log"), serve)

	rld := startPod(t, pod, gateway.ip, dir)
	web := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return pod.dial(ctx, addr) }}}
	took := until(t, "the probes of the pod", func() error { _, err := get(web, "http://"+pod.ip+":8080/healthcheck"); return err })
	t.Logf("/healthcheck succeeds after %v", took)
	envoy := newEnvoy(t, pod, filepath.Join(dir, "home/certs/envoy"))
	until(t, "the configuration of Envoy", func() error { return envoy.configure(t, gateway.ip+":18000") })
	rules := func(want ...string) time.Duration {
		t.Helper()
		return until(t, "the limits "+strings.Join(want, ", "), func() error {
			text, err := get(web, "http://127.0.0.1:6070/rlconfig")
			for _, w := range want {
				if err == nil && !strings.Contains(text, w) {
					err = fmt.Errorf("no %s in:\n%s", w, text)
				}
			}
			return err
		})
	}
	rules("rule-0-match-0: 3 per day", "10 per day")

	for _, user := range []string{"a", "b"} {
		if n := envoy.admitted(t, user, 20); n != 3 {
			t.Errorf("%d requests of user %s admitted, want 3 in a day", n, user)
		}
	}
	text, err := get(web, "http://"+pod.ip+":19001/metrics")
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`ratelimit_service_rate_limit_over_limit{domain="` + strings.ReplaceAll(envoy.domain, ".", "_") + `",`,
		`ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 8`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s:\n%s", want, text)
		}
	}

	// Another number for the same rule applies to the count of the day.
	write(t, dir, "resources/policy.yaml", strings.Replace(policy, "requests: 3", "requests: 5", 1))
	t.Logf("a change of the policy is in force after %v", rules("rule-0-match-0: 5 per day"))
	if n := envoy.admitted(t, "a", 20); n != 2 {
		t.Errorf("%d further requests admitted, want 2", n)
	}

	// The limits stay without Envoy Gateway: 2 of 10 for all users are left.
	eg.kill()
	if n := envoy.admitted(t, "c", 20); n != 2 {
		t.Errorf("without Envoy Gateway %d requests admitted, want 2", n)
	}
	select {
	case <-rld.ended:
		t.Error("rld has ended")
	default:
	}
}

// build builds Envoy Gateway.
func build(t *testing.T, dir string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "envoy-gateway")
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	begin := time.Now()
	if log, err := exec.CommandContext(ctx, "go", "build", "-C", "modules", "-o", program, module+"/cmd/envoy-gateway").CombinedOutput(); err != nil {
		t.Fatalf("building Envoy Gateway: %v\n%s", err, log)
	}
	t.Logf("Envoy Gateway built in %.0f s", time.Since(begin).Seconds())
	return program
}

// startPod starts rld as the only container of the pod of rate limits.
func startPod(t *testing.T, h *host, gateway, dir string) *process {
	t.Helper()
	root := filepath.Join(dir, "root")
	program := filepath.Join(root, "bin", "ratelimit")
	link := exec.Command("go", "build", "-o", program, "../../../cmd/rld")
	link.Env = append(os.Environ(), "CGO_ENABLED=0")
	if log, err := link.CombinedOutput(); err != nil {
		t.Fatalf("building rld: %v\n%s", err, log)
	}
	write(t, root, "etc/hosts", gateway+" envoy-gateway\n")
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		write(t, root, "certs/"+name, read(t, filepath.Join(dir, "home/certs/envoy-rate-limit", name)))
	}
	argv, env := deployment(t)
	t.Logf("the pod runs %v with %v", argv, env)
	return h.start(t, filepath.Join(dir, "rld.log"), &exec.Cmd{
		Path: argv[0], Args: argv, Env: env, Dir: "/",
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}},
	})
}

// deployment returns the command and the environment of the container in Envoy
// Gateway's own test of its deployment.
func deployment(t *testing.T) (argv, env []string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-C", "modules", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(out)), "internal/infrastructure/kubernetes/ratelimit/testdata/deployments/default.yaml")
	node, _, fault := yamlpos.Parse(file, []byte(read(t, file)), yamlpos.Options{MaxBytes: 1 << 20})
	if fault != nil {
		t.Fatal(fault)
	}
	for _, name := range []string{"spec", "template", "spec", "containers"} {
		node = field(t, node, name)
	}
	container := node.Items[0]
	for _, c := range field(t, container, "command").Items {
		argv = append(argv, c.Text)
	}
	for _, e := range field(t, container, "env").Items {
		env = append(env, field(t, e, "name").Text+"="+field(t, e, "value").Text)
	}
	return argv, env
}

// field returns the value of a key of a map.
func field(t *testing.T, n *yamlpos.Node, key string) *yamlpos.Node {
	t.Helper()
	for _, p := range n.Pairs {
		if p.Key.Text == key {
			return p.Value
		}
	}
	t.Fatalf("%v: no %s", n.Pos, key)
	return nil
}

func get(web *http.Client, url string) (string, error) {
	r, err := web.Get(url)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = errors.New(r.Status)
	}
	return string(text), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}

// write replaces a file at once.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	// Envoy Gateway looks at all files of its folder.
	whole := filepath.Join(dir, "whole")
	must(t, os.WriteFile(whole, []byte(text), 0o644))
	must(t, os.Rename(whole, file))
}
