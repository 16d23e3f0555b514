package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// How long things may take on a stream.
const (
	// handshakeWithin bounds connecting, TLS and the hellos.
	handshakeWithin = 10 * time.Second
	// writeWithin bounds how long a write may make no progress.
	writeWithin = 5 * time.Second
	// keepaliveAfter is how long a connection is silent before the peer is
	// asked whether it lives; it has keepaliveWithin to answer.
	keepaliveAfter  = 10 * time.Second
	keepaliveWithin = 5 * time.Second
	// idleAfter ends connections without a stream.
	idleAfter = time.Minute
)

// The bounds of a Host.
const (
	maxTargets     = gossip.MaxPeers
	maxAccepted    = gossip.MaxPeers
	maxConnections = maxAccepted + 256
	maxHeaders     = 16 << 10 // bytes of the headers of a call
	// streamWindow is how many bytes may be on their way. A window that follows the
	// bandwidth is measured with pings, which a call that waits for its home pays for.
	streamWindow = 512 << 10
	// streamsEach is how many streams one incarnation may have here: it may
	// know this daemon by several addresses.
	streamsEach = 4
)

// Why a stream ended that nobody refused.
var (
	// ErrClosed ends the streams of a Host that is closed.
	ErrClosed = errors.New("this daemon is closing its streams")
	// ErrDropped ends the stream of a target that is not one anymore.
	ErrDropped = errors.New("it is not a peer anymore")
	// ErrStuck ends a stream whose peer does not read.
	ErrStuck = fmt.Errorf("nothing could be written for %v: the peer is frozen or too slow", writeWithin)

	errHandshake = fmt.Errorf("no handshake within %v", handshakeWithin)
	errReplaced  = errors.New("another incarnation or stream took its place")
)

// Config is what a Host is made of. Self and Handler are mandatory.
type Config struct {
	// Self says what this daemon is; read at each handshake, by several
	// goroutines.
	Self func() Hello
	// Fingerprint tells cluster secrets apart; it gives nothing away of them.
	Fingerprint [fingerprintSize]byte
	// Server and Client are for accepted and dialed streams, nil for plain
	// ones: that plain is allowed here is for the caller to check. See TLS.
	Server, Client *tls.Config
	// Dial connects to an address, nil for TCP. It must heed ctx.
	Dial    func(ctx context.Context, addr string) (net.Conn, error)
	Handler Handler
	// Log gets one line for each peer and reason in a while; nil for none.
	Log *slog.Logger
}

// Handler is told what comes over the streams. Calls of one stream come one
// at a time and in order, those of several streams at once. A call holds up
// its own stream only. It may call any method of the Host but Close.
type Handler interface {
	// Frame takes a frame of an accepted stream, which is valid until it
	// returns and must not be changed. An error that is a *Rubbish drops the
	// stream; others are counted only.
	Frame(from Hello, frame []byte) error
	// Connected says that an outgoing stream is up: h lives at addr. Send to it
	// works from now on.
	Connected(addr string, h Hello)
	// Disconnected says that an outgoing stream ended. It follows each Connected.
	Disconnected(addr string, h Hello, err error)
	// Members is the live members of from's region with ascending ids, from
	// between Connected and Disconnected of an outgoing stream. The list is the handler's.
	Members(from Hello, members []gossip.Member)
}

// Host is the end of all streams in one daemon. It is safe for concurrent
// use.
type Host struct {
	config     Config
	priorities bool // over TCP: beside each stream in the region there is a lane
	log        *slog.Logger
	server     *grpc.Server
	packer     *packer
	counts     counts
	notices    notices
	wrong      penalties
	rulesOf    rulesOf

	ctx   context.Context // done when Close has begun
	close context.CancelCauseFunc
	wg    sync.WaitGroup // all goroutines but those of gRPC

	telling atomic.Pointer[[]byte] // the list of Tell, encoded; nil: none yet

	mu       sync.Mutex
	closed   bool
	targets  map[string]*target     // by address
	ending   map[string]*target     // that were targets, until they are gone
	accepted map[*accepted]struct{} // that said hello
	waiting  int                    // streams that did not yet

	routes sync.RWMutex
	route  map[crdt.Incarnation][]*outbox // the streams that are up; the first is used
}

