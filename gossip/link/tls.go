package link

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/georld/rld/internal/certs"
)

// Certificates holds the certificate of the daemon and the authorities of the
// cluster. The files are read again at each handshake: changed ones apply to
// all streams from then on, and while they are invalid the former ones apply.
// It is safe for concurrent use.
type Certificates struct{ store *certs.Store }

// LoadCertificates reads the files, and sets their Own and What: peers use a
// certificate at both ends. The error names the invalid file. The logger
// receives later faults and changes.
func LoadCertificates(f certs.Files, log *slog.Logger) (*Certificates, error) {
	f.What, f.Own = "certificates of peers", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	store, err := certs.Load(f, log)
	if err != nil {
		return nil, err
	}
	return &Certificates{store: store}, nil
}

// Names returns the daemons that the certificate names. With any, all peers
// need a certificate with their name.
func (c *Certificates) Names() []certs.Name { return c.store.Current().Names }

// Server returns the configuration of the accepting end.
func (c *Certificates) Server() *tls.Config {
	config := common()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		set := c.store.Reload()
		now := common()
		now.NextProtos = append(now.NextProtos, priorityProto)
		now.Certificates = []tls.Certificate{set.Cert}
		now.ClientAuth = tls.RequireAndVerifyClientCert
		now.ClientCAs = set.CA
		return now, nil
	}
	return config
}

// Client returns the configuration of the dialing end.
func (c *Certificates) Client() *tls.Config {
	config := common()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &c.store.Reload().Cert, nil
	}
	// This disables the verification of host names and of the chain; the chain
	// is verified below. Addresses of daemons come from the membership and
	// change, so that no certificate can name them.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if _, err := c.store.Reload().Verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth, time.Now()); err != nil {
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
