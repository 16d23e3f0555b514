package link

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// peerStream is the dialer's end of a stream.
type peerStream = grpc.BidiStreamingClient[rldv1.PeerItem, rldv1.PeerItem]

// attempt dials the target once and holds the stream until it ends. It returns
// how long the stream was up and the reason why it ended.
func (t *target) attempt() (up time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	t.mu.Lock()
	t.cancel = cancel
	t.mu.Unlock()
	timer := time.AfterFunc(handshakeWithin, func() { cancel(errHandshake) })
	defer timer.Stop()

	line := &line{addr: t.Addr, dial: func(ctx context.Context) (net.Conn, error) { return t.host.config.Dial(ctx, t.Addr) }}
	conn, err := t.connect(line)
	if err != nil {
		return 0, err
	}
	// The connection below gRPC is closed first: a frozen peer would delay an
	// orderly end.
	defer conn.Close()
	defer line.hangUp()

	stream, hello, proven, err := t.handshake(ctx, conn)
	if err != nil {
		return 0, t.handshakeError(ctx, line, err)
	}
	if !timer.Stop() {
		return 0, errHandshake
	}
	start := time.Now()
	out := newOutbox(t, hello, proven)
	t.connected(out)
	t.host.wg.Go(func() { t.keepPriority(ctx, out) })
	err = t.hold(ctx, cancel, stream, out)
	t.disconnected(out, err)
	return time.Since(start), err
}

// connect returns a connection that is established on first use.
func (t *target) connect(line *line) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///peer",
		grpc.WithContextDialer(line.connect),
		grpc.WithTransportCredentials(clientCredentials(t.host.config.Client, line)),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithDisableHealthCheck(),
		grpc.WithIdleTimeout(0),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(2*streamWindow),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: grpcbackoff.DefaultConfig, MinConnectTimeout: handshakeWithin,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveAfter, Timeout: keepaliveWithin}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(maxItem)),
	)
}

// handshake opens the stream, and exchanges hellos and proofs.
func (t *target) handshake(ctx context.Context, conn *grpc.ClientConn) (peerStream, Hello, proof, error) {
	stream, err := rldv1.NewPeersClient(conn).Exchange(ctx)
	if err != nil {
		return nil, Hello{}, proof{}, err
	}
	hello, proven, err := t.greet(stream)
	return stream, hello, proven, err
}

// greet exchanges hellos and proofs on a stream.
func (t *target) greet(stream peerStream) (Hello, proof, error) {
	own, err := t.host.greet()
	if err != nil {
		return Hello{}, proof{}, err
	}
	// An error of sending only means that the stream has ended; receiving
	// returns the reason.
	_ = stream.SendMsg(&item{kind: kindHello, body: own.body})
	var it item
	if err := stream.RecvMsg(&it); err != nil {
		return Hello{}, proof{}, t.ended(stream, err)
	}
	defer it.free()
	theirs, err := greetingOf(&it)
	if no := refuse(own.Hello, own.secrets, &theirs, err, t.Addr, t.Region); no != nil {
		return Hello{}, proof{}, no
	}
	s := handshake{dialer: own.body, acceptor: bytes.Clone(it.body)}
	var proven proof
	if p, ok := peer.FromContext(stream.Context()); ok {
		if err := s.bindAuth(p.AuthInfo); err != nil {
			return Hello{}, proof{}, err
		}
		proven = proofOf(p.AuthInfo)
	}
	proven.secrets = own.secrets.proven(&theirs)
	if no := t.host.identify(own.Hello, theirs.hello, &proven); no != nil {
		return Hello{}, proof{}, no
	}
	if no := t.host.admitRegion(own.Hello, theirs.hello); no != nil {
		return Hello{}, proof{}, no
	}
	var signed item
	if err := stream.RecvMsg(&signed); err != nil {
		return Hello{}, proof{}, t.ended(stream, err)
	}
	defer signed.free()
	if err := s.checkItem(&theirs, accepting, &signed); err != nil {
		return Hello{}, proof{}, err
	}
	_ = stream.SendMsg(&item{kind: kindProof, body: s.prove(own.key, dialing)}) // as above
	return theirs.hello, proven, nil
}

