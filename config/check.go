package config

import (
	"strings"
	"time"
)

// Checked is what Check found.
type Checked struct {
	// Loaded holds what could be taken over. It is valid only without faults.
	Loaded
	// Faults is everything that is wrong, empty when a daemon would start with
	// these settings as far as limits and free ports let it.
	Faults Faults
}

// Check gathers the settings as Load does and also reads the files of secrets,
// keys and certificates that they name. What is wrong with a file is a fault
// of its setting. The time now is what certificates are held against. The
// error says why the settings file itself cannot be read.
func Check(s Sources, now time.Time) (*Checked, error) {
	l, path, err := gather(s)
	if err != nil {
		return nil, err
	}
	l.files(now)
	l.faults.sort()
	return &Checked{Loaded: l.loaded(path), Faults: l.faults}, nil
}

// files reads what the settings name, but for settings that have a fault
// already.
func (l *loader) files(now time.Time) {
	known := make(map[string]bool)
	for _, f := range l.faults {
		known[l.settingOf(f.Field)] = true
	}
	c := &l.cfg
	if c.Cluster.SecretFile != "" && !known["cluster.secret_file"] {
		_, warnings, err := ReadSecret(c.Cluster.SecretFile)
		l.inFile(warnings, err)
	}
	if c.Swim.KeysFile != "" && !known["swim.keys_file"] {
		_, warnings, err := ReadKeys(c.Swim.KeysFile)
		l.inFile(warnings, err)
	}
	if !known["peer.tls.cert"] && !known["peer.tls.key"] && !known["peer.tls.ca"] {
		l.inFile(c.Peer.TLS.Check(now))
	}
	if !known["rights.dir"] {
		l.inFile(c.Rights.Check())
	}
	if c.Region != "" && !known["name"] {
		_, err := c.DaemonName()
		l.inFile(nil, err)
	}
}

// inFile takes over what is said of a file, each error "SETTING: PROBLEM".
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
