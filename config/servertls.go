package config

import (
	"fmt"
	"time"

	"github.com/georld/rld/server/auth"
)

// Check reads the files as a daemon does at start, and returns their faults as
// a joined error. The name is that of the settings, "grpc.tls". Warnings are
// about a certificate that callers would refuse at the time now, and about a
// key that others can read.
func (t ServerTLS) Check(name string, now time.Time) (warnings []string, err error) {
	if !t.On() {
		return nil, nil
	}
	read, warnings, err := readTLS([3]pemFile{
		{name + ".cert_file", t.CertFile}, {name + ".key_file", t.KeyFile}, {name + ".client_ca_file", t.ClientCAFile},
	})
	if err != nil {
		return warnings, err
	}
	problem := ""
	switch leaf := read.pair.Leaf; {
	case now.Before(leaf.NotBefore):
		problem = "is not valid before " + leaf.NotBefore.Format(time.RFC3339)
	case now.After(leaf.NotAfter):
		problem = "expired at " + leaf.NotAfter.Format(time.RFC3339)
	case len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.URIs) == 0:
		problem = "has no subject alternative name"
	}
	if problem != "" {
		warnings = append(warnings, fmt.Sprintf("%s.cert_file: %s %s: callers would refuse it", name, t.CertFile, problem))
	}
	return warnings, nil
}

// TokensOf is whose tokens a file holds, as its setting.
type TokensOf string

// The files of tokens.
const (
	OfCallers   TokensOf = "auth.tokens_file"
	OfOperators TokensOf = "admin.tokens_file"
)

// Read reads the tokens file at path. A file that others can write is rejected,
// since they could add a token. The file holds no secrets, so anyone may read
// it.
func (k TokensOf) Read(path string) (auth.Tokens, error) {
	data, err := k.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return k.Parse(path, data)
}

// Parse parses the content of the tokens file at path.
func (k TokensOf) Parse(path string, data []byte) (auth.Tokens, error) {
	parse := auth.Parse
	if k == OfOperators {
		parse = auth.ParseOperators
	}
	tokens, err := parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	return tokens, nil
}

// ReadFile returns the content that Parse parses.
func (k TokensOf) ReadFile(path string) ([]byte, error) {
	data, _, err := readPrivate(string(k), path, auth.MaxBytes)
	return data, err
}
