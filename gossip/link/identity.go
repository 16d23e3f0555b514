package link

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/control"
)

// nonceSize is the size of the random number in a hello, in bytes. With it, a
// proof is valid for one handshake.
const nonceSize = 32

// exporterUse names the value that is exported from a TLS connection for its
// proofs. With it, a proof is valid on one connection: nobody can relay it.
const exporterUse = "EXPORTER-rld-stream"

// role is the end of a stream that makes a proof.
type role string

// The ends of bulk streams and of priority streams.
const (
	dialing           role = "dialer"
	accepting         role = "acceptor"
	dialingPriority   role = "priority dialer"
	acceptingPriority role = "priority acceptor"
)

// ErrRenewed ends the streams of a daemon that goes on under another id.
var ErrRenewed = errors.New("this daemon goes on under another id")

// inMemory returns an identity that ends with the process.
func inMemory() func() control.Identity {
	seed, err := control.NewSeed(rand.Reader)
	if err != nil {
		panic(fmt.Sprintf("link: no secure randomness: %v", err)) // crypto/rand does not fail
	}
	only := control.Identity{Key: seed.Key(0), Run: seed.Run()}
	return func() control.Identity { return only }
}

// handshake is what both ends of a stream sign: their hellos, of which each has
// a nonce, and the TLS connection.
type handshake struct {
	dialer, acceptor []byte // the hellos
	binding          []byte // of the TLS connection, nil without TLS
}

// bind binds the handshake to a TLS connection.
func (s *handshake) bind(c tls.ConnectionState) error {
	var err error
	if s.binding, err = c.ExportKeyingMaterial(exporterUse, nil, nonceSize); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	return nil
}

// bindAuth binds the handshake to the connection of a call.
func (s *handshake) bindAuth(info credentials.AuthInfo) error {
	if t, ok := info.(credentials.TLSInfo); ok {
		return s.bind(t.State)
	}
	return nil
}

// message returns the bytes that an end signs.
func (s *handshake) message(of role) []byte {
	var b []byte
	for _, part := range [][]byte{[]byte(of), s.binding, s.dialer, s.acceptor} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	return b
}

// prove returns the proof of an end.
func (s *handshake) prove(k *control.Key, of role) []byte {
	return k.Sign(control.ForStream, s.message(of)).Value
}

// check returns a *ProtocolError unless the peer has the key of its hello.
func (s *handshake) check(g *greeting, of role, proof []byte) error {
	signature := control.Signature{Public: g.public, Value: proof}
	if err := control.Verify(g.hello.Daemon, control.ForStream, s.message(of), signature); err != nil {
		return protocolError(ReasonIdentity, "%s does not prove its id: %w", g.hello, err)
	}
	return nil
}

// checkItem checks the proof in an item.
func (s *handshake) checkItem(g *greeting, of role, it *item) error {
	if it.fault != nil || it.kind != kindProof {
		return protocolError(ReasonIdentity, "%s sends a %s after its hello, want the proof of its id", g.hello, it.kind)
	}
	return s.check(g, of, it.body)
}

// same returns a *ProtocolError unless a priority stream has the id and the run
// of its bulk stream.
func same(bulk, priority Hello) error {
	if bulk.Daemon != priority.Daemon || bulk.Run != priority.Run {
		return protocolError(ReasonIdentity, "a priority stream of daemon %v in run %v beside a stream of %v in run %v",
			priority.Daemon, priority.Run, bulk.Daemon, bulk.Run)
	}
	return nil
}

// Renew ends all streams, so that peers get the present Config.Identity. No
// later Send uses a former stream. It does not wait.
func (h *Host) Renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.accepted {
		a.end(ErrRenewed)
	}
	for _, t := range h.targets {
		t.renew()
	}
}

// renew ends the present attempt. The next one follows at once.
func (t *target) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out != nil {
		t.host.dropRoute(t.out)
	}
	if t.cancel != nil {
		t.cancel(ErrRenewed)
	}
}
