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

// door is the TLS of one end, or none, and says clearly when the other end
// does it differently: gRPC itself keeps silent, or speaks of frames.
type door struct {
	credentials.TransportCredentials
	plain bool
	host  *Host // that takes lanes; nil at the dialing end
	// refuse is told of each connection that does not get through.
	refuse func(conn net.Conn, r *Refused)
	// silent is told of a dialed connection that was closed without a word;
	// nil at the accepting end.
	silent func(what string, err error)
}

// serverDoor is for accepted connections.
func serverDoor(h *Host) credentials.TransportCredentials {
	d := newDoor(h.config.Server, func(conn net.Conn, r *Refused) {
		r.Text = fmt.Sprintf("%s refuses %s: %s", h.config.Self(), conn.RemoteAddr(), r.Text)
		h.refusedPeer(r, conn.RemoteAddr().String())
	})
	d.host = h
	return d
}

// clientDoor is for dialed ones.
func clientDoor(c *tls.Config, l *line) credentials.TransportCredentials {
	d := newDoor(c, func(_ net.Conn, r *Refused) {
		r.Text = l.addr + ": " + r.Text
		l.blame(r)
	})
	d.silent = func(what string, err error) {
		l.blame(fmt.Errorf("%s hung up (%w): %s", l.addr, err, what))
	}
	return d
}

func newDoor(c *tls.Config, refuse func(net.Conn, *Refused)) *door {
	if c == nil {
		return &door{TransportCredentials: insecure.NewCredentials(), plain: true, refuse: refuse}
	}
	return &door{TransportCredentials: credentials.NewTLS(c), refuse: refuse}
}

// Clone returns a copy.
func (d *door) Clone() credentials.TransportCredentials {
	c := *d
	c.TransportCredentials = d.TransportCredentials.Clone()
	return &c
}

// ServerHandshake is the acceptor's part.
func (d *door) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if d.plain && d.host != nil {
		var priority bool
		if raw, priority = opensPriority(raw); priority {
			return nil, nil, d.takePriority(raw)
		}
	}
	conn, info, err := d.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		d.fail(raw, err)
		return nil, nil, err
	}
	if t, ok := info.(credentials.TLSInfo); ok && d.host != nil && t.State.NegotiatedProtocol == priorityProto {
		return nil, nil, d.takePriority(conn)
	}
	return &firstRead{Conn: conn, door: d}, info, nil
}

// ClientHandshake is the dialer's part.
func (d *door) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := d.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		d.fail(raw, err)
		return nil, nil, err
	}
	return &firstRead{Conn: conn, door: d}, info, nil
}

// fail tells of a failed handshake. One that just comes and goes, as health
// checks of load balancers do, is nothing to tell of.
func (d *door) fail(conn net.Conn, err error) {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		d.refuse(conn, &Refused{Reason: ReasonTLS,
			Text: "it does not speak TLS, and this daemon does: give all daemons peer.tls"})
	case isGone(err) && d.silent != nil:
		d.silent("its log says why it does not take this daemon's certificate", err)
	case d.plain, isGone(err):
	default:
		d.refuse(conn, &Refused{Reason: ReasonTLS, Text: "TLS: " + printable(err.Error())})
	}
}

func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// firstRead is a connection whose first bytes tell whether both ends agree on
// TLS.
type firstRead struct {
	net.Conn
	door *door
	seen atomic.Bool
}

// lastWordsWithin bounds how long a connection that broke is listened to.
const lastWordsWithin = 100 * time.Millisecond

// errSpeaksTLS is what a plain end reads from one with TLS.
var errSpeaksTLS = errors.New("it speaks TLS, and this daemon does not: give all daemons peer.tls")

// Read reads. A TLS alert or the first record of TLS cannot be mistaken for
// HTTP/2, which begins with "PRI" or with a short frame of settings.
func (c *firstRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.seen.Load() || (n == 0 && err == nil) {
		return n, err
	}
	c.seen.Store(true)
	const alert, handshake, major = 0x15, 0x16, 0x03
	if c.door.plain && n >= 2 && (b[0] == alert || b[0] == handshake) && b[1] == major {
		c.door.refuse(c.Conn, &Refused{Reason: ReasonTLS, Text: errSpeaksTLS.Error()})
		return 0, errSpeaksTLS
	}
	if n == 0 && c.door.plain && c.door.silent != nil && !errors.Is(err, net.ErrClosed) {
		c.door.silent("if it speaks TLS, give this daemon peer.tls too", err)
	}
	var remote *net.OpError
	if errors.As(err, &remote) && remote.Op == "remote error" {
		// In TLS 1.3 a client learns only now that it was refused.
		c.door.refuse(c.Conn, &Refused{Reason: ReasonTLS, Text: "TLS: " + printable(err.Error()), There: true})
	}
	return n, err
}

// Write writes. When that fails before anything was read, the peer may have
// said why before it hung up.
func (c *firstRead) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && !c.seen.Load() && c.Conn.SetReadDeadline(time.Now().Add(lastWordsWithin)) == nil {
		_, _ = c.Read(make([]byte, 16))
	}
	return n, err
}
