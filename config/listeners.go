package config

import (
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// ServerTLS names the files of TLS of a listener for callers, in PEM; without
// files the listener is in plain text. Changed files apply to all connections
// from then on. See Check.
type ServerTLS struct {
	// CertFile is the certificate with its chain, and KeyFile its private key:
	// both or neither.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities that sign the certificates of callers;
	// "" asks for none. Callers without a certificate are refused, unless
	// Auth.TokensFile is set and they have a token.
	ClientCAFile string
	// ClientSAN is a DNS name or a URI that these certificates must have, ""
	// for any.
	ClientSAN string
}

// On reports whether the listener has TLS.
func (t ServerTLS) On() bool { return t.CertFile != "" }

// Auth configures which callers may call.
type Auth struct {
	// TokensFile holds the hashed tokens of callers; "" requires none. See
	// TokensOf.
	TokensFile string
}

// listener is a listening address of the daemon.
type listener struct {
	field, addr string
	encrypted   bool
	tokens      bool     // callers need tokens
	protected   bool     // it may leave loopback
	insecure    bool     // reachable from other machines without protection
	insecureBy  string   // the setting of insecure
	lacks       string   // the fault of plain text there, and its remedy
	by          []string // its protections
}

// listeners returns the open listeners on addresses. A daemon alone has none
// for peers.
func (c *Config) listeners() []listener {
	tokens := c.Auth.TokensFile != ""
	caller := func(name, addr string, t ServerTLS, insecure bool) listener {
		l := listener{
			field: name + ".addr", addr: addr, encrypted: t.On(), tokens: tokens, insecure: insecure, protected: t.On() || tokens,
			insecureBy: name + ".insecure",
			lacks: "without TLS or tokens: use a loopback address such as 127.0.0.1:PORT, give " + name +
				".tls.cert_file and " + name + ".tls.key_file, or auth.tokens_file",
		}
		switch {
		case t.On():
			l.by = append(l.by, "TLS")
		case tokens:
			l.by = append(l.by, "plain text")
		}
		switch {
		case t.ClientCAFile != "" && tokens:
			l.by = append(l.by, "client certificates or tokens")
		case t.ClientCAFile != "":
			l.by = append(l.by, "client certificates")
		case tokens:
			l.by = append(l.by, "tokens")
		case t.On():
			l.by = append(l.by, "any caller")
		}
		return l
	}
	out := []listener{
		caller("grpc", c.GRPC.Addr, c.GRPC.TLS, c.GRPC.Insecure),
		caller("http", c.HTTP.Addr, c.HTTP.TLS, c.HTTP.Insecure),
		c.adminListener(),
	}
	if c.Probe.Addr != "" {
		out = append(out, listener{
			field: "probe.addr", addr: c.Probe.Addr, protected: true, by: []string{"plain text", "probes and metrics alone", "any caller"},
		})
	}
	if c.Region == "" {
		return out
	}
	peer := listener{
		field: "peer.addr", addr: c.Peer.Addr, encrypted: c.Peer.TLS.On(), insecure: c.Peer.Insecure, insecureBy: "peer.insecure", protected: c.Peer.TLS.On(),
		lacks: "without TLS: give peer.tls.cert, peer.tls.key and peer.tls.ca",
	}
	if peer.encrypted {
		peer.by = []string{"TLS with certificates of both ends"}
	}
	swim := listener{
		field: "swim.addr", addr: c.Swim.Addr, insecure: c.Peer.Insecure, insecureBy: "peer.insecure",
		encrypted: c.Cluster.SecretFile != "" || c.Swim.KeysFile != "",
		lacks:     "and nothing encrypts it: give cluster.secret_file or swim.keys_file",
	}
	if swim.encrypted {
		swim.protected = true
		swim.by = []string{"encrypted with the keys of the membership"}
	}
	return append(out, peer, swim)
}

// adminListener returns the admin listener. TLS alone does not protect it: it
// needs to know its operators.
func (c *Config) adminListener() listener {
	a := &c.Admin
	l := listener{
		field: "admin.addr", addr: a.Addr, insecure: a.Insecure, insecureBy: "admin.insecure",
		encrypted: a.TLS.Server().On(), tokens: a.TokensFile != "", protected: a.Credentials(),
		lacks: "without tokens or certificates of operators: use a loopback address such as 127.0.0.1:PORT, " +
			"give admin.tokens_file or admin.tls.client_ca_file, use probe.addr for probes and metrics alone",
	}
	switch {
	case l.encrypted:
		l.by = append(l.by, "TLS")
	case l.tokens:
		l.by = append(l.by, "plain text")
	}
	switch {
	case a.TLS.ClientCAFile != "" && l.tokens:
		l.by = append(l.by, "certificates or tokens of operators")
	case a.TLS.ClientCAFile != "":
		l.by = append(l.by, "certificates of operators")
	case l.tokens:
		l.by = append(l.by, "tokens of operators")
	}
	return l
}

// Exposed lists the listeners that other machines can reach without TLS and
// tokens, each as its field and address: "grpc.addr 0.0.0.0:8081".
func (c *Config) Exposed() []string {
	return c.reachable(func(l *listener) bool { return !l.protected })
}

// PlainTokens lists the listeners that tokens reach in plain text from other
// machines.
func (c *Config) PlainTokens() []string {
	return c.reachable(func(l *listener) bool { return l.tokens && !l.encrypted })
}

// reachable lists the listeners off loopback of a kind.
func (c *Config) reachable(is func(*listener) bool) []string {
	var out []string
	for _, l := range c.listeners() {
		if host, _, err := net.SplitHostPort(l.addr); err == nil && !loopback(host) && is(&l) {
			out = append(out, l.field+" "+l.addr)
		}
	}
	return out
}

// Protection describes the protection of a listener.
type Protection struct {
	// Setting is its address, Value the value of that, and By a list such as
	// "TLS, client certificates" or "loopback".
	Setting, Value, By string
}

// Protections returns the protection of each listener.
func (c *Config) Protections() []Protection {
	var out []Protection
	for _, l := range c.listeners() {
		by := l.by
		host, _, err := net.SplitHostPort(l.addr)
		switch {
		case err == nil && loopback(host):
			by = append([]string{"loopback"}, by...)
		case len(by) == 0:
			by = []string{"nothing: " + l.insecureBy + " is set, and other machines reach it"}
		}
		out = append(out, Protection{l.field, l.addr, strings.Join(by, ", ")})
	}
	for _, s := range c.sockets() {
		if s.path != "" {
			out = append(out, Protection{s.field, s.path, "mode " + modeText(s.mode)})
		}
	}
	return out
}

// socket is a unix socket of the daemon.
type socket struct {
	field, path string
	mode        fs.FileMode
}

func (c *Config) sockets() []socket {
	return []socket{
		{"grpc.uds", c.GRPC.UDS, c.GRPC.UDSMode},
		{"http.uds", c.HTTP.UDS, c.HTTP.UDSMode},
		{"admin.uds", c.AdminSocket(), defaultSocketMode},
	}
}

// AdminSocket returns the path of the unix socket for commands, "" where the
// daemon makes a new folder for it: without a State.Dir, or with one whose path
// is too long for a socket.
func (c *Config) AdminSocket() string {
	if c.Admin.UDS != "" || c.State.Dir == "" || c.Region == "" {
		return c.Admin.UDS
	}
	if path := filepath.Join(c.State.Dir, "admin.sock"); len(path) <= maxSocketLen {
		return path
	}
	return ""
}

// defaultSocketMode lets the user of the daemon alone connect.
const defaultSocketMode fs.FileMode = 0o600

// mode is the mode of a file, in octal digits.
func mode(p *fs.FileMode) value {
	parse := func(s string) (fs.FileMode, error) {
		n, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
		return fs.FileMode(n), err
	}
	v := parsed(p, "mode", "not a mode in octal digits such as 0660", parse, modeText)
	v.check = func() string {
		if *p&^0o777 != 0 || *p&0o200 == 0 {
			return modeText(*p) + " is not the mode of a socket: 0600 for the user of the daemon, " +
				"0660 for its group too, 0666 for all users of the machine"
		}
		return ""
	}
	return v
}

func modeText(m fs.FileMode) string { return fmt.Sprintf("%04o", uint32(m)) }

func (v *validator) listeners(c *Config) {
	taken := make(map[string]string)
	for _, l := range c.listeners() {
		host, port, err := splitAddr(l.addr)
		if err != nil {
			v.fault(l.field, "%s", err)
			continue
		}
		if !l.insecure && !l.protected && !loopback(host) {
			v.fault(l.field, "%q is reachable from other machines %s, or set %s (--%s) where the network is trusted",
				l.addr, strings.ReplaceAll(l.lacks, "PORT", port), l.insecureBy, strings.ReplaceAll(l.insecureBy, ".", "-"))
		}
		if other, ok := taken[l.addr]; ok && port != "0" {
			v.faultFor(l.field, other, "%q is taken by %s already: give each a port of its own", l.addr, other)
		}
		taken[l.addr] = l.field
	}
	for _, s := range c.sockets() {
		other, ok := taken[s.path]
		switch {
		case s.path == "":
			continue
		case len(s.path) > maxSocketLen || strings.ContainsRune(s.path, 0):
			v.fault(s.field, "is not the path of a unix socket: at most %d bytes, none of them 0", maxSocketLen)
		case ok:
			v.faultFor(s.field, other, "%q is taken by %s already: give each a path of its own", s.path, other)
		}
		taken[s.path] = s.field
	}
	v.serverTLS("grpc.tls", c.GRPC.TLS)
	v.serverTLS("http.tls", c.HTTP.TLS)
	v.serverTLS("admin.tls", c.Admin.TLS.Server())
}

func (v *validator) serverTLS(name string, t ServerTLS) {
	cert, key, ca, san := name+".cert_file", name+".key_file", name+".client_ca_file", name+".client_san"
	need := func(missing, given string, is bool) {
		if is {
			v.faultFor(missing, given, "is missing: %s is given", given)
		}
	}
	need(key, cert, t.CertFile != "" && t.KeyFile == "")
	need(cert, key, t.CertFile == "" && t.KeyFile != "")
	need(cert, ca, t.CertFile == "" && t.KeyFile == "" && t.ClientCAFile != "")
	need(ca, san, t.ClientCAFile == "" && t.ClientSAN != "")
}
