package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
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

// Exposed lists the listeners that other machines can reach in plain text, each
// as its field and address: "grpc.addr 0.0.0.0:8081".
func (c *Config) Exposed() []string {
	var out []string
	for _, l := range c.listeners() {
		if host, _, err := net.SplitHostPort(l.addr); err == nil && !l.encrypted && !loopback(host) {
			out = append(out, l.field+" "+l.addr)
		}
	}
	return out
}

// listener is a listening address of the daemon.
type listener struct {
	field, addr string
	encrypted   bool
	lacks       string // the fault of plain text there, and its remedy
}

// listeners returns the open listeners. A daemon alone has none for peers.
func (c *Config) listeners() []listener {
	const noTLS = "and rld has no TLS there: use a loopback address such as 127.0.0.1:PORT"
	out := []listener{
		{field: "grpc.addr", addr: c.GRPC.Addr, lacks: noTLS},
		{field: "http.addr", addr: c.HTTP.Addr, lacks: noTLS},
		{field: "admin.addr", addr: c.Admin.Addr, lacks: noTLS},
	}
	if c.Region == "" {
		return out
	}
	return append(out,
		listener{
			"peer.addr", c.Peer.Addr, c.Peer.TLS.On(),
			"without TLS: give peer.tls.cert, peer.tls.key and peer.tls.ca",
		},
		listener{
			"swim.addr", c.Swim.Addr, c.Cluster.SecretFile != "" || c.Swim.KeysFile != "",
			"and nothing encrypts it: give cluster.secret_file or swim.keys_file",
		})
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

func (v *validator) listeners(c *Config) {
	taken := make(map[string]string)
	for _, l := range c.listeners() {
		host, port, err := splitAddr(l.addr)
		if err != nil {
			v.fault(l.field, "%s", err)
			continue
		}
		if !c.Insecure && !l.encrypted && !loopback(host) {
			v.fault(l.field, "%q is reachable from other machines %s, or set --insecure (RLD_INSECURE=true) "+
				"where the network is trusted", l.addr, strings.ReplaceAll(l.lacks, "PORT", port))
		}
		if other, ok := taken[l.addr]; ok && port != "0" {
			v.faultFor(l.field, other, "%q is taken by %s already: give each a port of its own", l.addr, other)
		}
		taken[l.addr] = l.field
	}
	if uds := c.GRPC.UDS; len(uds) > maxSocketLen || strings.ContainsRune(uds, 0) {
		v.fault("grpc.uds", "is not the path of a unix socket: at most %d bytes, none of them 0", maxSocketLen)
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
