//go:build e2e

package gateways

import (
	"cmp"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// proxy is a gateway under test.
type proxy struct {
	name string
	// files are the names of its folder in examples/gateways and of the files
	// there that it reads.
	folder string
	files  []string
	pkg    string // of Debian
	path   string // of the folder with the program, "" for those of PATH
	// command starts it in a copy of its folder; its page has the same command.
	command string
	// version prints its version.
	version string
	// replace changes a file before the start: old text and new.
	replace [2]string
	// grpc is set for a proxy that asks rld as Envoy's rate limit service.
	grpc bool
	// header is in all decided answers, RateLimit by default.
	header string
	// refuses are parts of the names of injections that it may refuse itself.
	refuses []string
	// killed and silent are what clients get while rld is not there, and while
	// it does not answer. http.StatusOK is the answer of the service.
	killed, silent int
}

var (
	nginx = proxy{
		name: "nginx", folder: "nginx", files: []string{"nginx.conf"}, pkg: "nginx", version: "nginx -v",
		command: "nginx -p . -c nginx.conf -g 'daemon off; pid nginx.pid; error_log stderr;'",
		killed:  http.StatusInternalServerError, silent: http.StatusInternalServerError,
	}
	caddy = proxy{
		name: "caddy", folder: "caddy", files: []string{"Caddyfile"}, pkg: "caddy", version: "caddy version",
		command: "caddy run --config Caddyfile",
		killed:  http.StatusBadGateway, silent: http.StatusGatewayTimeout,
	}
	haproxy = proxy{
		name: "haproxy", folder: "haproxy", files: []string{"haproxy.cfg", "rld.lua"}, pkg: "haproxy", version: "haproxy -v",
		command: "haproxy -db -f haproxy.cfg",
		killed:  http.StatusOK, silent: http.StatusOK,
	}
)

// closed is HAProxy without the word that has it fail open, as its page
// describes.
func closed(p proxy) proxy {
	p.name += " that fails closed"
	p.replace = [2]string{"-m str allowed failed", "-m str allowed"}
	p.killed, p.silent = http.StatusServiceUnavailable, http.StatusServiceUnavailable
	return p
}

// limitHeader returns the name of the header of all decided answers.
func (p proxy) limitHeader() string { return cmp.Or(p.header, "RateLimit") }

// mayRefuse reports whether the proxy itself may refuse an injection.
func (p proxy) mayRefuse(x *injection) bool {
	return slices.ContainsFunc(p.refuses, func(part string) bool { return strings.Contains(x.name, part) })
}

func program(command string) string { return strings.Fields(command)[0] }

// needAll installs the packages of the proxies.
func needAll(t *testing.T, all ...proxy) {
	t.Helper()
	var missing []string
	for _, p := range all {
		if _, err := exec.LookPath(program(p.command)); err != nil {
			missing = append(missing, p.pkg)
		}
	}
	install(t, missing)
}

// environment returns the variable by which a shell finds the program.
func (p proxy) environment() string {
	if p.path == "" {
		return "PATH=" + os.Getenv("PATH")
	}
	return "PATH=" + p.path + ":" + os.Getenv("PATH")
}

// logVersion prints which proxy runs.
func (p proxy) logVersion(t *testing.T) {
	t.Helper()
	if p.path == "" {
		need(t, program(p.command), p.pkg)
	}
	cmd := exec.Command("sh", "-c", p.version)
	cmd.Env = append(environ(t.TempDir()), p.environment())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", p.version, err, out)
	}
	first, _, _ := strings.Cut(string(out), "\n")
	t.Logf("%s: %s", p.name, first)
}

// TestProxies has each proxy of Debian admit exactly the limit, withstand
// headers of hostile clients, and do what its page states while rld fails.
func TestProxies(t *testing.T) {
	all := []proxy{nginx, caddy, haproxy}
	needAll(t, all...)
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) { everything(t, p) })
	}
	p := closed(haproxy)
	t.Run(p.name, func(t *testing.T) {
		p.logVersion(t)
		rldFails(t, p)
	})
}

func everything(t *testing.T, p proxy) {
	p.logVersion(t)
	checkPage(t, p)
	t.Run("limit", func(t *testing.T) { exactLimit(t, p) })
	t.Run("injections", func(t *testing.T) { injections(t, p) })
	t.Run("failures", func(t *testing.T) { rldFails(t, p) })
}

// checkPage fails unless the page of the example has the command that the test
// runs.
func checkPage(t *testing.T, p proxy) {
	t.Helper()
	page, err := os.ReadFile(p.example("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{p.command, rldCommand} {
		if !strings.Contains(string(page), "\n"+command+"\n") {
			t.Errorf("%s does not have the command %s", p.example("README.md"), command)
		}
	}
}
