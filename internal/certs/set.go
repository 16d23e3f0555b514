// Package certs loads certificates from files, follows changes of the files,
// and reads the names of daemons in certificates.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// maxPEM bounds a file of certificates or keys, in bytes.
const maxPEM = 1 << 20

// Files are the files of one end of TLS, in PEM.
type Files struct {
	// Cert is the certificate with its chain, and Key its private key.
	Cert, Key string
	// CA holds the authorities that sign the certificates of the other ends;
	// "" for none.
	CA string
	// Own are the uses for which CA must have signed Cert, too; none where CA
	// signs those of others only.
	Own []x509.ExtKeyUsage
	// What names the certificates in the log: "certificates of peers".
	What string
}

// Set is the content of valid files. It is immutable.
type Set struct {
	Cert  tls.Certificate
	CA    *x509.CertPool // nil without Files.CA
	Names []Name         // of the daemons that Cert names
	// NotAfter is when Cert stops being valid: when it expires or, with
	// Files.Own, an authority that it needs.
	NotAfter time.Time
}

// content is the bytes of the certificate, the key and the authorities.
type content [3][]byte

// read reads the files. Without Files.CA the last part is empty.
func (f *Files) read() (all content, err error) {
	for i, name := range []string{f.Cert, f.Key, f.CA} {
		if i == 2 && name == "" {
			all[i] = []byte{}
			break
		}
		if all[i], err = readPEM(name); err != nil {
			return content{}, err
		}
	}
	return all, nil
}

func readPEM(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(b) > maxPEM {
		return nil, fmt.Errorf("%s: more than %d bytes, want PEM blocks", name, maxPEM)
	}
	return b, nil
}

// parse returns the set of a content. With Files.Own it verifies the
// certificate with the authorities at now: every other end would refuse one
// that they did not sign.
func (f *Files) parse(read content, now time.Time) (*Set, error) {
	cert, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", f.Cert, f.Key, err)
	}
	s := &Set{Cert: cert, NotAfter: cert.Leaf.NotAfter}
	if s.Names, err = NamesOf(cert.Leaf); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Cert, err)
	}
	if f.CA == "" {
		return s, nil
	}
	s.CA = x509.NewCertPool()
	if !s.CA.AppendCertsFromPEM(read[2]) {
		return nil, fmt.Errorf("%s: no certificate in it, want those of the authorities as PEM blocks", f.CA)
	}
	chain, err := x509.ParseCertificates(slices.Concat(cert.Certificate...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Cert, err)
	}
	for _, use := range f.Own {
		end, err := s.Verify(chain, use, now)
		if err != nil {
			return nil, fmt.Errorf("%s does not fit %s: %w; want a certificate of these authorities for"+
				" both ends of TLS", f.Cert, f.CA, err)
		}
		if end.Before(s.NotAfter) {
			s.NotAfter = end
		}
	}
	return s, nil
}

// Verify verifies the chain of another end with the authorities, at now, and
// returns when it stops being valid. It does not look at names.
func (s *Set) Verify(chain []*x509.Certificate, use x509.ExtKeyUsage, now time.Time) (notAfter time.Time, err error) {
	if len(chain) == 0 {
		return time.Time{}, errors.New("no certificate")
	}
	if s.CA == nil {
		return time.Time{}, errors.New("no authorities to verify a certificate with")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	paths, err := chain[0].Verify(x509.VerifyOptions{
		Roots: s.CA, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use},
	})
	if err != nil {
		return time.Time{}, err
	}
	for _, path := range paths { // the longest valid one counts
		end := path[0].NotAfter
		for _, c := range path[1:] {
			if c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
		if end.After(notAfter) {
			notAfter = end
		}
	}
	return notAfter, nil
}
