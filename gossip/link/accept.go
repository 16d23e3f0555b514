package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/georld/rld/internal/connlimit"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/wire"
)

// membersInterval is the least time between two lists on one stream.
const membersInterval = 100 * time.Millisecond

// acceptor is the gRPC service that peers call.
type acceptor struct {
	rldv1.UnimplementedPeersServer
	host *Host
}

// accepted is one stream of a peer. Three goroutines serve it: one receives,
// one sends members, and the handler of the call waits for the end, so that no
// blocked operation keeps the stream alive.
type accepted struct {
	host       *Host
	stream     grpc.BidiStreamingServer[rldv1.PeerItem, rldv1.PeerItem]
	remote     string
	proof      proof
	addr       net.Addr        // remote
	ctx        context.Context // done when the stream has ended
	end        context.CancelCauseFunc
	newMembers chan struct{} // holds a value when there may be a new list
	buffer     []byte        // of unpacked frames
	counts     streamCounts

	// Set when the stream enters Host.accepted, and immutable while it is
	// there.
	hello Hello
	since time.Time
}

// Exchange serves a stream until it ends.
func (s *acceptor) Exchange(stream grpc.BidiStreamingServer[rldv1.PeerItem, rldv1.PeerItem]) error {
	h := s.host
	a := &accepted{host: h, stream: stream, newMembers: make(chan struct{}, 1)}
	if p, ok := peer.FromContext(stream.Context()); ok {
		a.remote, a.addr, a.proof = p.Addr.String(), p.Addr, proofOf(p.AuthInfo)
	}
	// Not a child of the stream's context: gRPC ends that one before receiving
	// returns the reason.
	a.ctx, a.end = context.WithCancelCause(context.WithoutCancel(stream.Context()))
	defer a.end(nil)
	stream.SetTrailer(noReason())
	if !h.enter() {
		return a.farewell(&Refused{
			Reason: ReasonFull, Text: h.config.Self().String() + " has no room for another stream",
		}, false)
	}
	timer := time.AfterFunc(acceptWithin, func() {
		a.end(&Refused{Reason: ReasonHello, Text: a.remote + " is refused: " + errNoHello.Error()})
	})
	defer timer.Stop()
	h.wg.Go(func() { a.end(a.receive(timer)) })
	<-a.ctx.Done()
	return a.farewell(context.Cause(a.ctx), h.leave(a))
}

// enter reserves room for a stream without a hello.
func (h *Host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.accepted)+h.waiting >= maxAccepted {
		return false
	}
	h.waiting++
	return true
}

// admit makes a stream that of a peer with a hello. It ends other streams of
// the same daemon and address that belong to a former incarnation, and the
// oldest stream of an incarnation that has too many. It returns false when the
// stream has ended meanwhile.
func (h *Host) admit(a *accepted, hello Hello) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.ctx.Err() != nil {
		return false
	}
	a.hello, a.since = hello, time.Now()
	var oldest *accepted
	same := 0
	for other := range h.accepted {
		switch {
		case !other.sameDaemon(a): // no claim ends a stream of another daemon
		case other.hello.Member.ID == a.hello.Member.ID:
			same++
			if oldest == nil || other.since.Before(oldest.since) {
				oldest = other
			}
		case other.hello.Member.Addr == a.hello.Member.Addr:
			other.end(errReplaced)
		}
	}
	if same >= streamsEach {
		oldest.end(errReplaced)
	}
	h.waiting--
	h.accepted[a] = struct{}{}
	return true
}

// sameDaemon reports whether two streams are of one daemon, as far as that is
// proven: by the names in their certificates or else by their keys.
func (a *accepted) sameDaemon(b *accepted) bool {
	if len(a.proof.names) > 0 && len(b.proof.names) > 0 {
		return a.hello.Member.Region == b.hello.Member.Region && a.hello.Member.Name == b.hello.Member.Name
	}
	return len(a.proof.names) == len(b.proof.names) && a.hello.Daemon == b.hello.Daemon
}

