package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Target is an outgoing stream to maintain.
type Target struct {
	// Addr is the address to dial, host:port.
	Addr string
	// Region is the expected region of the peer, "" for any.
	Region string
	// WAN compresses the frames with zstd.
	WAN bool
}

// target is a Target with the goroutine that holds its stream.
type target struct {
	Target
	host   *Host
	ctx    context.Context
	stop   context.CancelCauseFunc
	after  *target       // the former target of the address, which must end first
	done   chan struct{} // closed when this one has ended
	counts streamCounts

	mu    sync.Mutex
	state State
	since time.Time // of the state
	hello Hello     // of the last stream
	out   *outbox   // of the stream that is up
	// proven is what its peer proved later, see Host.Lacking; proving is set
	// during that handshake.
	proven  Fingerprints
	proving bool
	// cancel ends the present attempt, nil before the first.
	cancel context.CancelCauseFunc
	tries  uint64
	err    error
	errAt  time.Time
}

// Targets sets the outgoing streams to maintain, by their addresses. Streams to
// other addresses end. Of several targets with one address the last counts;
// targets beyond 4,096 are ignored. It does not wait.
func (h *Host) Targets(all []Target) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	want := make(map[string]Target, min(len(all), maxTargets))
	left := 0
	for _, t := range all {
		if _, ok := want[t.Addr]; !ok && len(want) == maxTargets {
			left++
			continue
		}
		want[t.Addr] = t
	}
	if left > 0 && h.notices.Due("targets", time.Now(), noticeEach) {
		h.log.Error("there are too many peers to hold streams to", "left_out", left, "want", maxTargets)
	}
	for addr, t := range h.targets {
		if want[addr] != t.Target {
			delete(h.targets, addr)
			h.ending[addr] = t
			t.stop(ErrDropped)
		}
	}
	for addr, t := range want {
		if h.targets[addr] == nil {
			h.startLocked(t)
		}
	}
}

func (h *Host) startLocked(want Target) {
	t := &target{Target: want, host: h, after: h.ending[want.Addr], done: make(chan struct{})}
	t.ctx, t.stop = context.WithCancelCause(h.ctx)
	t.state, t.since = StateConnecting, time.Now()
	h.targets[t.Addr] = t
	h.wg.Go(t.run)
}

// run holds the stream until the target is stopped.
func (t *target) run() {
	defer t.leave()
	if t.after != nil {
		<-t.after.done
		t.after = nil
	}
	var wait backoff
	for t.ctx.Err() == nil {
		t.become(StateConnecting)
		up, err := t.attempt()
		if t.ctx.Err() != nil {
			return
		}
		if errors.Is(err, ErrRenewed) {
			continue
		}
		t.failed(err)
		if up >= stableAfter {
			wait.reset()
		}
		if _, bad := errors.AsType[*ProtocolError](err); bad {
			wait.longest()
		}
		t.become(StateWaiting)
		select {
		case <-time.After(wait.next()):
		case <-t.ctx.Done():
		}
	}
}

// leave releases the address and signals the end of the target.
func (t *target) leave() {
	t.stop(nil)
	t.host.mu.Lock()
	defer t.host.mu.Unlock()
	if t.host.ending[t.Addr] == t {
		delete(t.host.ending, t.Addr)
	}
	close(t.done)
}

// become changes the state.
func (t *target) become(s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.since = s, time.Now()
	if s == StateConnecting {
		t.tries++
	}
}

// connected registers the stream as up.
func (t *target) connected(out *outbox) {
	t.mu.Lock()
	t.hello, t.out, t.proven, t.state, t.since = out.hello, out, nil, StateUp, time.Now()
	t.mu.Unlock()
	t.host.counts.outgoing.Add(1)
	t.host.addRoute(out)
	t.host.log.Info("stream to a peer is up", "peer", out.hello.String(), "addr", t.Addr,
		"incarnation", out.hello.Member.ID.String(), "build", out.hello.Member.Build)
	t.warnRules(out.hello)
	t.host.config.Handler.Connected(t.Addr, out.hello)
}

// disconnected removes a stream that was up.
func (t *target) disconnected(out *outbox, err error) {
	t.host.dropRoute(out)
	t.host.counts.outgoing.Add(-1)
	t.mu.Lock()
	t.out, t.state, t.since = nil, StateWaiting, time.Now()
	t.err, t.errAt = err, t.since
	t.mu.Unlock()
	if n := uint64(out.drain()); n > 0 {
		t.counts.dropped.Add(n)
		t.host.counts.dropped.Add(n)
	}
	if t.ctx.Err() == nil {
		t.host.log.Info("stream to a peer is lost", "peer", out.hello.String(), "addr", t.Addr, "error", err)
	}
	t.host.config.Handler.Disconnected(t.Addr, out.hello, err)
}

// warnRules warns of a peer with other rules, once an hour for each incarnation
// and its rules. The peer is not refused, since a reload does not reach all
// daemons at the same time.
func (t *target) warnRules(h Hello) {
	own, theirs := fmt.Sprintf("%016x", t.host.config.Self().Rules), fmt.Sprintf("%016x", h.Rules)
	if theirs != own && t.host.notices.Due(h.Member.ID.String()+" "+theirs+" "+own, time.Now(), noticeRare) {
		t.host.log.Warn("a peer has other rules: limits that differ are enforced by each on its own",
			"peer", h.String(), "rules", theirs, "own", own)
	}
}

// failed counts and logs the reason for having no stream.
func (t *target) failed(err error) {
	t.mu.Lock()
	t.err, t.errAt = err, time.Now()
	t.mu.Unlock()
	h := t.host
	var refused *Refused
	var bad *ProtocolError
	switch {
	case errors.As(err, &refused) && refused.ByPeer:
		h.counts.rejectedPeers.add(refused.Reason)
		h.warn("a peer rejects this daemon", t.Addr, refused.Reason, "addr", t.Addr, "reason", refused.Reason, "error", err)
	case errors.As(err, &refused):
		h.counts.refused.add(refused.Reason)
		h.warn("peer refused", t.Addr, refused.Reason, "addr", t.Addr, "reason", refused.Reason, "error", err)
	case errors.As(err, &bad):
		h.counts.protocolErrors.add(bad.Reason)
		h.warn("peer dropped for a protocol error", t.Addr, bad.Reason, "addr", t.Addr, "reason", bad.Reason, "error", err)
	default:
		h.warn("no stream to a peer", t.Addr, "lost", "addr", t.Addr, "error", err)
	}
}

// warn logs one warning for each peer and reason a minute.
func (h *Host) warn(what, peer, reason string, args ...any) {
	each := noticeEach
	if reason == ReasonSelf || reason == reasonReplaced {
		each = noticeRare
	}
	if h.ctx.Err() == nil && h.notices.Due(what+" "+peer+" "+reason, time.Now(), each) {
		h.log.Warn(what, args...)
	}
}
