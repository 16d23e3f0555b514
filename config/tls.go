package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/georld/rld/internal/certs"
)

// maxPEMBytes bounds a file of certificates or a key.
const maxPEMBytes = 1 << 20

// Check reads the files as a daemon does at start, and returns their faults as
// a joined error. If the certificate names daemons, self must be among them; a
// zero self is any. Warnings are about certificates that other daemons would
// refuse at the time now, such as expired ones, about one without names, and
// about a key that others can read. It returns nothing where t is not on.
func (t TLS) Check(self certs.Name, now time.Time) (warnings []string, err error) {
	if !t.On() {
		return nil, nil
	}
	read, warnings, err := readTLS([3]pemFile{{"peer.tls.cert", t.Cert}, {"peer.tls.key", t.Key}, {"peer.tls.ca", t.CA}})
	if err != nil {
		return warnings, err
	}
	names, err := certs.NamesOf(read.pair.Leaf)
	switch {
	case err != nil:
		return warnings, fmt.Errorf("peer.tls.cert: %s: %w", t.Cert, err)
	case len(names) == 0:
		warnings = append(warnings, fmt.Sprintf("peer.tls.cert: %s names no daemon: any holder of a certificate of %s may claim "+
			"to be any daemon; want one with %s, as rld cert issue makes", t.Cert, t.CA, certs.Forms))
	case self != (certs.Name{}):
		if err := certs.Require(names, self); err != nil {
			return warnings, fmt.Errorf("peer.tls.cert: %s: %w (%s): use that, or correct region and name", t.Cert, err, self.URI())
		}
	}
	return append(warnings, t.untrusted(read.pair, read.ca, now)...), nil
}

// pemFile is a file in PEM, and the setting that names it.
type pemFile struct{ setting, path string }

// read reads a file of certificates.
func (f pemFile) read() ([]byte, error) {
	data, err := readRegular(f.path, maxPEMBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.setting, err)
	}
	if block, _ := pem.Decode(data); block == nil {
		return nil, fmt.Errorf("%s: %s: holds no certificate in PEM", f.setting, f.path)
	}
	return data, nil
}

// tlsFiles is the content of the files of one end of TLS.
type tlsFiles struct {
	pair tls.Certificate
	ca   *x509.CertPool // nil without a file
}

// readTLS reads a certificate, its key and the authorities of the other ends,
// "" for none. It returns all faults of the files as a joined error, and a
// warning for a key that others can read.
func readTLS(files [3]pemFile) (read tlsFiles, warnings []string, err error) {
	certFile, keyFile, caFile := files[0], files[1], files[2]
	cert, certErr := certFile.read()
	key, warnings, keyErr := readPrivate(keyFile.setting, keyFile.path, maxPEMBytes)
	var caErr error
	if caFile.path != "" {
		var ca []byte
		ca, caErr = caFile.read()
		if read.ca = x509.NewCertPool(); !read.ca.AppendCertsFromPEM(ca) && caErr == nil {
			caErr = fmt.Errorf("%s: %s: holds no certificate in PEM", caFile.setting, caFile.path)
		}
	}
	if err := errors.Join(certErr, keyErr, caErr); err != nil {
		return tlsFiles{}, warnings, err
	}
	if block, _ := pem.Decode(key); block == nil {
		return tlsFiles{}, warnings, fmt.Errorf("%s: %s: holds no private key in PEM", keyFile.setting, keyFile.path)
	}
	if read.pair, err = tls.X509KeyPair(cert, key); err != nil {
		return tlsFiles{}, warnings, fmt.Errorf("%s: %s is not the key of %s: %w", keyFile.setting, keyFile.path, certFile.path, err)
	}
	return read, warnings, nil
}

// untrusted returns the reason why a daemon with the same CA would refuse the
// certificate of a server or of a client, "" for none.
func (t TLS) untrusted(pair tls.Certificate, pool *x509.CertPool, now time.Time) []string {
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use},
		})
		if err != nil {
			return []string{fmt.Sprintf("peer.tls.cert: other daemons would refuse %s: %v", t.Cert, err)}
		}
	}
	return nil
}
