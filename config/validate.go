package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/georld/rld/server"
)

// Bounds of settings.
const (
	maxShards      = 64
	maxSocketLen   = 107 // bytes of a unix socket's path
	maxConnections = 100_000
)

// Validate returns Faults with every invalid field, or nil.
func (c *Config) Validate() error {
	var v validator
	v.settings(c)
	v.listeners(c)
	v.http(&c.HTTP)
	v.probe(&c.Probe)
	v.gateways(c)
	v.xds(c)
	v.rls(&c.RLS)
	v.cluster(c)
	if c.Shards < 0 || c.Shards > maxShards || c.Shards&(c.Shards-1) != 0 {
		v.fault("shards", "%d is neither 0 nor a power of two up to %d", c.Shards, maxShards)
	}
	if len(v.faults) == 0 {
		return nil
	}
	return v.faults
}

// loopback reports whether only this machine can reach host. Of names, only
// localhost counts.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// validator gathers faults.
type validator struct{ faults Faults }

func (v *validator) fault(field, format string, args ...any) {
	v.faults = append(v.faults, &Fault{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// faultFor is fault for a setting that another one requires or excludes.
func (v *validator) faultFor(field, needs, format string, args ...any) {
	v.fault(field, format, args...)
	v.faults[len(v.faults)-1].needs = needs
}

// settings checks each setting by itself. For a daemon alone it rejects those
// without effect: their author expects the daemon to be part of a cluster.
func (v *validator) settings(c *Config) {
	mine, none := *c, Default()
	usual := fields(&none)
	for i, f := range fields(&mine) {
		problem := ""
		switch {
		case c.Region == "" && inCluster(f.Name):
			if f.get() != usual[i].get() {
				problem = "has no effect without a region: give --region (RLD_REGION) for a daemon of a cluster, " +
					"or leave this out"
			}
		case f.check != nil:
			problem = f.check()
		}
		if problem != "" {
			v.fault(f.Name, "%s", problem)
		}
	}
}

// splitAddr splits host:port. The error names a correct form.
func splitAddr(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", fmt.Errorf("%q is not host:port such as 127.0.0.1:8080 or [::1]:8080", addr)
	}
	if err := checkPort(port); err != nil {
		return "", "", err
	}
	return host, port, nil
}

func checkPort(port string) error {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is no port: a number from 0 (any free one) to 65535", port)
	}
	return nil
}

// urlPath matches a path without a slash at the end and characters that URLs
// or routes use.
var urlPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)

func (v *validator) probe(p *Probe) {
	const field = "probe.metrics_path"
	switch path := p.MetricsPath; {
	case path == "/healthz" || path == "/readyz":
		v.fault(field, "%s is the path of a probe: want another one, such as /metrics", path)
	case !urlPath.MatchString(path):
		v.fault(field, "%s is no path of letters, digits and . _ ~ -, such as /metrics", quote(path))
	}
}

func (v *validator) http(h *HTTP) {
	if h.DocumentationURL != "" {
		u, err := url.Parse(h.DocumentationURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			v.fault("http.documentation_url", "%q is not an absolute URL such as https://example.com/limits",
				h.DocumentationURL)
		}
	}
	for _, err := range each(h.RateLimitAPI.Validate()) {
		v.fault("http.rate_limit_api", "%s", err)
	}
}

func (v *validator) rls(r *server.RLS) {
	taken := make(map[string]string)
	for _, h := range []struct{ field, name string }{
		{"rls.limit_header", r.LimitHeader},
		{"rls.remaining_header", r.RemainingHeader},
		{"rls.reset_header", r.ResetHeader},
	} {
		name := strings.ToLower(h.name)
		other, ok := taken[name]
		switch {
		case !httpguts.ValidHeaderFieldName(h.name):
			v.fault(h.field, "%q is not the name of a header: letters, digits and dashes", h.name)
		case ok:
			v.fault(h.field, "%q is the name of %s already", h.name, other)
		}
		taken[name] = h.field
	}
}

// each returns the parts of a joined error.
func each(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}
