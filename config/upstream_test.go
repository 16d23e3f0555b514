package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/georld/rld/config/upstream"
)

// upstreamValues are values of variables that are not true.
var upstreamValues = map[string]string{
	"HOST": "localhost", "PORT": "1234", "GRPC_HOST": "localhost", "GRPC_PORT": "1234", "DEBUG_HOST": "localhost", "DEBUG_PORT": "1234",
	"GRPC_UDS": "/tmp/rld.sock", "GRPC_MAX_CONNECTION_AGE": "1h", "GRPC_MAX_CONNECTION_AGE_GRACE": "1h",
	"LOG_LEVEL": "warn", "LOG_FORMAT": "json", "NEAR_LIMIT_RATIO": "0.5", "RUNTIME_ROOT": "/limits",
	"LIMIT_LIMIT_HEADER": "x-limit", "LIMIT_REMAINING_HEADER": "x-remaining", "LIMIT_RESET_HEADER": "x-reset",
	"CONFIG_TYPE": "GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL": "localhost:1", "CONFIG_GRPC_XDS_NODE_METADATA": "a=b",
	"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL": "2s", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL": "2s", "XDS_CLIENT_BACKOFF_MAX_INTERVAL": "30s",
	"PROMETHEUS_ADDR": ":1234", "PROMETHEUS_PATH": "/metrics", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS": "a:b",
}

// upstreamEnviron returns an environment in which a variable has its effect.
func upstreamEnviron(v *upstream.Variable) []string {
	out := []string{"RUNTIME_ROOT=/limits"}
	switch {
	case v.Group == upstream.ServerTLS, v.Name == "GRPC_SERVER_USE_TLS":
		out = append(out, "GRPC_SERVER_TLS_CERT=c", "GRPC_SERVER_TLS_KEY=k", "GRPC_CLIENT_TLS_CACERT=a")
	case v.Group == upstream.XDSTLS:
		out = append(out, upstream.XDS.Selector(), "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=c", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=k")
	}
	if s := v.Group.Selector(); s != "" {
		out = append(out, s)
	}
	value := "true"
	if given := upstreamValues[v.Name]; given != "" {
		value = given
	}
	return append(out, v.Name+"="+value)
}

// TestUpstreamEffects: each variable in the list has the effect that the list
// states, and no other one.
func TestUpstreamEffects(t *testing.T) {
	for _, v := range upstream.Variables() {
		l, err := Load(Sources{Environ: upstreamEnviron(&v)})
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		var sets []string
		for _, s := range l.Settings() {
			if names, ok := strings.CutPrefix(string(s.Origin), "env "); ok && strings.Contains(", "+names+",", ", "+v.Name+",") {
				sets = append(sets, s.Name)
			}
		}
		got := strings.Join(sets, " ")
		has := strings.Contains(" "+got+" ", " "+v.Setting+" ")
		if v.Setting == "" && got != "" || v.Setting != "" && !has {
			t.Errorf("%s sets %q, the list has %q", v.Name, got, v.Setting)
		}
		if (v.Kind == upstream.Unneeded || v.Kind == upstream.Replaced) && (v.Setting != "" || v.Text == "") || v.Setting == "" && v.Text == "" {
			t.Errorf("%s: kind %d with the setting %q and the text %q", v.Name, v.Kind, v.Setting, v.Text)
		}
	}
}

// TestUpstreamFolder: under the name of envoyproxy/ratelimit the limits are in
// its folder, where no source names them. Under another name they are not.
func TestUpstreamFolder(t *testing.T) {
	const folder, byName = "/srv/runtime_data/current/config", "name ratelimit, without RUNTIME_ROOT"
	file := filepath.Join(t.TempDir(), "rld.yaml")
	if err := os.WriteFile(file, []byte("limits: {path: /own}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		s            Sources
		path, origin string
		names        Names
	}{
		"nothing":   {Sources{Upstream: true}, folder, byName, NamesAll},
		"dotfiles":  {Sources{Upstream: true, Environ: []string{"RUNTIME_IGNOREDOTFILES=true"}}, folder, byName, NamesVisible},
		"folder":    {Sources{Upstream: true, Environ: []string{"RUNTIME_SUBDIRECTORY=a"}}, "/srv/runtime_data/current/a/config", "env RUNTIME_SUBDIRECTORY", NamesAll},
		"own":       {Sources{Upstream: true, Environ: []string{"RLD_LIMITS=/own"}}, "/own", "env RLD_LIMITS", NamesYAML},
		"flag":      {Sources{Upstream: true, Flags: map[string]string{"limits": "/own"}}, "/own", "flag --limits", NamesYAML},
		"file":      {Sources{Upstream: true, File: file}, "/own", "", NamesYAML},
		"xds":       {Sources{Upstream: true, Environ: []string{"CONFIG_TYPE=GRPC_XDS_SOTW"}}, "", string(OriginDefault), NamesYAML},
		"other":     {Sources{}, "", string(OriginDefault), NamesYAML},
		"other dot": {Sources{Environ: []string{"RUNTIME_IGNOREDOTFILES=true"}}, "", string(OriginDefault), NamesYAML},
	} {
		l, err := Load(tc.s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		origin := string(l.Origin("limits.path"))
		if c := l.Config.Limits; c.Path != tc.path || c.Names != tc.names || tc.origin != "" && origin != tc.origin {
			t.Errorf("%s: %q with the names %s by %s, want %q with %s by %s", name, c.Path, c.Names, origin, tc.path, tc.names, tc.origin)
		}
	}
}

// TestUpstreamList: the list has each variable that this package names, and
// each only once. Of an environment, the code gets those in the list alone.
func TestUpstreamList(t *testing.T) {
	seen := make(map[string]bool)
	for _, v := range upstream.Variables() {
		if seen[v.Name] {
			t.Errorf("%s is in the list twice", v.Name)
		}
		seen[v.Name] = true
	}
	variable := regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
	named := 0
	for _, file := range []string{"upstream.go", "upstreamxds.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			name, err := strconv.Unquote(lit.Value)
			if err != nil || !variable.MatchString(name) || name == "FILE" || name == "GRPC_XDS_SOTW" {
				return true
			}
			if named++; !seen[name] {
				t.Errorf("%s: %s is not in the list", file, name)
			}
			return true
		})
	}
	if named < 30 {
		t.Errorf("%d variables are named: the test does not find them", named)
	}
	if got := upstream.Only(map[string]string{"HOST": "a", "OTHER_HOST": "b"}); len(got) != 1 || got["HOST"] != "a" {
		t.Errorf("Only: %v", got)
	}
}
