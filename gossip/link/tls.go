package link

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// maxPEM bounds a file of certificates or keys, in bytes.
const maxPEM = 1 << 20

// Certificates holds the certificate of the daemon and the authorities of the
// cluster. The files are read again at each handshake: changed ones apply to
// all streams from then on, and while they are invalid the former ones apply.
// It is safe for concurrent use.
type Certificates struct {
	files [3]string // certificate, key, authorities
	log   *slog.Logger

	mu    sync.Mutex
	tried [3][]byte // the last content, valid or not
	good  *identity
	err   error // the fault of the last content
}

// identity is a certificate and the authorities to verify peers with.
type identity struct {
	cert tls.Certificate
	ca   *x509.CertPool
}

// LoadCertificates reads the files. The error names the invalid file. The
// logger receives later faults and changes.
func LoadCertificates(cert, key, ca string, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{files: [3]string{cert, key, ca}, log: log}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reloadLocked()
	if c.err != nil {
		return nil, c.err
	}
	return c, nil
}

// current reads the files again and returns the identity in force.
func (c *Certificates) current() *identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.err
	if !c.reloadLocked() {
		return c.good
	}
	switch {
	case c.err == nil:
		c.log.Info("certificates of peers changed", "cert", c.files[0], "expires", c.good.cert.Leaf.NotAfter)
	case before == nil || before.Error() != c.err.Error():
		c.log.Error("certificates of peers changed and are broken: the former ones stay in force", "error", c.err)
	}
	return c.good
}

// reloadLocked reads the files and reports whether anything changed.
func (c *Certificates) reloadLocked() bool {
	var read [3][]byte
	for i, name := range c.files {
		b, err := readPEM(name)
		if err != nil {
			changed := c.err == nil || c.err.Error() != err.Error()
			c.err, c.tried = err, [3][]byte{}
			return changed
		}
		read[i] = b
	}
	if slices.EqualFunc(read[:], c.tried[:], func(a, b []byte) bool { return b != nil && bytes.Equal(a, b) }) {
		return false
	}
	c.tried = read
	id, err := parseIdentity(c.files, read)
	c.err = err
	if err == nil {
		c.good = id
	}
	return true
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

// parseIdentity parses the three files and verifies the certificate with the
// authorities: every peer would refuse one that they did not sign.
func parseIdentity(files [3]string, read [3][]byte) (*identity, error) {
	cert, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", files[0], files[1], err)
	}
	id := &identity{cert: cert, ca: x509.NewCertPool()}
	if !id.ca.AppendCertsFromPEM(read[2]) {
		return nil, fmt.Errorf("%s: no certificate in it, want those of the authorities as PEM blocks", files[2])
	}
	chain, err := x509.ParseCertificates(slices.Concat(cert.Certificate...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files[0], err)
	}
	for _, role := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err := id.verify(chain, role); err != nil {
			return nil, fmt.Errorf("%s does not fit %s: %w; want a certificate of these authorities for"+
				" both ends of TLS", files[0], files[2], err)
		}
	}
	return id, nil
}

// verify verifies a chain with the authorities. Names are not verified at
// either end: addresses of daemons come from the membership and change, so a
// certificate cannot name them, and the authorities are the cluster's own, so
// that every holder of their certificates belongs to it.
func (id *identity) verify(chain []*x509.Certificate, role x509.ExtKeyUsage) error {
	if len(chain) == 0 {
		return errors.New("no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: id.ca, Intermediates: between, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{role},
	})
	return err
}

// Server returns the configuration of the accepting end.
func (c *Certificates) Server() *tls.Config {
	config := common()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		id := c.current()
		now := common()
		now.NextProtos = append(now.NextProtos, priorityProto)
		now.Certificates = []tls.Certificate{id.cert}
		now.ClientAuth = tls.RequireAndVerifyClientCert
		now.ClientCAs = id.ca
		return now, nil
	}
	return config
}

// Client returns the configuration of the dialing end.
func (c *Certificates) Client() *tls.Config {
	config := common()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &c.current().cert, nil
	}
	// This disables the verification of names and of the chain; the chain is
	// verified below.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if err := c.current().verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth); err != nil {
			return fmt.Errorf("failed to verify certificate: %w", err)
		}
		return nil
	}
	return config
}

// common returns the common configuration of both ends. There are no session
// tickets: streams are long, and a resumed session would outlive a change of
// the authorities.
func common() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
	}
}
