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

// ReadTokens reads the tokens file at path. A file that others can write is
// rejected, since they could add a token. The file holds no secrets, so anyone
// may read it.
func ReadTokens(path string) (auth.Tokens, error) {
	data, err := ReadTokensFile(path)
	if err != nil {
		return nil, err
	}
	return ParseTokens(path, data)
}

const tokensSetting = "auth.tokens_file"

// ParseTokens parses the content of the tokens file at path.
func ParseTokens(path string, data []byte) (auth.Tokens, error) {
	tokens, err := auth.Parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tokensSetting, err)
	}
	return tokens, nil
}

// ReadTokensFile returns the content that ParseTokens parses.
func ReadTokensFile(path string) ([]byte, error) {
	data, _, err := readPrivate(tokensSetting, path, auth.MaxBytes)
	return data, err
}
