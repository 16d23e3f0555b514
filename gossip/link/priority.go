package link

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
)

// A priority stream is a second connection beside a bulk stream, for short
// frames with a call waiting for them. The sender writes to the connection and
// the receiver reads from it directly, without the queues and goroutines of
// gRPC, each of which costs about as much as a round trip within a region.
// Other frames use the bulk stream. A priority stream ends with its bulk stream
// and connects daemons of one region only.

const (
	// priorityProto is the ALPN protocol of a priority stream with TLS.
	// priorityMagic begins a plain one: gRPC begins with "PRI".
	priorityProto = "rld-priority/1"
	priorityMagic = "RLD1"
	// maxPriorityFrame bounds a frame on a priority stream, in bytes.
	maxPriorityFrame = 16 << 10
	// priorityWriteTimeout bounds the time to write a frame. A slower peer
	// loses its priority stream. The deadline is moved once half of it is over:
	// moving it wakes the poller, which costs more than the write.
	priorityWriteTimeout = 100 * time.Millisecond
	// priorityRetry is the time between two attempts to connect.
	priorityRetry = 2 * time.Second
)

// priority is the sending end of a priority stream.
type priority struct {
	mu    sync.Mutex
	conn  net.Conn // nil when there is none
	until time.Time
	buf   []byte
}

// send writes a frame and reports whether it succeeded.
func (l *priority) send(frame []byte) bool {
	if len(frame) == 0 || len(frame) > maxPriorityFrame {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return false
	}
	l.buf = appendPriorityFrame(l.buf[:0], frame)
	var err error
	if now := time.Now(); l.until.Sub(now) < priorityWriteTimeout/2 {
		l.until = now.Add(priorityWriteTimeout)
		err = l.conn.SetWriteDeadline(l.until)
	}
	if err == nil {
		_, err = l.conn.Write(l.buf)
	}
	if err != nil {
		l.conn.Close() // keepPriority notices it
		l.conn = nil
	}
	return err == nil
}

func (l *priority) use(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.until = conn, time.Time{}
}

// SendNow is Send for a frame with a call waiting for it. It may block for as
// long as a write to the socket does.
func (h *Host) SendNow(to crdt.Incarnation, frame []byte) bool {
	out := h.routeTo(to)
	if out == nil {
		return false
	}
	if out.priority.send(frame) {
		out.target.counts.sent.add(len(frame))
		h.counts.sent.add(len(frame))
		return true
	}
	return out.send(frame)
}

// keepPriority maintains a priority stream beside a bulk stream until ctx is
// done.
func (t *target) keepPriority(ctx context.Context, out *outbox) {
	if t.WAN || !t.host.usePriority {
		return
	}
	for ctx.Err() == nil {
		if conn, err := t.dialPriority(ctx, out.hello); err == nil {
			out.priority.use(conn)
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1)) // the peer sends nothing: this returns when the connection ends
			stop()
			out.priority.use(nil)
			conn.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(priorityRetry):
		}
	}
}

// dialPriority connects, and exchanges hellos and proofs.
func (t *target) dialPriority(ctx context.Context, to Hello) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	raw, err := t.host.config.Dial(ctx, t.Addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	conn, err := t.greetPriority(ctx, raw, to)
	if err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

func (t *target) greetPriority(ctx context.Context, raw net.Conn, to Hello) (net.Conn, error) {
	conn, first := raw, []byte(priorityMagic)
	if c := t.host.config.Client; c != nil {
		c = c.Clone()
		c.NextProtos = []string{priorityProto}
		secure := tls.Client(raw, c)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn, first = secure, nil
	}
	own, err := t.host.greet()
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(appendPriorityFrame(first, own.body)); err != nil {
		return nil, err
	}
	s := handshake{dialer: own.body}
	var proven proof
	if secure, ok := conn.(*tls.Conn); ok {
		if err := s.bind(secure.ConnectionState()); err != nil {
			return nil, err
		}
		proven = proofOfTLS(secure.ConnectionState())
	}
	if s.acceptor, err = readPriorityFrame(conn, nil, maxHello); err != nil {
		return nil, err
	}
	theirs, err := decodeGreeting(s.acceptor)
	if err != nil {
		return nil, err
	}
	if no := t.host.identify(own.Hello, theirs.hello, &proven); no != nil {
		return nil, no
	}
	signed, err := readPriorityFrame(conn, nil, maxHello)
	if err != nil {
		return nil, err
	}
	if err := s.check(&theirs, acceptingPriority, signed); err != nil {
		return nil, err
	}
	if theirs.hello.Member.ID != to.Member.ID {
		return nil, fmt.Errorf("another incarnation answers at %s", t.Addr)
	}
	if err := same(to, theirs.hello); err != nil {
		return nil, err
	}
	_, err = conn.Write(appendPriorityFrame(nil, s.prove(own.key, dialingPriority)))
	return conn, err
}

// appendPriorityFrame appends a frame and its length.
func appendPriorityFrame(b, frame []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(frame))), frame...)
}