// leave frees the room of a stream that has ended. It reports whether the
// stream was admitted.
func (h *Host) leave(a *accepted) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.accepted[a]; ok {
		delete(h.accepted, a)
		return true
	}
	h.waiting--
	return false
}

// receive reads the hello and the frames, and returns the reason why the stream
// ended.
func (a *accepted) receive(timer *time.Timer) error {
	if err := a.welcome(); err != nil {
		return err
	}
	timer.Stop()
	a.host.wg.Go(a.sendMembers)
	limit := newLimiter(time.Now())
	for {
		var it item
		if err := a.stream.RecvMsg(&it); err != nil {
			return a.broken(err)
		}
		err := a.receiveFrame(&it, limit)
		it.free()
		if err != nil {
			return err
		}
	}
}

// welcome exchanges hellos and proofs.
func (a *accepted) welcome() error {
	var it item
	if err := a.stream.RecvMsg(&it); err != nil {
		return a.broken(err)
	}
	defer it.free()
	h := a.host
	own, err := h.greet()
	if err != nil {
		return err
	}
	theirs, err := greetingOf(&it)
	if no := refuse(own.Hello, own.secrets, &theirs, err, a.remote, ""); no != nil {
		return no
	}
	a.proof.secrets = own.secrets.proven(&theirs)
	if no := h.identify(own.Hello, theirs.hello, &a.proof); no != nil {
		return no
	}
	if no := h.admitRegion(own.Hello, theirs.hello); no != nil {
		return no
	}
	if left := h.penalties.remaining(penaltyKeys(&a.proof, a.remote, theirs.hello), time.Now()); left > 0 {
		return &Refused{
			Reason: ReasonPenalty, peer: theirs.hello.String(),
			Text: fmt.Sprintf("%s refuses %s: it made a protocol error and has to wait another %v",
				own, theirs.hello, left.Round(time.Millisecond)),
		}
	}
	s := handshake{dialer: bytes.Clone(it.body), acceptor: own.body}
	if p, ok := peer.FromContext(a.stream.Context()); ok {
		if err := s.bindAuth(p.AuthInfo); err != nil {
			return err
		}
	}
	if err := a.stream.SendMsg(&item{kind: kindHello, body: own.body}); err != nil {
		return err
	}
	if err := a.stream.SendMsg(&item{kind: kindProof, body: s.prove(own.key, accepting)}); err != nil {
		return err
	}
	var proof item
	if err := a.stream.RecvMsg(&proof); err != nil {
		return a.broken(err)
	}
	defer proof.free()
	if err := s.checkItem(&theirs, dialing, &proof); err != nil {
		return err
	}
	if !established(a.addr) {
		return net.ErrClosed // the listener has counted it
	}
	if !h.admit(a, theirs.hello) {
		return context.Cause(a.ctx)
	}
	if h.config.Identity().Key.ID() != own.Daemon { // Renew did not see this stream
		return ErrRenewed
	}
	return nil
}

// receiveFrame passes one frame to the handler.
func (a *accepted) receiveFrame(it *item, limit *limiter) error {
	if it.fault != nil {
		return protocolError(ReasonItem, "%w", it.fault)
	}
	a.received(len(it.body))
	if it.kind != kindFrame && it.kind != kindPacked {
		return protocolError(ReasonItem, "a %s from a dialer, want frames", it.kind)
	}
	if err := limit.frame(len(it.body), time.Now()); err != nil {
		return err
	}
	frame := it.body
	if it.kind == kindPacked {
		var err error
		if frame, err = a.unpack(it.body, limit); err != nil {
			return err
		}
	}
	if len(frame) > wire.MaxFrameBytes {
		return protocolError(ReasonSize, "frame of %d bytes, want at most %d", len(frame), wire.MaxFrameBytes)
	}
	return a.handle(frame)
}

// handle passes a frame to the handler. It returns only protocol errors and
// counts others.
func (a *accepted) handle(frame []byte) error {
	err := a.host.callHandler(func() error { return a.host.config.Handler.Frame(a.hello, frame) })
	if _, bad := errors.AsType[*ProtocolError](err); bad {
		return err
	}
	if err != nil {
		a.host.counts.faulty.Add(1)
	}
	return nil
}

