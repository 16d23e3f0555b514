package config

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadTokens refuses a file that others can write, and takes one that they
// can read.
func TestReadTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "tokens: [{name: a, sha256: "+strings.Repeat("ab", 32)+", domains: [d]}]\n")
	for _, tt := range []struct {
		mode os.FileMode
		want string
	}{
		{0o600, ""},
		{0o444, ""},
		{0o620, "auth.tokens_file: " + path + ": is writable by others (mode 0620): chmod 0600 it"},
		{0o602, "is writable by others (mode 0602)"},
	} {
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		tokens, err := OfCallers.Read(path)
		if tt.want == "" && (err != nil || len(tokens) != 1) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("mode %04o: %v, want %q", tt.mode, err, tt.want)
		}
	}
}

// TestServerTLSCheck reports the files of a listener that callers would refuse.
func TestServerTLSCheck(t *testing.T) {
	a := newAuthority(t)
	one, other := a.filesOf(t, nil, x509.ExtKeyUsageServerAuth), a.files(t)
	in := validFrom.AddDate(0, 6, 0)
	for _, tt := range []struct {
		name          string
		tls           ServerTLS
		now           time.Time
		warning, want string
	}{
		{"plain text", ServerTLS{}, in, "", ""},
		{"no name", ServerTLS{CertFile: one.Cert, KeyFile: one.Key}, in, "has no subject alternative name", ""},
		{"expired", ServerTLS{CertFile: one.Cert, KeyFile: one.Key}, in.AddDate(9, 0, 0), "expired at", ""},
		{"not yet", ServerTLS{CertFile: one.Cert, KeyFile: one.Key}, in.AddDate(-9, 0, 0), "is not valid before", ""},
		{"another key", ServerTLS{CertFile: one.Cert, KeyFile: other.Key}, in, "", "grpc.tls.key_file: " + other.Key + " is not the key of"},
		{"no key", ServerTLS{CertFile: one.Cert, KeyFile: "nowhere"}, in, "", "grpc.tls.key_file: nowhere: no such file"},
		{"key for the certificate", ServerTLS{CertFile: one.Cert, KeyFile: one.Cert}, in, "", "grpc.tls.key_file: "},
		{
			"key for the authority",
			ServerTLS{CertFile: one.Cert, KeyFile: one.Key, ClientCAFile: one.Key},
			in,
			"", "grpc.tls.client_ca_file: " + one.Key + ": holds no certificate",
		},
	} {
		warnings, err := tt.tls.Check("grpc.tls", tt.now)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if got := strings.Join(warnings, "\n"); !strings.Contains(got, tt.warning) || (got == "") != (tt.warning == "") {
			t.Errorf("%s: warnings %q, want %q", tt.name, got, tt.warning)
		}
	}
}