// New returns a Host that neither listens nor dials yet.
func New(c Config) *Host {
	priorities := c.Dial == nil
	if priorities {
		dialer := &net.Dialer{Timeout: handshakeWithin}
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		}
	}
	h := &Host{
		config:     c,
		priorities: priorities,
		log:        c.Log,
		packer:     newPacker(),
		targets:    make(map[string]*target),
		ending:     make(map[string]*target),
		accepted:   make(map[*accepted]struct{}),
		route:      make(map[crdt.Incarnation][]*outbox),
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.ctx, h.close = context.WithCancelCause(context.Background())
	h.server = grpc.NewServer(
		grpc.Creds(serverDoor(h)),
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
	return h
}

// Serve accepts streams on a listener until Close, then it returns nil. It
// closes the listener. It may be called for several listeners.
func (h *Host) Serve(lis net.Listener) error {
	err := h.server.Serve(&listener{Listener: lis, host: h})
	if err == nil || errors.Is(err, grpc.ErrServerStopped) || h.ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("peers on %s: %w", lis.Addr(), err)
}

// Send puts a frame into the queue of the stream to an incarnation. It never
// waits. It takes over frame, which must not be changed anymore. False says
// that it will not be sent: there is no stream, its queue is full, or frame is
// empty or beyond the bound; the protocol sends it again. True promises
// nothing.
func (h *Host) Send(to crdt.Incarnation, frame []byte) bool {
	h.routes.RLock()
	var out *outbox
	if all := h.route[to]; len(all) > 0 {
		out = all[0]
	}
	h.routes.RUnlock()
	if out == nil {
		return false
	}
	if !out.put(frame) {
		out.target.counts.dropped.Add(1)
		h.counts.dropped.Add(1)
		return false
	}
	return true
}

// SendMembers says who lives in this daemon's region, itself included. Every
// accepted stream is told, now and when it begins. Only the newest list
// counts. It reads members only and keeps nothing of it.
func (h *Host) SendMembers(members []gossip.Member) {
	body, left := encodeMembers(members)
	if left > 0 && h.notices.due("tell", time.Now(), noticeEach) {
		h.log.Error("members of the own region cannot be told to peers",
			"left_out", left, "want", fmt.Sprintf("valid members, at most %d", maxMembers))
	}
	h.telling.Store(&body)
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.accepted {
		a.tellSoon()
	}
}

// Close ends everything at once. No goroutine of the Host runs anymore when it
// returns, and the Handler is not called anymore. It must not be called by the
// Handler.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.close(ErrClosed)
	h.server.Stop()
	h.wg.Wait()
	h.packer.close()
}

// addRoute lets Send use a stream.
func (h *Host) addRoute(o *outbox) {
	h.routes.Lock()
	defer h.routes.Unlock()
	id := o.hello.Member.ID
	h.route[id] = append(h.route[id], o)
}

// dropRoute takes it back.
func (h *Host) dropRoute(o *outbox) {
	h.routes.Lock()
	defer h.routes.Unlock()
	id := o.hello.Member.ID
	var rest []*outbox
	for _, other := range h.route[id] {
		if other != o {
			rest = append(rest, other)
		}
	}
	if len(rest) == 0 {
		delete(h.route, id)
		return
	}
	h.route[id] = rest
}

// shielded calls the handler. A panic becomes rubbish: what a peer sends must
// not end the daemon.
func (h *Host) shielded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic over what a peer sent", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = protocolErrors(ReasonPanic, "the handler panicked: %v", p)
		}
	}()
	return call()
}
