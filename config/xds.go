package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits/xds"
)

// XDS configures an xDS server as the source of the limits, in place of files.
type XDS struct {
	// Server is host:port of the server, "" for limits in files.
	Server string
	// NodeID and NodeMetadata, each KEY=VALUE, identify the daemon to it.
	NodeID       string
	NodeMetadata []string
	// HeadersFile holds headers that are sent with each stream, a line each,
	// "" for none: they may be secrets.
	HeadersFile string
	TLS         ClientTLS
	// BackoffMin and BackoffMax are the shortest and the longest time between
	// two attempts to reach the server, 100 ms to 10 minutes. A BackoffMax
	// below BackoffMin is as long.
	BackoffMin, BackoffMax time.Duration
	// Dir is the folder of the last accepted limits, which a start without the
	// server uses; "" is State.Dir, and none for a daemon without that.
	Dir string
	// Overlay is a file with fields for limits of the server that its messages
	// do not have, "" for none.
	Overlay string
	// StartWithoutLimits lets a daemon start before it has limits. Until then
	// it admits every call.
	StartWithoutLimits bool
}

// ClientTLS configures TLS to a server.
type ClientTLS struct {
	// Enabled selects TLS. Without it the other fields must be empty.
	Enabled bool
	// CAFile holds the authorities that sign the certificate of the server; ""
	// are those of the system.
	CAFile string
	// CertFile and KeyFile are the certificate of the daemon and its private
	// key: both, or neither for a server that asks for none.
	CertFile, KeyFile string
	// ServerName is the name that the certificate of the server must have; ""
	// is the host of its address.
	ServerName string
}

// On reports whether limits come from an xDS server.
func (x *XDS) On() bool { return x.Server != "" }

// Source names where the limits come from, "" for the embedded examples.
func (l *Limits) Source() string {
	if l.XDS.On() {
		return "the xDS server " + l.XDS.Server
	}
	return l.Path
}

