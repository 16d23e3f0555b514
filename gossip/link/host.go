package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/certs"
	"github.com/georld/rld/internal/connlimit"
	"github.com/georld/rld/internal/loglimit"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// Timeouts of a stream.
const (
	// handshakeWithin bounds connecting, TLS and the hellos at the dialing end,
	// acceptWithin TLS and the hellos at the accepting one: a connection that
	// has not proven anything takes room from others.
	handshakeWithin = 10 * time.Second
	acceptWithin    = connlimit.HandshakeTimeout
	// closeWithin leaves a dialer that sent no hello the time to read why.
	closeWithin = acceptWithin + 100*time.Millisecond
	// writeWithin bounds the time without progress of a write.
	writeWithin = 5 * time.Second
	// keepaliveAfter is the silence after which a connection is pinged; the
	// peer has keepaliveWithin to answer.
	keepaliveAfter  = 10 * time.Second
	keepaliveWithin = 5 * time.Second
	// idleAfter ends connections without a stream.
	idleAfter = time.Minute
)

// The bounds of a Host.
const (
	maxTargets     = gossip.MaxPeers
	maxAccepted    = gossip.MaxPeers
	maxConnections = 2 * maxAccepted // each stream may have a priority stream
	maxHeaders     = 16 << 10        // of the headers of a call, in bytes
	// streamWindow is the flow control window of a stream, in bytes. gRPC would
	// measure a dynamic one with pings, which delay calls that wait for an
	// owner.
	streamWindow = 512 << 10
	// streamsEach bounds the streams of one incarnation: it may dial this
	// daemon under several addresses.
	streamsEach = 4
)

// The reasons why streams end that no end refused.
var (
	// ErrClosed ends the streams of a Host that is closed.
	ErrClosed = errors.New("this daemon is closing its streams")
	// ErrDropped ends the stream of a former target.
	ErrDropped = errors.New("it is not a peer anymore")
	// ErrStuck ends a stream whose peer does not read.
	ErrStuck = fmt.Errorf("nothing could be written for %v: the peer is frozen or too slow", writeWithin)

	errHandshake = fmt.Errorf("no handshake within %v", handshakeWithin)
	errNoHello   = fmt.Errorf("no handshake within %v", acceptWithin)
	errReplaced  = errors.New("another incarnation or stream took its place")
)

// Config configures a Host. Self and Handler are mandatory.
type Config struct {
	// Self returns the hello of this daemon. It is called at each handshake, by
	// several goroutines.
	Self func() Hello
	// Identity returns the key and the run of this daemon, as Self; nil for a
	// key in memory. Call Renew when it changes.
	Identity func() control.Identity
	// Fingerprints returns what is derived from the cluster secret, and from
	// the next one while there are two; nil for none. They are not sent: see
	// SecretProof. It is called at each handshake, by several goroutines: when
	// they change, streams that are up go on.
	Fingerprints func() Fingerprints
	// Certificates configures TLS; nil for plain streams. The caller decides
	// whether these are allowed. Server and Client replace its configuration of
	// accepted and dialed streams.
	Certificates   *Certificates
	Server, Client *tls.Config
	// RegionOf returns the region of the daemon with an id, "" if it is not
	// known; nil for none. A peer of another region that proves the id is
	// refused. Revoked reports whether the certificates of a daemon do not
	// count any more; nil for none. The next Recheck ends its streams. Both are
	// called by several goroutines and must not wait.
	RegionOf func(id control.ID) string
	Revoked  func(name certs.Name) bool
	// Admit returns why daemons of a region get no streams, nil for those that
	// do. It is called at each handshake, by several goroutines; nil admits
	// all regions.
	Admit func(region string) error
	// MayDial returns why the IP address that an address resolved to is not
	// dialed; nil, or a nil MayDial, if it is. Dial does not call it.
	MayDial func(addr string, ip netip.Addr) error
	// Dial connects to an address; nil for TCP. It must honor ctx.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Bounds are how many accepted connections there may be; the zero value
	// selects the greatest useful ones.
	Bounds  connlimit.Bounds
	Handler Handler
	// Log receives one line for each peer and reason a minute; nil for none.
	Log *slog.Logger
}

// Handler receives the frames and events of the streams. Calls of one stream
// are sequential and in order, calls of several streams concurrent. A call
// blocks only its own stream. It may call any method of the Host except Close.
type Handler interface {
	// Frame handles a frame of an accepted stream. The frame is valid until
	// Frame returns and must not be changed. A *ProtocolError as the error
	// drops the stream; other errors are only counted.
	Frame(from Hello, frame []byte) error
	// Connected reports that an outgoing stream to addr is up. Send to h works
	// from now on.
	Connected(addr string, h Hello)
	// Disconnected reports that an outgoing stream ended. It follows each
	// Connected.
	Disconnected(addr string, h Hello, err error)
	// Members receives the live members of from's region with ascending ids,
	// between Connected and Disconnected of an outgoing stream. The handler
	// owns the list.
	Members(from Hello, members []gossip.Member)
}

