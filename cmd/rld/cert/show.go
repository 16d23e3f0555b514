package cert

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/georld/rld/internal/certs"
)

// maxFile bounds a file of certificates, in bytes.
const maxFile = 1 << 20

// show describes the certificates in a file. The error is for a file without
// any, and for one that is not valid now.
func show(path string, now time.Time) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return "", fmt.Errorf("%s: want a file of certificates in PEM, of at most %d bytes", path, maxFile)
	}
	rest, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	var faults []error
	for found := 0; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if found == 0 {
				faults = append(faults, fmt.Errorf("%s: no certificate in it, want PEM blocks", path))
			}
			return b.String(), errors.Join(faults...)
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		found++
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", path, err))
			continue
		}
		faults = append(faults, describe(&b, path, c, now))
	}
}

// describe writes a certificate, and returns why it is not valid.
func describe(b *strings.Builder, path string, c *x509.Certificate, now time.Time) error {
	names, err := certs.NamesOf(c)
	is := "of no daemon: peers with names refuse it"
	switch {
	case err != nil:
		is = "invalid: " + err.Error()
	case c.IsCA:
		is = "an authority"
	case len(names) > 0:
		is = "of " + certs.List(names)
	}
	fmt.Fprintf(b, "%s: %s\n  subject %q, signed by %q, serial %x\n  valid from %s until %s, ",
		path, is, c.Subject, c.Issuer, c.SerialNumber, shown(c.NotBefore), shown(c.NotAfter))
	switch {
	case now.After(c.NotAfter):
		b.WriteString("EXPIRED\n")
		return errors.Join(err, fmt.Errorf("%s expired at %s", path, shown(c.NotAfter)))
	case now.Before(c.NotBefore):
		b.WriteString("NOT YET VALID\n")
		return errors.Join(err, fmt.Errorf("%s is not valid before %s", path, shown(c.NotBefore)))
	}
	fmt.Fprintf(b, "%d days left\n", int(c.NotAfter.Sub(now)/day))
	return err
}
