// Package certstest makes certificates for tests.
package certstest

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
	"sync/atomic"
	"testing"
	"time"
)

// Certificates are valid from From until Until, unless a test changes it. The
// clock of a testing/synctest bubble starts between them, in the year 2000.
var (
	From  = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	Until = time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Both are the uses of a certificate at both ends of TLS.
func Both() []x509.ExtKeyUsage {
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	Cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial atomic.Int64
}

// New returns an authority. change edits its certificate before it is signed;
// nil keeps it.
func New(t testing.TB, change func(*x509.Certificate)) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial.Add(1)), Subject: pkix.Name{CommonName: "authority"}, NotBefore: From, NotAfter: Until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.Cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// PEM returns the certificate of the authority.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.Cert.Raw) }

// Issue returns a certificate and its key, in PEM. change edits the certificate
// before it is signed; nil keeps it.
func (a *Authority) Issue(t testing.TB, change func(*x509.Certificate)) (cert, key []byte) {
	t.Helper()
	private := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(a.serial.Add(1)), NotBefore: From, NotAfter: Until, ExtKeyUsage: Both()}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", secret)
}

// Files are the paths of the files of one end of TLS.
type Files struct{ Cert, Key, CA string }

// Write writes a certificate, its key and the authority into dir, as cert.pem,
// key.pem and ca.pem. It replaces existing files.
func (a *Authority) Write(t testing.TB, dir string, change func(*x509.Certificate)) Files {
	t.Helper()
	f := Files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")}
	cert, key := a.Issue(t, change)
	for path, b := range map[string][]byte{f.Cert: cert, f.Key: key, f.CA: a.PEM()} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
