package callers

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/loglimit"
	"github.com/georld/rld/telemetry"
)

// listener is a listener with TLS.
type listener struct {
	name  string
	store *certs.Store
	ca    bool   // certificates of callers are verified
	san   string // which they must have, "" for any
	// tokens is true when a caller without a certificate may have a token.
	tokens bool

	failed [failures]atomic.Uint64
	lines  loglimit.Limiter
	log    *slog.Logger
}

// newListener reads the files of a listener. It returns nil without TLS.
func newListener(name string, t config.ServerTLS, tokens bool, log *slog.Logger) (*listener, error) {
	if !t.On() {
		return nil, nil
	}
	warnings, err := t.Check(name+".tls", time.Now())
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	store, err := certs.Load(certs.Files{
		Cert: t.CertFile, Key: t.KeyFile, CA: t.ClientCAFile, What: "certificates of the " + name + " listener",
	}, log)
	if err != nil {
		return nil, fmt.Errorf("%s.tls: %w", name, err)
	}
	return &listener{name: name, store: store, ca: t.ClientCAFile != "", san: t.ClientSAN, tokens: tokens, log: log}, nil
}

// config returns the configuration of the listener. Each handshake has the
// certificates in force. There are no session tickets: connections are long,
// and a resumed session would outlive a change of the authorities.
func (l *listener) config(protocols ...string) *tls.Config {
	common := tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, SessionTicketsDisabled: true}
	out := common.Clone()
	out.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		set := l.store.Current()
		now := common.Clone()
		now.Certificates = []tls.Certificate{set.Cert}
		if l.ca {
			now.ClientCAs, now.ClientAuth = set.CA, tls.RequireAndVerifyClientCert
			if l.tokens {
				now.ClientAuth = tls.VerifyClientCertIfGiven
			}
		}
		now.VerifyConnection = l.verifyName
		return now, nil
	}
	return out
}

// verifyName requires the configured name in a verified certificate.
func (l *listener) verifyName(s tls.ConnectionState) error {
	if l.san == "" || len(s.VerifiedChains) == 0 {
		return nil
	}
	if !named(s.PeerCertificates[0], l.san) {
		return errWrongName
	}
	return nil
}

var errWrongName = errors.New("the client certificate does not have the required name (client_san)")

// named reports whether a certificate has a DNS name or a URI.
func named(c *x509.Certificate, name string) bool {
	for _, u := range c.URIs {
		if u.String() == name {
			return true
		}
	}
	return c.VerifyHostname(name) == nil
}

// failure is why a handshake failed.
type failure uint8

const (
	plainText failure = iota
	clientCertificate
	otherFailure
	failures
)

// String returns the label of metrics.
func (f failure) String() string {
	return [...]string{"plain_text", "client_certificate", "other"}[f]
}

// failureOf classifies the error of a handshake. The HTTP server returns its
// text only.
func failureOf(problem string) failure {
	switch {
	case strings.Contains(problem, "does not look like a TLS handshake"), strings.Contains(problem, "HTTP request to an HTTPS server"):
		return plainText
	case strings.Contains(problem, "verify certificate"), strings.Contains(problem, "client didn't provide a certificate"),
		strings.Contains(problem, errWrongName.Error()):
		return clientCertificate
	}
	return otherFailure
}

// fail counts a failed handshake, and logs the first of its kind in a minute.
func (l *listener) fail(from, problem string) {
	f := failureOf(problem)
	l.failed[f].Add(1)
	if l.lines.Due(f.String(), time.Now(), time.Minute) {
		l.log.Warn("a TLS handshake failed; further ones are only counted for a minute",
			"event", "tls", "listener", l.name, "reason", f.String(), "from", from, "error", problem)
	}
}

func (l *listener) failures() []telemetry.Failure {
	out := make([]telemetry.Failure, failures)
	for f := range failures {
		out[f] = telemetry.Failure{Reason: f.String(), Count: l.failed[f].Load()}
	}
	return out
}

// grpcCredentials are those of TLS, but for unix sockets.
type grpcCredentials struct {
	credentials.TransportCredentials
	listener *listener
}

// ServerHandshake accepts a connection.
func (g grpcCredentials) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if c.LocalAddr().Network() == "unix" {
		return insecure.NewCredentials().ServerHandshake(c)
	}
	conn, info, err := g.TransportCredentials.ServerHandshake(c)
	if err != nil {
		g.listener.fail(c.RemoteAddr().String(), err.Error())
	}
	return conn, info, err
}

// Clone returns a copy.
func (g grpcCredentials) Clone() credentials.TransportCredentials {
	return grpcCredentials{g.TransportCredentials.Clone(), g.listener}
}

// serverLog takes the lines of an HTTP server's errors.
type serverLog struct {
	listener *listener // nil for plain text
	log      *slog.Logger
}

// Write takes one line.
func (s *serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok && s.listener != nil {
		from, problem, _ := strings.Cut(rest, ": ")
		s.listener.fail(from, problem)
	} else {
		s.log.Warn(text)
	}
	return len(line), nil
}
