package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// peerCredentials is the TLS of one end, or none. It reports clearly when the
// other end uses TLS differently, where gRPC itself reports nothing or a broken
// frame.
type peerCredentials struct {
	credentials.TransportCredentials
	plain bool
	host  *Host // accepts priority streams; nil at the dialing end
	// reject is called for each connection that is refused.
	reject func(conn net.Conn, r *Refused)
	// closed is called for a dialed connection that the peer closed without an
	// answer; nil at the accepting end.
	closed func(what string, err error)
}

// serverCredentials returns the credentials of accepted connections.
func serverCredentials(h *Host) credentials.TransportCredentials {
	d := newCredentials(h.config.Server, func(conn net.Conn, r *Refused) {
		r.Text = fmt.Sprintf("%s refuses %s: %s", h.config.Self(), conn.RemoteAddr(), r.Text)
		h.countRefused(r, conn.RemoteAddr().String(), &proof{})
	})
	d.host = h
	return d
}

// clientCredentials returns the credentials of dialed connections.
func clientCredentials(c *tls.Config, l *line) credentials.TransportCredentials {
	d := newCredentials(c, func(_ net.Conn, r *Refused) {
		r.Text = l.addr + ": " + r.Text
		l.setFault(r)
	})
	d.closed = func(what string, err error) {
		l.setFault(fmt.Errorf("%s hung up (%w): %s", l.addr, err, what))
	}
	return d
}

func newCredentials(c *tls.Config, refuse func(net.Conn, *Refused)) *peerCredentials {
	if c == nil {
		return &peerCredentials{TransportCredentials: insecure.NewCredentials(), plain: true, reject: refuse}
	}
	return &peerCredentials{TransportCredentials: credentials.NewTLS(c), reject: refuse}
}

// Clone returns a copy.
func (d *peerCredentials) Clone() credentials.TransportCredentials {
	c := *d
	c.TransportCredentials = d.TransportCredentials.Clone()
	return &c
}

// ServerHandshake performs the handshake of the accepting end.
func (d *peerCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if d.plain && d.host != nil {
		var priority bool
		if raw, priority = detectPriority(raw); priority {
			return nil, nil, d.acceptPriority(raw, nil)
		}
	}
	conn, info, err := d.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		d.fail(raw, err)
		return nil, nil, err
	}
	if t, ok := info.(credentials.TLSInfo); ok && d.host != nil && t.State.NegotiatedProtocol == priorityProto {
		return nil, nil, d.acceptPriority(conn, info)
	}
	return &firstRead{Conn: conn, credentials: d}, info, nil
}

// ClientHandshake performs the handshake of the dialing end.
func (d *peerCredentials) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := d.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		d.fail(raw, err)
		return nil, nil, err
	}
	return &firstRead{Conn: conn, credentials: d}, info, nil
}

// fail reports a failed handshake. A connection that only opens and closes, as
// those of health checks do, is not reported.
func (d *peerCredentials) fail(conn net.Conn, err error) {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		d.reject(conn, &Refused{
			Reason: ReasonTLS,
			Text:   "it does not speak TLS, and this daemon does: give all daemons peer.tls",
		})
	case isGone(err) && d.closed != nil:
		d.closed("its log says why it does not take this daemon's certificate", err)
	case d.plain, isGone(err):
	default:
		d.reject(conn, &Refused{Reason: ReasonTLS, Text: "TLS: " + printable(err.Error())})
	}
}

func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// firstRead is a connection whose first bytes show whether both ends agree on
// TLS.
type firstRead struct {
	net.Conn
	credentials *peerCredentials
	seen        atomic.Bool
}

// lastReadTimeout bounds a read from a connection whose write failed.
const lastReadTimeout = 100 * time.Millisecond

// errSpeaksTLS is the error of reading from a peer with TLS at a plain end.
var errSpeaksTLS = errors.New("it speaks TLS, and this daemon does not: give all daemons peer.tls")

// Read implements io.Reader. A TLS alert or the first record of TLS differs
// from HTTP/2, which begins with "PRI" or with a short settings frame.
func (c *firstRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.seen.Load() || (n == 0 && err == nil) {
		return n, err
	}
	c.seen.Store(true)
	const alert, handshake, major = 0x15, 0x16, 0x03
	if c.credentials.plain && n >= 2 && (b[0] == alert || b[0] == handshake) && b[1] == major {
		c.credentials.reject(c.Conn, &Refused{Reason: ReasonTLS, Text: errSpeaksTLS.Error()})
		return 0, errSpeaksTLS
	}
	if n == 0 && c.credentials.plain && c.credentials.closed != nil && !errors.Is(err, net.ErrClosed) {
		c.credentials.closed("if it speaks TLS, give this daemon peer.tls too", err)
	}
	if remote, ok := errors.AsType[*net.OpError](err); ok && remote.Op == "remote error" {
		// In TLS 1.3 a client learns only now that it was rejected.
		c.credentials.reject(c.Conn, &Refused{Reason: ReasonTLS, Text: "TLS: " + printable(err.Error()), ByPeer: true})
	}
	return n, err
}

// Write implements io.Writer. When it fails before the first read, the peer may
// have sent a reason before it closed the connection.
func (c *firstRead) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && !c.seen.Load() && c.Conn.SetReadDeadline(time.Now().Add(lastReadTimeout)) == nil {
		_, _ = c.Read(make([]byte, 16))
	}
	return n, err
}
