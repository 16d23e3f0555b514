package cert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/georld/rld/internal/certs"
)

// The files of a folder: those of the authority, and in the folder REGION/NAME
// those of a daemon.
const (
	authorityCert = "ca.crt"
	authorityKey  = "ca.key"
	daemonCert    = "tls.crt"
	daemonKey     = "tls.key"
)

// early is how long before now certificates begin to be valid, for clocks that
// are behind.
const early = time.Hour

// day is the unit of validities.
const day = 24 * time.Hour

// authority signs the certificates of daemons.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	all  []byte // ca.crt, which may hold further authorities
}

// openAuthority reads the authority of a folder.
func openAuthority(dir string) (*authority, error) {
	certPath, keyPath := filepath.Join(dir, authorityCert), filepath.Join(dir, authorityKey)
	all, err := os.ReadFile(certPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file: make the authority first with rld cert init --dir %s", certPath, dir)
	}
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, fmt.Errorf("the key of the authority is needed to sign: %w", err)
	}
	// The file may hold the certificates of several authorities, of which one
	// has the key.
	for rest := all; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, fmt.Errorf("%s is not the key of a certificate in %s", keyPath, certPath)
		}
		pair, err := tls.X509KeyPair(pem.EncodeToMemory(block), keyPEM)
		if err != nil {
			continue
		}
		key, ok := pair.PrivateKey.(crypto.Signer)
		if !ok || !pair.Leaf.IsCA {
			return nil, fmt.Errorf("%s: the certificate of %s is of no authority: make one with rld cert init", certPath, keyPath)
		}
		return &authority{dir: dir, cert: pair.Leaf, key: key, all: all}, nil
	}
}

// makeAuthority returns the files of a new authority.
func makeAuthority(now time.Time, validity time.Duration) (cert, key []byte, notAfter time.Time, err error) {
	k, key, err := newKey()
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "rld"},
		NotBefore: now.Add(-early), NotAfter: now.Add(validity).Truncate(time.Second),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	return encode("CERTIFICATE", der), key, template.NotAfter, nil
}

// sign returns a certificate of a daemon. It ends with the authority at the
// latest.
func (a *authority) sign(name certs.Name, public crypto.PublicKey, now time.Time, validity time.Duration) ([]byte, time.Time, error) {
	if left := a.cert.NotAfter.Sub(now); left <= 0 {
		return nil, time.Time{}, fmt.Errorf("%s expired at %s: make another authority in another folder with rld cert init, and "+
			"give all daemons both certificates in ca.crt first", filepath.Join(a.dir, authorityCert), shown(a.cert.NotAfter))
	}
	uri, err := url.Parse(name.URI())
	if err != nil {
		return nil, time.Time{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name.String()}, URIs: []*url.URL{uri},
		NotBefore: now.Add(-early), NotAfter: now.Add(validity).Truncate(time.Second),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		return nil, time.Time{}, err
	}
	return encode("CERTIFICATE", der), template.NotAfter, nil
}

// newKey returns a new key, and its file.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, nil, err
	}
	return k, encode("PRIVATE KEY", der), nil
}

func serial() *big.Int {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b[:])
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func shown(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// missing returns an error if a file is there and may not be replaced.
func missing(path string, replace bool) error {
	_, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && replace:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s is there already, and nothing was written: --force replaces it", path)
}

// write writes a file that its owner alone can read. It replaces a former one
// at once, so that no reader finds half of it.
func write(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