// greetingOf reads the first item of a stream.
func greetingOf(it *item) (greeting, error) {
	if it.fault != nil {
		return greeting{}, it.fault
	}
	if it.kind != kindHello {
		return greeting{}, errors.New("the first item is a " + it.kind.String() + ", want a hello")
	}
	return decodeGreeting(it.body)
}

// handshakeError returns the most specific reason why a handshake failed.
func (t *target) handshakeError(ctx context.Context, line *line, err error) error {
	fault := line.fault.Load()
	var refused *Refused
	var bad *ProtocolError
	switch {
	case errors.As(err, &refused), errors.As(err, &bad):
		return err
	case fault != nil && (ctx.Err() == nil || errors.As(*fault, &refused)):
		return *fault
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errors.New(printable(status.Convert(err).Message()))
}

// ended returns the reason of a stream's end when receiving failed with err.
func (t *target) ended(stream peerStream, err error) error {
	if status.Code(err) == codes.ResourceExhausted && len(stream.Trailer()) == 0 {
		return protocolError(ReasonSize, "%s", printable(status.Convert(err).Message()))
	}
	return peerError(err, stream.Trailer())
}

// hold sends and receives until the stream ends, and returns the reason.
func (t *target) hold(
	ctx context.Context, cancel context.CancelCauseFunc, stream peerStream, out *outbox,
) error {
	done := make(chan struct{})
	t.host.wg.Go(func() {
		defer close(done)
		cancel(t.listen(stream, out.hello))
	})
	t.write(ctx, cancel, stream, out)
	<-done
	return context.Cause(ctx)
}

// write sends the queue until ctx is done.
func (t *target) write(
	ctx context.Context, cancel context.CancelCauseFunc, stream peerStream, out *outbox,
) {
	stuck := time.AfterFunc(writeWithin, func() { cancel(ErrStuck) })
	stuck.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case frame := <-out.frames:
			it := item{kind: kindFrame, body: frame}
			if t.WAN {
				it = t.host.packer.pack(frame)
			}
			size := len(it.body)
			stuck.Reset(writeWithin)
			err := stream.SendMsg(&it)
			stuck.Stop()
			out.sent(frame)
			if err != nil {
				// The stream has ended, and listen returns the reason.
				<-ctx.Done()
				return
			}
			t.counts.sent.add(size)
			t.host.counts.sent.add(size)
		}
	}
}

// listen receives the lists of members until the stream ends.
func (t *target) listen(stream peerStream, from Hello) error {
	rate := newBucket(listsPerSecond, time.Now())
	for {
		var it item
		if err := stream.RecvMsg(&it); err != nil {
			return t.ended(stream, err)
		}
		if err := t.receiveMembers(&it, from, &rate); err != nil {
			return err
		}
	}
}

// receiveMembers handles one item of a peer.
func (t *target) receiveMembers(it *item, from Hello, rate *bucket) error {
	defer it.free()
	if it.fault != nil {
		return protocolError(ReasonItem, "%w", it.fault)
	}
	t.counts.received.add(len(it.body))
	t.host.counts.received.add(len(it.body))
	if it.kind != kindMembers {
		return protocolError(ReasonItem, "a %s from an acceptor, want members", it.kind)
	}
	if !rate.take(1, time.Now()) {
		return protocolError(ReasonRate, "more than %d lists of members a second", listsPerSecond)
	}
	members, err := decodeMembers(it.body, from.Member.Region)
	if err != nil {
		return protocolError(ReasonMembers, "%w", err)
	}
	return t.host.callHandler(func() error {
		t.host.config.Handler.Members(from, members)
		return nil
	})
}

// line is the connections below gRPC of one attempt.
type line struct {
	addr string
	dial func(ctx context.Context) (net.Conn, error)

	mu    sync.Mutex
	conns []net.Conn
	over  bool
	// fault is the first reason why a handshake fails, where gRPC reports it
	// badly.
	fault atomic.Pointer[error]
}

// connect is the dialer of gRPC.
func (l *line) connect(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		l.setFault(err)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		conn.Close()
		return nil, net.ErrClosed
	}
	l.conns = append(l.conns, conn)
	return conn, nil
}

// hangUp closes all connections.
func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, conn := range l.conns {
		conn.Close()
	}
}

// setFault keeps the first reason.
func (l *line) setFault(err error) { l.fault.CompareAndSwap(nil, &err) }
