package config

import (
	"crypto/x509"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/certs/certstest"
)

// authority signs certificates for tests.
type authority struct{ *certstest.Authority }

var validFrom = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) *authority {
	return &authority{certstest.New(t, func(c *x509.Certificate) {
		c.Subject.CommonName, c.NotBefore, c.NotAfter = "ca", validFrom, validFrom.AddDate(10, 0, 0)
	})}
}

// files signs a certificate of us/us-0 for a year and for uses, and returns its
// files.
func (a *authority) files(t *testing.T, uses ...x509.ExtKeyUsage) TLS {
	return a.filesOf(t, []string{"us-0.us.rld"}, uses...)
}

// filesOf signs a certificate with DNS names.
func (a *authority) filesOf(t *testing.T, names []string, uses ...x509.ExtKeyUsage) TLS {
	f := a.Write(t, t.TempDir(), func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter, c.ExtKeyUsage, c.DNSNames = validFrom, validFrom.AddDate(1, 0, 0), uses, names
	})
	return TLS{f.Cert, f.Key, f.CA}
}

func TestCheckTLS(t *testing.T) {
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	ca := newAuthority(t)
	for _, tc := range []struct {
		name         string
		change       func(t *testing.T, f *TLS)
		uses         []x509.ExtKeyUsage
		at           time.Time
		err, warning string // parts; "" for none
	}{
		{"good", func(*testing.T, *TLS) {}, nil, validFrom, "", ""},
		{"both uses", func(*testing.T, *TLS) {}, []x509.ExtKeyUsage{server, client}, validFrom, "", ""},
		{"off", func(_ *testing.T, f *TLS) { *f = TLS{} }, nil, validFrom, "", ""},
		{
			"no certificate", func(_ *testing.T, f *TLS) { f.Cert = "none/cert" }, nil, validFrom,
			"peer.tls.cert: none/cert: no such file or directory", "",
		},
		{
			"all missing", func(_ *testing.T, f *TLS) { *f = TLS{"none/c", "none/k", "none/a"} }, nil, validFrom,
			"peer.tls.cert: none/c: no such file or directory\npeer.tls.key: none/k: no such file or directory\n" +
				"peer.tls.ca: none/a: no such file or directory", "",
		},
		{
			"certificate is none", func(t *testing.T, f *TLS) { write(t, f.Cert, "x") }, nil, validFrom,
			"/cert.pem: holds no certificate in PEM", "",
		},
		{
			"key is none", func(t *testing.T, f *TLS) { write(t, f.Key, "x") }, nil, validFrom,
			"/key.pem: holds no private key in PEM", "",
		},
		{
			"authority is a key", func(_ *testing.T, f *TLS) { f.CA = f.Key }, nil, validFrom,
			"peer.tls.ca: ", "",
		},
		{
			"key of another", func(t *testing.T, f *TLS) { f.Key = ca.files(t).Key }, nil, validFrom,
			"is not the key of ", "",
		},
		{"swapped", func(_ *testing.T, f *TLS) { f.Cert, f.Key = f.Key, f.Cert }, nil, validFrom, "is not the key of ", ""},
		{
			"key that all may write", func(t *testing.T, f *TLS) { chmod(t, f.Key, 0o666) }, nil, validFrom,
			"writable by others", "",
		},
		{
			"key that all may read", func(t *testing.T, f *TLS) { chmod(t, f.Key, 0o644) }, nil, validFrom,
			"", "peer.tls.key: ",
		},
		{
			"expired", func(*testing.T, *TLS) {}, nil, validFrom.AddDate(2, 0, 0),
			"", "other daemons would refuse ",
		},
		{
			"of another authority", func(t *testing.T, f *TLS) { f.CA = newAuthority(t).files(t).CA }, nil, validFrom,
			"", "signed by unknown authority",
		},
		{
			"no client's", func(*testing.T, *TLS) {},
			[]x509.ExtKeyUsage{server},
			validFrom,
			"", "incompatible key usage",
		},
		{
			"no name", func(t *testing.T, f *TLS) { *f = ca.filesOf(t, nil) }, nil, validFrom,
			"", "names no daemon: any holder of a certificate of ",
		},
		{
			"another name", func(t *testing.T, f *TLS) { *f = ca.filesOf(t, []string{"us-1.us.rld"}) }, nil, validFrom,
			"the certificate is of us/us-1, want one of us/us-0 (spiffe://rld/us/us-0): use that, or correct region and name", "",
		},
		{
			"no name at all", func(t *testing.T, f *TLS) { *f = ca.filesOf(t, []string{"*.us.rld"}) }, nil, validFrom,
			"/cert.pem: DNS name \"*.us.rld\"", "",
		},
	} {
		files := ca.files(t, tc.uses...)
		tc.change(t, &files)
		warnings, err := files.Check(certs.Name{Region: "us", Daemon: "us-0"}, tc.at.Add(time.Hour))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, tc.err) || (tc.err == "") != (err == nil) {
			t.Errorf("%s: got error %v, want %q", tc.name, err, tc.err)
		}
		all := strings.Join(warnings, "\n")
		if !strings.Contains(all, tc.warning) || (tc.warning == "") != (all == "") {
			t.Errorf("%s: warnings %q, want one with %q", tc.name, all, tc.warning)
		}
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