// Metadata returns NodeMetadata as a map.
func (x *XDS) Metadata() map[string]string {
	out := make(map[string]string, len(x.NodeMetadata))
	for _, p := range x.NodeMetadata {
		name, value, _ := strings.Cut(p, "=")
		out[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return out
}

// ReadOverlay returns the overlay and the content of its file. The error names
// the place of each fault.
func (x *XDS) ReadOverlay() ([]byte, *xds.Overlay, error) {
	data, err := readRegular(x.Overlay, xds.MaxOverlayBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("limits.xds.overlay: %w", err)
	}
	o, err := xds.ParseOverlay(x.Overlay, data)
	if err != nil {
		return data, nil, fmt.Errorf("limits.xds.overlay: %w", err)
	}
	return data, o, nil
}

// maxHeadersBytes bounds the file of headers.
const maxHeadersBytes = 64 << 10

// ReadHeaders returns the headers of the file. The error names the line. A file
// that others can write is rejected; one that everybody can read gives a
// warning.
func (x *XDS) ReadHeaders() (headers map[string]string, warnings []string, err error) {
	const setting = "limits.xds.headers_file"
	headers = make(map[string]string)
	if x.HeadersFile == "" {
		return headers, nil, nil
	}
	data, warnings, err := readPrivate(setting, x.HeadersFile, maxHeadersBytes)
	if err != nil {
		return nil, nil, err
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		problem := "want NAME: VALUE, such as x-tenant: a"
		if ok && name != "" {
			problem = headerFault(name, value)
		}
		if problem != "" {
			return nil, warnings, fmt.Errorf("%s: %s:%d: %s", setting, x.HeadersFile, i+1, problem)
		}
		headers[strings.ToLower(name)] = value
	}
	return headers, warnings, nil
}

func defaultXDS() XDS {
	return XDS{NodeID: "default", BackoffMin: time.Second, BackoffMax: time.Minute}
}

func xdsFields(x *XDS) []field {
	return []field{
		set("limits.xds.server", given(&x.Server, "host:port", "limits in files"),
			"address of an xDS server that sends the limits, in place of files"),
		set("limits.xds.node_id", text(&x.NodeID, "name"),
			"name of the daemon for that server, which may have other limits for each"),
		set("limits.xds.node_metadata", list(&x.NodeMetadata, "key=value,...", "KEY=VALUE", "[cluster=eu]"),
			"metadata of the daemon for that server"),
		set("limits.xds.headers_file", path(&x.HeadersFile, "no headers"),
			"file with headers of each stream to that server, NAME: VALUE, a line each"),
		set("limits.xds.tls.enabled", boolean(&x.TLS.Enabled),
			"use TLS to that server"),
		set("limits.xds.tls.ca_file", path(&x.TLS.CAFile, "the authorities of the system"),
			"PEM file with the authority that signs its certificate"),
		set("limits.xds.tls.cert_file", path(&x.TLS.CertFile, "no certificate"),
			"PEM file with the certificate of this daemon for it"),
		set("limits.xds.tls.key_file", path(&x.TLS.KeyFile, "no certificate"),
			"PEM file with its private key"),
		set("limits.xds.tls.server_name", given(&x.TLS.ServerName, "name", "the host of limits.xds.server"),
			"DNS name that the certificate of the server must have"),
		set("limits.xds.backoff_min", between(&x.BackoffMin, 100*time.Millisecond, 10*time.Minute),
			"shortest time between two attempts to reach the server, 100ms to 10m, each with half of it more or less"),
		set("limits.xds.backoff_max", between(&x.BackoffMax, 100*time.Millisecond, 10*time.Minute),
			"longest time, which repeated failures lead to, 100ms to 10m"),
		set("limits.xds.dir", path(&x.Dir, "state.dir, if there is one"),
			"folder for the last accepted limits, for a start without the server"),
		set("limits.xds.overlay", path(&x.Overlay, "limits as the server sends them"),
			"file with fields of this language for limits of the server, by domain and rule"),
		set("limits.xds.start_without_limits", boolean(&x.StartWithoutLimits),
			"start before the server has sent limits, and admit every call until then"),
	}
}

// Bounds of the metadata of a node.
const (
	maxPairs     = 64
	maxPairBytes = 8 << 10
)

// xds checks the settings of an xDS server.
func (v *validator) xds(c *Config) {
	x := &c.Limits.XDS
	v.metadata("limits.xds.node_metadata", x.NodeMetadata)
	if x.NodeID == "" || len(x.NodeID) > maxPairBytes {
		v.fault("limits.xds.node_id", "has %d bytes: want 1 to %d, such as default", len(x.NodeID), maxPairBytes)
	}
	v.clientTLS("limits.xds.tls", &x.TLS)
	if !x.On() {
		return
	}
	if host, port, err := splitAddr(x.Server); err != nil {
		v.fault("limits.xds.server", "%s", err)
	} else if host == "" || port == "0" {
		v.fault("limits.xds.server", "%s: want the host and the port of the server, such as xds.example.com:18000", quote(x.Server))
	}
	if c.Limits.Path != "" {
		v.faultFor("limits.xds.server", "limits.path", "is given, and so is limits.path: limits come from the server or from files, give one of them")
	}
}

// metadata checks the metadata of a node.
func (v *validator) metadata(field string, list []string) {
	seen, bytes := make(map[string]bool), 0
	for i, p := range list {
		name, _, ok := strings.Cut(p, "=")
		name = strings.TrimSpace(name)
		at := fmt.Sprintf("%s[%d]", field, i)
		switch bytes += len(p); {
		case !ok || name == "":
			v.fault(at, "%s is not KEY=VALUE", yamlpos.Quote(p))
		case seen[name]:
			v.fault(at, "%s is there twice: give it once", yamlpos.Quote(name))
		}
		seen[name] = true
	}
	if len(list) > maxPairs || bytes > maxPairBytes {
		v.fault(field, "has %d entries of %d bytes: want at most %d of %d", len(list), bytes, maxPairs, maxPairBytes)
	}
}

// headerFault returns what is wrong with a header of gRPC, "" for nothing.
func headerFault(name, value string) string {
	switch {
	case strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}):
		return fmt.Sprintf("%s is not the name of a header: letters, digits, and - _ .", yamlpos.Quote(name))
	case strings.HasPrefix(strings.ToLower(name), "grpc-"):
		return fmt.Sprintf("%s is a name of gRPC: give another one", yamlpos.Quote(name))
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return fmt.Sprintf("the value of %s has a character that is not printable ASCII", yamlpos.Quote(name))
	}
	return ""
}

// clientTLS checks the settings of TLS to a server.
func (v *validator) clientTLS(name string, t *ClientTLS) {
	for _, f := range []struct{ name, value string }{
		{name + ".ca_file", t.CAFile},
		{name + ".cert_file", t.CertFile},
		{name + ".key_file", t.KeyFile},
		{name + ".server_name", t.ServerName},
	} {
		if f.value != "" && !t.Enabled {
			v.fault(f.name, "has no effect without %s.enabled: set it to true for TLS, or leave this out for plain text", name)
		}
	}
	if t.Enabled && (t.CertFile == "") != (t.KeyFile == "") {
		has, lacks := name+".cert_file", name+".key_file"
		if t.CertFile == "" {
			has, lacks = lacks, has
		}
		v.faultFor(lacks, has, "is missing beside %s: a certificate and its key are two files in PEM, give both", has)
	}
}

// Read returns the configuration of TLS with the content of the files, nil
// where it is not enabled. The error and the warnings name the settings, which
// begin with name.
func (t *ClientTLS) Read(name string) (c *tls.Config, warnings []string, err error) {
	if !t.Enabled {
		return nil, nil, nil
	}
	c = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CertFile != "" {
		var read tlsFiles
		if read, warnings, err = readTLS([3]pemFile{{name + ".cert_file", t.CertFile}, {name + ".key_file", t.KeyFile}, {}}); err != nil {
			return nil, warnings, err
		}
		c.Certificates = []tls.Certificate{read.pair}
	}
	if t.CAFile != "" {
		data, err := pemFile{name + ".ca_file", t.CAFile}.read()
		if err != nil {
			return nil, warnings, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, warnings, fmt.Errorf("%s.ca_file: %s: holds no certificate in PEM", name, t.CAFile)
		}
	}
	return c, warnings, nil
}