// received counts a frame of a size.
func (a *accepted) received(size int) {
	a.counts.received.add(size)
	a.host.counts.received.add(size)
}

// unpack returns a frame in memory that the next call reuses.
func (a *accepted) unpack(body []byte, limit *limiter) ([]byte, error) {
	frame, err := a.host.packer.unpack(body, a.buffer)
	if err != nil {
		return nil, protocolError(ReasonPacked, "%w", err)
	}
	if cap(frame) <= maxKept {
		a.buffer = frame
	}
	return frame, limit.more(len(frame), time.Now())
}

// broken converts an error of receiving.
func (a *accepted) broken(err error) error {
	if status.Code(err) == codes.ResourceExhausted {
		return protocolError(ReasonSize, "%s", printable(status.Convert(err).Message()))
	}
	return err
}

// announceMembers triggers sending the newest list.
func (a *accepted) announceMembers() {
	select {
	case a.newMembers <- struct{}{}:
	default:
	}
}

// sendMembers sends the list of this daemon's region whenever it is new.
func (a *accepted) sendMembers() {
	stuck := time.AfterFunc(writeWithin, func() { a.end(ErrStuck) })
	stuck.Stop()
	var last *[]byte
	for {
		if list := a.host.members.Load(); list != last {
			last = list
			stuck.Reset(writeWithin)
			err := a.stream.SendMsg(&item{kind: kindMembers, body: *list})
			stuck.Stop()
			if err != nil {
				// The stream has ended, and receive returns the reason.
				return
			}
			a.counts.sent.add(len(*list))
			a.host.counts.sent.add(len(*list))
		}
		select {
		case <-time.After(membersInterval):
		case <-a.ctx.Done():
			return
		}
		select {
		case <-a.newMembers:
		case <-a.ctx.Done():
			return
		}
	}
}

// farewell counts and logs the reason why the stream ended, and returns the
// status of the call. Only a peer that was admitted is known by name.
func (a *accepted) farewell(err error, admitted bool) error {
	h := a.host
	if c := connlimit.Of(a.addr); c != nil && !admitted {
		c.Counted()
	}
	who := hostOf(a.remote)
	if admitted {
		who = a.hello.String()
	}
	source := a.proof.source(a.remote, who)
	var refused *Refused
	var bad *ProtocolError
	switch {
	case errors.As(err, &refused):
		h.countRefused(refused, a.remote, &a.proof)
	case errors.As(err, &bad):
		wait := h.penalties.add(a.penaltyKeys(admitted), time.Now())
		h.counts.protocolErrors.add(bad.Reason)
		h.warn("peer dropped for a protocol error", source, bad.Reason,
			"peer", who, "remote", a.remote, "reason", bad.Reason, "error", bad.Err, "wait", wait)
	case errors.Is(err, errReplaced):
		h.warn("stream of a peer ended", source, reasonReplaced, "peer", who, "remote", a.remote, "error", err)
	case errors.Is(err, ErrStuck):
		h.warn("stream of a peer ended", source, "stuck", "peer", who, "remote", a.remote, "error", err)
	case errors.Is(err, io.EOF):
		return nil
	}
	trailer, st := statusOf(err)
	a.stream.SetTrailer(trailer)
	return st
}

// penaltyKeys returns the keys of the peer for a protocol error of the stream.
func (a *accepted) penaltyKeys(admitted bool) []string {
	if admitted {
		return penaltyKeys(&a.proof, a.remote, a.hello)
	}
	return penaltyKeys(&a.proof, a.remote, Hello{})
}

// countRefused counts and logs the refusal of an incoming connection or stream.
func (h *Host) countRefused(r *Refused, remote string, p *proof) {
	who := r.peer
	if who == "" {
		who = hostOf(remote)
	}
	h.counts.refused.add(r.Reason)
	h.warn("peer refused", p.source(remote, who), r.Reason, "peer", who, "remote", remote, "reason", r.Reason, "error", r)
}
