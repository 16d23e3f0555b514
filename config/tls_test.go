package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/georld/rld/internal/certs"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var validFrom = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func newAuthority(t *testing.T) *authority {
	a := &authority{cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: validFrom,
		NotAfter: validFrom.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true,
	}}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// files signs a certificate of us/us-0 for a year and for uses, and returns its
// files.
func (a *authority) files(t *testing.T, uses ...x509.ExtKeyUsage) TLS {
	return a.filesOf(t, []string{"us-0.us.rld"}, uses...)
}

// filesOf signs a certificate with DNS names.
func (a *authority) filesOf(t *testing.T, names []string, uses ...x509.ExtKeyUsage) TLS {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "daemon"}, NotBefore: validFrom,
		NotAfter: validFrom.AddDate(1, 0, 0), ExtKeyUsage: uses, DNSNames: names,
	}, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := TLS{filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")}
	write(t, files.Cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, files.Key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
	write(t, files.CA, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})))
	return files
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
			"/cert: holds no certificate in PEM", "",
		},
		{
			"key is none", func(t *testing.T, f *TLS) { write(t, f.Key, "x") }, nil, validFrom,
			"/key: holds no private key in PEM", "",
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
			"/cert: DNS name \"*.us.rld\"", "",
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