// Host holds all streams of one daemon. It is safe for concurrent use.
type Host struct {
	config      Config
	usePriority bool // over TCP: streams within the region have a priority stream
	log         *slog.Logger
	server      *grpc.Server
	packer      *packer
	counts      counts
	notices     loglimit.Limiter
	penalties   penalties

	ctx   context.Context // done once Close has begun
	close context.CancelCauseFunc
	wg    sync.WaitGroup // all goroutines except those of gRPC

	members atomic.Pointer[[]byte] // the list of SendMembers, encoded; nil before the first

	mu       sync.Mutex
	closed   bool
	targets  map[string]*target     // by address
	ending   map[string]*target     // former targets that have not ended yet
	accepted map[*accepted]struct{} // streams after their hello
	waiting  int                    // the number of streams before their hello

	routes sync.RWMutex
	route  map[crdt.Incarnation][]*outbox // the streams that are up; the first one is used
}

// dialTCP returns a function that connects to an address by TCP.
func dialTCP(may func(addr string, ip netip.Addr) error) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		dialer := net.Dialer{Timeout: handshakeWithin}
		if may != nil {
			dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
				at, err := netip.ParseAddrPort(resolved)
				if err != nil {
					return err
				}
				return may(addr, at.Addr())
			}
		}
		return dialer.DialContext(ctx, "tcp", addr)
	}
}

// New returns a Host that neither listens nor dials yet.
func New(c Config) *Host {
	priorities := c.Dial == nil
	if priorities {
		c.Dial = dialTCP(c.MayDial)
	}
	if c.Fingerprints == nil {
		c.Fingerprints = func() Fingerprints { return Fingerprints{{}} }
	}
	if c.Identity == nil {
		c.Identity = inMemory()
	}
	if c.Certificates != nil {
		c.Server = cmp.Or(c.Server, c.Certificates.Server())
		c.Client = cmp.Or(c.Client, c.Certificates.Client())
	}
	h := &Host{
		config:      c,
		usePriority: priorities,
		log:         cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		packer:      newPacker(),
		targets:     make(map[string]*target),
		ending:      make(map[string]*target),
		accepted:    make(map[*accepted]struct{}),
		route:       make(map[crdt.Incarnation][]*outbox),
	}
	h.ctx, h.close = context.WithCancelCause(context.Background())
	h.server = grpc.NewServer(
		grpc.Creds(serverCredentials(h)),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxConcurrentStreams(streamsEach),
		grpc.MaxRecvMsgSize(maxItem),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(2*streamWindow),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(handshakeWithin),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: idleAfter, Time: keepaliveAfter, Timeout: keepaliveWithin,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveAfter / 2}),
	)
	rldv1.RegisterPeersServer(h.server, &acceptor{host: h})
	if c.Certificates != nil {
		h.wg.Go(h.recheck)
	}
	return h
}

// Serve accepts streams on a listener until Close and then returns nil. It
// closes the listener. It may be called for several listeners.
func (h *Host) Serve(lis net.Listener) error {
	err := h.server.Serve(h.bounded(lis))
	if err == nil || errors.Is(err, grpc.ErrServerStopped) || h.ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("peers on %s: %w", lis.Addr(), err)
}

// Send queues a frame on the stream to an incarnation. It never waits. It takes
// ownership of the frame, which must not be changed any more. It returns false
// when the frame will not be sent: there is no stream, its queue is full, or
// the frame is empty or too large. The protocol then sends the content again.
// True does not promise delivery.
func (h *Host) Send(to crdt.Incarnation, frame []byte) bool {
	out := h.routeTo(to)
	return out != nil && out.send(frame)
}

// routeTo returns the stream to an incarnation, nil for none.
func (h *Host) routeTo(to crdt.Incarnation) *outbox {
	h.routes.RLock()
	defer h.routes.RUnlock()
	if all := h.route[to]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// SendMembers sends the live members of this daemon's region, itself included,
// on every accepted stream, now and when one begins. Only the newest list
// counts. It reads members and keeps no part of it.
func (h *Host) SendMembers(members []gossip.Member) {
	body, left := encodeMembers(members)
	if left > 0 && h.notices.Due("members", time.Now(), noticeEach) {
		h.log.Error("members of the own region cannot be sent to peers",
			"left_out", left, "want", fmt.Sprintf("valid members, at most %d", maxMembers))
	}
	h.members.Store(&body)
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.accepted {
		a.announceMembers()
	}
}

// Close ends all streams at once. When it returns, no goroutine of the Host
// runs and the Handler is not called any more. The Handler must not call it.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.close(ErrClosed)
	h.server.Stop()
	h.wg.Wait()
	h.packer.close()
}

// addRoute makes a stream available to Send.
func (h *Host) addRoute(o *outbox) {
	h.routes.Lock()
	defer h.routes.Unlock()
	id := o.hello.Member.ID
	h.route[id] = append(h.route[id], o)
}

// dropRoute removes a stream from Send.
func (h *Host) dropRoute(o *outbox) {
	h.routes.Lock()
	defer h.routes.Unlock()
	id := o.hello.Member.ID
	h.route[id] = slices.DeleteFunc(h.route[id], func(other *outbox) bool { return other == o })
	if len(h.route[id]) == 0 {
		delete(h.route, id)
	}
}

// callHandler calls the handler. A panic becomes a protocol error: a frame of a
// peer must not end the daemon.
func (h *Host) callHandler(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic while handling the input of a peer", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = protocolError(ReasonPanic, "the handler panicked: %v", p)
		}
	}()
	return call()
}