// acceptPriority serves an accepted connection as a priority stream. The error
// makes gRPC leave the connection alone.
func (d *peerCredentials) acceptPriority(conn net.Conn, info credentials.AuthInfo) error {
	h := d.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	h.wg.Go(func() {
		defer conn.Close()
		stop := context.AfterFunc(h.ctx, func() { conn.Close() })
		defer stop()
		if err := h.servePriority(conn, info); err != nil {
			h.counts.faulty.Add(1)
		}
	})
	return credentials.ErrConnDispatched
}

// servePriority passes the frames of a priority stream to the handler. The bulk
// stream of the same incarnation must exist. A protocol error ends both.
func (h *Host) servePriority(conn net.Conn, info credentials.AuthInfo) error {
	if err := conn.SetDeadline(time.Now().Add(acceptWithin)); err != nil {
		return err
	}
	body, err := readPriorityFrame(conn, nil, maxHello)
	if err != nil {
		return err
	}
	theirs, err := decodeGreeting(body)
	own, failed := h.greet()
	if failed != nil {
		return failed
	}
	proven := proofOf(info)
	no := refuse(own.Hello, own.secrets, &theirs, err, conn.RemoteAddr().String(), "")
	if no == nil {
		no = h.identify(own.Hello, theirs.hello, &proven)
	}
	if no != nil {
		h.countRefused(no, conn.RemoteAddr().String(), &proven)
		return no
	}
	a := h.streamOf(theirs.hello)
	if a == nil {
		return errors.New("a priority stream without a bulk stream")
	}
	stop := context.AfterFunc(a.ctx, func() { conn.Close() })
	defer stop()
	s := handshake{dialer: body, acceptor: own.body}
	if err := s.bindAuth(info); err != nil {
		return err
	}
	if err := s.priority(conn, own.key, &theirs, a.hello); err != nil {
		if _, bad := errors.AsType[*ProtocolError](err); bad {
			h.counts.protocolErrors.add(ReasonIdentity)
			h.warn("priority stream dropped for a protocol error", hostOf(conn.RemoteAddr().String()), ReasonIdentity, "error", err)
		}
		return err
	}
	if !established(conn.RemoteAddr()) {
		return errors.New("no room for another connection")
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return a.receivePriority(conn)
}

// priority exchanges proofs at the accepting end of a priority stream. The
// dialer must be that of the bulk stream. A false proof does not end the bulk
// stream: anybody may have sent it.
func (s *handshake) priority(conn net.Conn, key *control.Key, theirs *greeting, bulk Hello) error {
	if _, err := conn.Write(appendPriorityFrame(appendPriorityFrame(nil, s.acceptor), s.prove(key, acceptingPriority))); err != nil {
		return err
	}
	signed, err := readPriorityFrame(conn, nil, maxHello)
	if err != nil {
		return err
	}
	if err := s.check(theirs, dialingPriority, signed); err != nil {
		return err
	}
	return same(bulk, theirs.hello)
}

func (a *accepted) receivePriority(conn net.Conn) error {
	limit := newLimiter(time.Now())
	in := make([]byte, 0, 1<<10)
	r := bufio.NewReader(conn) // one read returns all bytes at hand
	for {
		frame, err := readPriorityFrame(r, in, maxPriorityFrame)
		if err != nil {
			return nil // the connection has ended
		}
		in = frame[:0]
		a.received(len(frame))
		if err = limit.frame(len(frame), time.Now()); err == nil {
			err = a.handle(frame)
		}
		if err != nil {
			a.end(err)
			return err
		}
	}
}

// streamOf returns an accepted stream of an incarnation, nil for none: that of
// the same id if another daemon claims the incarnation, too.
func (h *Host) streamOf(of Hello) (found *accepted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.accepted {
		if a.hello.Member.ID == of.Member.ID && (found == nil || a.hello.Daemon == of.Daemon) {
			found = a
		}
	}
	return found
}

// readPriorityFrame reads a frame into buf if it fits, else into new memory.
func readPriorityFrame(r io.Reader, buf []byte, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n <= 0 || n > most {
		return nil, fmt.Errorf("frame of %d bytes on a priority stream, want 1 to %d", n, most)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(r, buf)
	return buf, err
}

// prefixedConn is a connection whose first bytes are in a buffer.
type prefixedConn struct {
	net.Conn
	in *bufio.Reader
}

// Read returns the first bytes once, and then the rest.
func (c *prefixedConn) Read(b []byte) (int, error) { return c.in.Read(b) }

// detectPriority reports whether a plain connection is a priority stream. Its
// frames, or else the bytes for gRPC, are read from the returned connection.
func detectPriority(raw net.Conn) (net.Conn, bool) {
	// The smallest buffer: larger reads bypass it once it is empty.
	conn := &prefixedConn{Conn: raw, in: bufio.NewReaderSize(raw, 0)}
	if b, err := conn.in.Peek(1); err != nil || b[0] != priorityMagic[0] {
		return conn, false // gRPC will get the same error
	}
	if b, err := conn.in.Peek(len(priorityMagic)); err != nil || string(b) != priorityMagic {
		return conn, false
	}
	_, err := conn.in.Discard(len(priorityMagic))
	return conn, err == nil
}
