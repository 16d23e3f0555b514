package config

import (
	"fmt"
	"strings"
	"time"
)

// Checked is the result of Check.
type Checked struct {
	// Loaded holds the valid settings. It is valid as a whole only without
	// faults.
	Loaded
	// Faults lists all faults. It is empty when a daemon would start with these
	// settings, provided that the limits are valid and the ports are free.
	Faults Faults
}

// Check reads the settings as Load does, and also the files of secrets, keys
// and certificates that they name. A fault of a file is a fault of its setting.
// Certificates are verified at the time now. The error is that of reading the
// settings file itself.
func Check(s Sources, now time.Time) (*Checked, error) {
	l, path, err := gather(s)
	if err != nil {
		return nil, err
	}
	l.files(now)
	l.faults.sort()
	return &Checked{Loaded: l.loaded(path), Faults: l.faults}, nil
}

// files reads the files of settings without a fault.
func (l *loader) files(now time.Time) {
	c, known := &l.cfg, l.faulty()
	if c.Cluster.SecretFile != "" && !known["cluster.secret_file"] {
		_, warnings, err := ReadSecret(c.Cluster.SecretFile)
		l.inFile(warnings, err)
	}
	if c.Swim.KeysFile != "" && !known["swim.keys_file"] {
		_, warnings, err := ReadKeys(c.Swim.KeysFile)
		l.inFile(warnings, err)
	}
	if !known["peer.tls.cert"] && !known["peer.tls.key"] && !known["peer.tls.ca"] {
		l.inFile(c.Peer.TLS.Check(c.certName(), now))
	}
	for _, s := range []struct {
		name string
		tls  ServerTLS
	}{{"grpc.tls", c.GRPC.TLS}, {"http.tls", c.HTTP.TLS}, {"admin.tls", c.Admin.TLS.Server()}} {
		if !known[s.name+".cert_file"] && !known[s.name+".key_file"] && !known[s.name+".client_ca_file"] {
			l.inFile(s.tls.Check(s.name, now))
		}
	}
	for _, t := range []struct {
		of   TokensOf
		path string
	}{{OfCallers, c.Auth.TokensFile}, {OfOperators, c.Admin.TokensFile}} {
		if t.path != "" && !known[string(t.of)] {
			_, err := t.of.Read(t.path)
			l.inFile(nil, err)
		}
	}
	if x := &c.Limits.XDS; x.On() {
		if !known["limits.xds.headers_file"] {
			_, warnings, err := x.ReadHeaders()
			l.inFile(warnings, err)
		}
		if x.Overlay != "" && !known["limits.xds.overlay"] {
			_, _, err := x.ReadOverlay()
			l.inFile(nil, err)
		}
		if !known["limits.xds.tls.ca_file"] && !known["limits.xds.tls.cert_file"] && !known["limits.xds.tls.key_file"] {
			_, warnings, err := x.TLS.Read("limits.xds.tls")
			l.inFile(warnings, err)
		}
	}
	if !known["state.dir"] {
		l.inFile(c.CheckState())
	}
	l.warnings = append(l.warnings, c.openRegions()...)
	if c.Region != "" && !known["name"] {
		_, err := c.DaemonName()
		l.inFile(nil, err)
	}
}

// openRegions returns a warning for the regions without networks.
func (c *Config) openRegions() []string {
	var open []string
	for _, r := range c.Regions {
		if len(r.CIDRs) == 0 {
			open = append(open, r.Name)
		}
	}
	if len(open) == 0 || !c.Peer.TLS.On() { // plain streams have greater risks
		return nil
	}
	return []string{fmt.Sprintf("regions %s: no cidrs: their daemons can make this one dial any address", strings.Join(open, ", "))}
}

// inFile adds the result of checking a file, where each error is "SETTING:
// PROBLEM".
func (l *loader) inFile(warnings []string, err error) {
	l.warnings = append(l.warnings, warnings...)
	for _, e := range each(err) {
		f := &Fault{Problem: e.Error()}
		if name, problem, ok := strings.Cut(f.Problem, ": "); ok && l.field(name) != nil {
			f.Field, f.Problem, f.Origin = name, problem, l.origins[name]
			l.locate(f, name)
		}
		l.faults = append(l.faults, f)
	}
}
