package link

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"net"
	"slices"
)

// Fingerprints are those of the secrets of a cluster: of one, or of the current
// and the next one.
type Fingerprints []Fingerprint

// Fingerprint is derived from a secret.
type Fingerprint [fingerprintSize]byte

// proven returns the fingerprints of the secrets that a greeting proves.
func (f Fingerprints) proven(g *greeting) Fingerprints {
	return slices.DeleteFunc(slices.Clone(f), func(secret Fingerprint) bool {
		own := SecretProof(secret[:], g.nonce, g.public, g.hello.Run[:])
		return !slices.ContainsFunc(g.proofs, func(proof []byte) bool { return hmac.Equal(proof, own) })
	})
}

// SecretProof returns the proof in a hello that its sender has the cluster
// secret: a MAC of the nonce, the key and the run of the hello, with the
// fingerprint of the secret as its key. It differs between streams, so a
// recording does not reveal that two streams are of one cluster. A daemon with
// another key cannot use it: it would have to sign with the recorded key.
func SecretProof(fingerprint, nonce, public, run []byte) []byte {
	mac := hmac.New(sha256.New, fingerprint)
	for _, part := range [][]byte{nonce, public, run} {
		mac.Write(part) // of fixed sizes
	}
	return mac.Sum(nil)[:fingerprintSize]
}

// maxProving bounds the handshakes that one Lacking begins.
const maxProving = 32

// Lacking returns the peers with a stream that have not proved a secret, as
// region/name in order. It begins another handshake with them, which ends
// nothing: a later call knows what they prove then. It does not wait.
func (h *Host) Lacking(secret Fingerprint) (peers []string) {
	has := make(map[string]bool) // by peer
	note := func(hello Hello, all ...Fingerprints) {
		name := hello.Member.Region + "/" + hello.Member.Name
		has[name] = has[name] || slices.Contains(slices.Concat(all...), secret)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	for a := range h.accepted {
		note(a.hello, a.proof.secrets)
	}
	begun := 0
	for _, t := range h.targets {
		t.mu.Lock()
		if out := t.out; out != nil {
			note(out.hello, out.proof.secrets, t.proven)
			again := !slices.Contains(slices.Concat(out.proof.secrets, t.proven), secret)
			if again && !t.proving && begun < maxProving {
				t.proving = true
				begun++
				h.wg.Go(func() { t.proveAgain(out) })
			}
		}
		t.mu.Unlock()
	}
	for name, ok := range has {
		if !ok {
			peers = append(peers, name)
		}
	}
	slices.Sort(peers)
	return peers
}

// proveAgain notes what the peer of a stream proves in another handshake, on a
// connection of its own.
func (t *target) proveAgain(out *outbox) {
	ctx, cancel := context.WithTimeout(t.ctx, handshakeWithin)
	defer cancel()
	proven := Fingerprints(nil)
	line := &line{addr: t.Addr, dial: func(ctx context.Context) (net.Conn, error) { return t.host.config.Dial(ctx, t.Addr) }}
	if conn, err := t.connect(line); err == nil {
		_, hello, proof, err := t.handshake(ctx, conn)
		if err == nil && hello.Daemon == out.hello.Daemon && hello.Run == out.hello.Run {
			proven = proof.secrets
		}
		line.hangUp()
		_ = conn.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proven, t.proving = proven, false
}
