package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/georld/rld/config"
	"github.com/georld/rld/gateway"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// TestGatewayExamples holds that the files of examples/gateways load, and that
// a request meets the limits by its mapping.
func TestGatewayExamples(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(root, "examples", "gateways", "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, folder := range folders {
		loaded, err := config.Load(config.Sources{File: filepath.Join(folder, "rld.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(folder, "limits.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		set, found := limits.Parse([]limits.File{{Name: "limits.yaml", Data: data}}, limits.Options{})
		if len(found) > 0 {
			t.Fatalf("%s: %v", folder, found)
		}
		for name, s := range loaded.Config.Gateways {
			matchesAll(t, folder+": "+name, s, set)
		}
	}
}

// TestGatewayHeaders holds that a gateway which passes on the headers of
// clients sets or removes all those that describe a request.
func TestGatewayHeaders(t *testing.T) {
	for _, tt := range []struct {
		file, prefix string
		headers      []string
	}{
		{"nginx/nginx.conf", "proxy_set_header ", []string{
			"X-Original-URI", "X-Original-Method", "X-Original-URL", "X-Forwarded-Uri", "X-Forwarded-Method",
			"X-Forwarded-Host", "X-Forwarded-For", "Authorization",
		}},
		// Caddy itself sets X-Forwarded-*.
		{"caddy/Caddyfile", "header_up -", []string{
			"X-Original-URI", "X-Original-Method", "X-Original-URL", "Forwarded", "Authorization",
		}},
	} {
		conf, err := os.ReadFile(filepath.Join(root, "examples", "gateways", filepath.FromSlash(tt.file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, header := range tt.headers {
			if !regexp.MustCompile(tt.prefix + header + `\s`).Match(conf) {
				t.Errorf("%s: clients can set %s", tt.file, header)
			}
		}
	}
}

// TestTraefikExample holds that the files of Traefik have no other fields than
// those of Traefik 3.7. No test runs Traefik.
func TestTraefikExample(t *testing.T) {
	var static struct {
		EntryPoints map[string]struct {
			Address string `yaml:"address"`
		} `yaml:"entryPoints"`
		Providers struct {
			File struct {
				Filename string `yaml:"filename"`
			} `yaml:"file"`
		} `yaml:"providers"`
	}
	var dynamic struct {
		HTTP struct {
			Routers map[string]struct {
				EntryPoints []string `yaml:"entryPoints"`
				Rule        string   `yaml:"rule"`
				Middlewares []string `yaml:"middlewares"`
				Service     string   `yaml:"service"`
			} `yaml:"routers"`
			Middlewares map[string]struct {
				ForwardAuth struct {
					Address             string   `yaml:"address"`
					TrustForwardHeader  *bool    `yaml:"trustForwardHeader"`
					AuthRequestHeaders  []string `yaml:"authRequestHeaders"`
					MaxResponseBodySize int64    `yaml:"maxResponseBodySize"`
				} `yaml:"forwardAuth"`
			} `yaml:"middlewares"`
			Services map[string]struct {
				LoadBalancer struct {
					Servers []struct {
						URL string `yaml:"url"`
					} `yaml:"servers"`
				} `yaml:"loadBalancer"`
			} `yaml:"services"`
		} `yaml:"http"`
	}
	for file, into := range map[string]any{"traefik.yml": &static, "dynamic.yml": &dynamic} {
		data, err := os.ReadFile(filepath.Join(root, "examples", "gateways", "traefik", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Load(data, into, yaml.WithKnownFields()); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for name, r := range dynamic.HTTP.Routers {
		if len(static.EntryPoints[r.EntryPoints[0]].Address) == 0 || len(dynamic.HTTP.Services[r.Service].LoadBalancer.Servers) == 0 {
			t.Errorf("the router %s has no entry point or no service", name)
		}
		if a := dynamic.HTTP.Middlewares[r.Middlewares[0]].ForwardAuth; a.TrustForwardHeader == nil || *a.TrustForwardHeader || len(a.AuthRequestHeaders) == 0 {
			t.Errorf("the router %s passes headers of clients on: %+v", name, a)
		}
	}
}

// matchesAll fails for a descriptor of a mapping that no rule matches.
func matchesAll(t *testing.T, what string, s gateway.Settings, set *rules.Set) {
	t.Helper()
	m, err := gateway.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	r := &gateway.Request{Header: map[string][]string{
		"X-Api-Key": {"k1"}, "X-Original-Uri": {"/v1/a?b"}, "X-Forwarded-For": {"192.0.2.1"}, "X-Client-Address": {"192.0.2.1"},
	}}
	if m.Target == gateway.TargetPath {
		r.Line = &gateway.Line{Method: "GET", Target: "/v1/a?b"}
	}
	c, err := m.Read(r)
	if err != nil || len(c.Descriptors) != len(s.Descriptors) {
		t.Fatalf("%s: %+v, %v", what, c, err)
	}
	for _, d := range c.Descriptors {
		if set.Domain(c.Domain).Match(d.Entries) == nil {
			t.Errorf("%s: no rule matches %v", what, d.Entries)
		}
	}
}
