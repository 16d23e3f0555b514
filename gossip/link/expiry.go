package link

import (
	"crypto/x509"
	"time"

	"github.com/georld/rld/internal/certs"
)

// warnWithin is how long before the end of a certificate it is logged, at most
// a third of the time for which it is valid.
const warnWithin = 14 * 24 * time.Hour

// noticeDaily is the time between two warnings of one certificate.
const noticeDaily = 24 * time.Hour

// Certified describes the certificates of a daemon and its peers.
type Certified struct {
	// On is false for plain streams.
	On bool
	// Names are the daemons that the own certificate names. Without any, every
	// peer with a certificate of the authorities may use any name.
	Names []certs.Name
	// NotAfter is when the own certificate stops being valid. Soon reports that
	// it should have been renewed.
	NotAfter time.Time
	Soon     bool
	// PeerNotAfter is when the first certificate of a connected peer expires,
	// and Peer that one's daemon; zero without any.
	PeerNotAfter time.Time
	Peer         string
	// Fault is why changed files are not in force, "" if they are.
	Fault string
}

func (h *Host) certified() Certified {
	if h.config.Certificates == nil {
		return Certified{}
	}
	set := h.config.Certificates.store.Current()
	out := Certified{
		On: true, Names: set.Names, NotAfter: set.NotAfter,
		Soon: soon(set.Cert.Leaf.NotBefore, set.NotAfter, time.Now()),
	}
	if err := h.config.Certificates.store.Fault(); err != nil {
		out.Fault = err.Error()
	}
	for _, s := range h.trusted() {
		if c := s.proof.leaf(); c != nil && (out.Peer == "" || c.NotAfter.Before(out.PeerNotAfter)) {
			out.Peer, out.PeerNotAfter = s.hello.Member.Region+"/"+s.hello.Member.Name, c.NotAfter
		}
	}
	return out
}

// leaf returns the certificate of a peer, nil for none.
func (p *proof) leaf() *x509.Certificate {
	if len(p.chain) == 0 {
		return nil
	}
	return p.chain[0]
}

// soon reports whether a certificate should be renewed.
func soon(notBefore, notAfter, now time.Time) bool {
	return notAfter.Sub(now) < min(warnWithin, notAfter.Sub(notBefore)/3)
}

// warnExpiry logs the own certificate and those of peers that expire soon, each
// once a day.
func (h *Host) warnExpiry(now time.Time) {
	warn := func(what, peer, key string, notBefore, notAfter time.Time) {
		if soon(notBefore, notAfter, now) && h.notices.Due("expiry "+key, now, noticeDaily) {
			h.log.Warn(what, "peer", peer, "expires", notAfter.UTC().Format(time.RFC3339), "left", notAfter.Sub(now).Round(time.Minute))
		}
	}
	set := h.config.Certificates.store.Current()
	warn("the certificate of this daemon expires soon: renew it, or its peers end their streams then",
		h.config.Self().String(), "own", set.Cert.Leaf.NotBefore, set.NotAfter)
	for _, s := range h.trusted() {
		if c := s.proof.leaf(); c != nil {
			warn("the certificate of a peer expires soon: renew it there, or its streams end then",
				s.hello.String(), s.proof.source(s.hello.Member.Addr, s.hello.Member.Name), c.NotBefore, c.NotAfter)
		}
	}
}
