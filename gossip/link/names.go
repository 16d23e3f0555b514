package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/certs"
)

// proof is what a handshake proves of a peer. The zero value proves nothing. It
// is immutable once the handshake is done.
type proof struct {
	secrets Fingerprints // the fingerprints of the secrets that it has
	// By TLS:

	chain []*x509.Certificate // its certificate first
	names []certs.Name        // of the daemons that the certificate names
	fault error               // of the names
}

// proofOf returns the proof of the connection of a call.
func proofOf(info credentials.AuthInfo) proof {
	if t, ok := info.(credentials.TLSInfo); ok {
		return proofOfTLS(t.State)
	}
	return proof{}
}

func proofOfTLS(s tls.ConnectionState) proof {
	p := proof{chain: s.PeerCertificates}
	if len(p.chain) > 0 {
		p.names, p.fault = certs.NamesOf(p.chain[0])
	}
	return p
}

// sourcesEach bounds the sources of peers without names on one machine.
const sourcesEach = 8

// source returns the name of a peer for limits of log lines: that in its
// certificate, or else its machine with one of a few numbers for the name that
// it claims. So other claims do not make more lines.
func (p *proof) source(remote, claimed string) string {
	if len(p.names) > 0 {
		return p.names[0].String()
	}
	h := fnv.New32a()
	h.Write([]byte(claimed))
	return hostOf(remote) + " " + strconv.Itoa(int(h.Sum32()%sourcesEach))
}

// named reports whether a daemon requires names of its peers: its own
// certificate has one.
func (h *Host) named() bool {
	return h.config.Certificates != nil && len(h.config.Certificates.store.Current().Names) > 0
}

// identify returns nil if a peer is the daemon of its hello, as far as its
// certificate proves one. A certificate with names proves these only, so its
// hello must have one of them, even where the own certificate has none.
func (h *Host) identify(own Hello, theirs Hello, p *proof) *Refused {
	no := func(reason, format string, args ...any) *Refused {
		return &Refused{
			Reason: reason, peer: theirs.String(),
			Text: fmt.Sprintf("%s refuses %s: ", own, theirs) + fmt.Sprintf(format, args...),
		}
	}
	m := &theirs.Member
	name := certs.Name{Region: m.Region, Daemon: m.Name}
	switch {
	case p.fault != nil:
		return no(ReasonIdentity, "its certificate: %v", p.fault)
	case len(p.names) == 0 && !h.named():
		return nil
	}
	if err := certs.Require(p.names, name); err != nil {
		return no(ReasonIdentity, "%v (%s): give it a certificate of its own", err, name.URI())
	}
	if !gossip.IncarnationOf(m.ID, m.Region, m.Name) {
		return no(ReasonIdentity, "its incarnation %s is of a daemon with another name: run the same rld on both", m.ID)
	}
	if h.config.RegionOf != nil {
		if region := h.config.RegionOf(theirs.Daemon); region != "" && region != m.Region {
			return no(ReasonIdentity, "its id %s is of a daemon in region %q: reset the state of one of both", theirs.Daemon, region)
		}
	}
	if h.config.Revoked != nil && h.config.Revoked(name) {
		return no(ReasonRevoked, "%s is revoked: give its successor another name, or run rld daemon unrevoke %s", name, name)
	}
	return nil
}

// recheckEvery is the time between two calls of Recheck by the Host itself: a
// peer that is not trusted any more loses its streams after that.
const recheckEvery = 30 * time.Second

// recheck calls Recheck until the Host is closed.
func (h *Host) recheck() {
	t := time.NewTicker(recheckEvery)
	defer t.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-t.C:
			h.Recheck()
		}
	}
}

// Recheck reads the files of Config.Certificates and verifies the peers of all
// streams again. It ends the streams of those whose certificate has expired or
// is not signed by the authorities any more, that are not the daemon of their
// hello or that are revoked. The Host calls it every 30 s. It does not wait for
// the ends.
func (h *Host) Recheck() {
	if h.config.Certificates == nil {
		return
	}
	h.config.Certificates.store.Reload()
	own, now := h.config.Self(), time.Now()
	for _, s := range h.trusted() { // verifying takes long, so not under the lock
		if no := h.doubt(own, &s, now); no != nil {
			s.end(no)
		}
	}
	h.warnExpiry(now)
}

// trusted is a stream that is up.
type trusted struct {
	hello Hello
	proof proof
	use   x509.ExtKeyUsage
	end   context.CancelCauseFunc
}

// trusted returns all streams that are up.
func (h *Host) trusted() []trusted {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]trusted, 0, len(h.accepted)+len(h.targets))
	for a := range h.accepted {
		all = append(all, trusted{a.hello, a.proof, x509.ExtKeyUsageClientAuth, a.end})
	}
	for _, t := range h.targets {
		t.mu.Lock()
		if t.out != nil {
			all = append(all, trusted{t.out.hello, t.out.proof, x509.ExtKeyUsageServerAuth, t.cancel})
		}
		t.mu.Unlock()
	}
	return all
}

// doubt returns the refusal of a peer with a stream, nil if it is still
// trusted.
func (h *Host) doubt(own Hello, s *trusted, now time.Time) *Refused {
	if _, err := h.config.Certificates.store.Current().Verify(s.proof.chain, s.use, now); err != nil {
		return &Refused{
			Reason: ReasonTLS, peer: s.hello.String(),
			Text: fmt.Sprintf("%s ends the stream of %s: failed to verify certificate: %v", own, s.hello, err),
		}
	}
	return h.identify(own, s.hello, &s.proof)
}
