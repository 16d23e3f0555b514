package link

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// State is the state of a stream.
type State string

// The states of a stream. An accepted one is always up.
const (
	StateConnecting State = "connecting"
	StateUp         State = "up"
	StateWaiting    State = "waiting" // to be dialed again
)

// Traffic counts one direction. A compressed frame counts with its compressed
// size; the overhead of TLS, HTTP/2 and TCP is not included. A list of members
// counts as a frame.
type Traffic struct{ Frames, Bytes uint64 }

// Stream describes a target or an accepted stream.
type Stream struct {
	// Incoming is true when the peer dialed the stream.
	Incoming bool
	// Addr is the dialed address; of an accepted stream, the address that its
	// peer announced for streams.
	Addr string
	// Remote is the remote address of an accepted stream.
	Remote string
	// Region is that of the target.
	Region string

	State State
	Since time.Time // of the state
	// Hello is that of the current peer or of the last one, zero before the
	// first.
	Hello Hello

	// Sent and Received count all streams of the target.
	Sent, Received Traffic
	// Dropped counts frames that were not sent: the queue was full, or the
	// stream ended before.
	Dropped uint64
	// Queued is the number of frames in the queue.
	Queued int
	// Attempts counts the dials of the target.
	Attempts uint64
	// Err is the latest reason for having no stream, and ErrAt its time; nil
	// when there was none.
	Err   error
	ErrAt time.Time
}

// Stats holds totals since New, and the current numbers of streams. The caller
// owns the maps.
type Stats struct {
	Outgoing, Accepted int
	Sent, Received     Traffic
	// Dropped counts frames that were not sent.
	Dropped uint64
	// Refused counts the handshakes that this daemon refused, by reason.
	// RejectedPeers counts the peers that refused or dropped streams of this
	// daemon, by reason.
	Refused, RejectedPeers map[string]uint64
	// ProtocolErrors counts the streams that were dropped for one, by reason.
	ProtocolErrors map[string]uint64
	// Faulty counts frames that the handler rejected without dropping the
	// stream.
	Faulty uint64
	// Certified is the state of the certificates.
	Certified Certified
}

// Streams describes all targets, sorted by address, and then all accepted
// streams, sorted by address and age.
func (h *Host) Streams() []Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	var outgoing, incoming []Stream
	for _, t := range h.targets {
		outgoing = append(outgoing, t.describe())
	}
	for a := range h.accepted {
		incoming = append(incoming, Stream{
			Incoming: true, Addr: a.hello.Member.Addr, Remote: a.remote,
			State: StateUp, Since: a.since, Hello: a.hello,
			Sent: a.counts.sent.read(), Received: a.counts.received.read(),
		})
	}
	order := func(a, b Stream) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), a.Since.Compare(b.Since), cmp.Compare(a.Remote, b.Remote))
	}
	slices.SortFunc(outgoing, order)
	slices.SortFunc(incoming, order)
	return slices.Concat(outgoing, incoming)
}

func (t *target) describe() Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Stream{
		Addr: t.Addr, Region: t.Region,
		State: t.state, Since: t.since, Hello: t.hello,
		Sent: t.counts.sent.read(), Received: t.counts.received.read(),
		Dropped: t.counts.dropped.Load(), Attempts: t.tries, Err: t.err, ErrAt: t.errAt,
	}
	if t.out != nil {
		s.Queued = len(t.out.frames)
	}
	return s
}

// Stats returns the totals.
func (h *Host) Stats() Stats {
	h.mu.Lock()
	accepted := len(h.accepted)
	h.mu.Unlock()
	c := &h.counts
	return Stats{
		Outgoing: int(c.outgoing.Load()), Accepted: accepted,
		Sent: c.sent.read(), Received: c.received.read(),
		Dropped: c.dropped.Load(), Faulty: c.faulty.Load(),
		Certified: h.certified(),
		Refused:   c.refused.read(), RejectedPeers: c.rejectedPeers.read(), ProtocolErrors: c.protocolErrors.read(),
	}
}

// counts holds the totals of a Host.
type counts struct {
	streamCounts
	outgoing                               atomic.Int64
	faulty                                 atomic.Uint64
	refused, rejectedPeers, protocolErrors reasons
}

// streamCounts holds the totals of a target or an accepted stream.
type streamCounts struct {
	sent, received counter
	dropped        atomic.Uint64
}

// counter counts one direction.
type counter struct{ frames, bytes atomic.Uint64 }

func (c *counter) add(size int) {
	c.frames.Add(1)
	c.bytes.Add(uint64(size))
}

func (c *counter) read() Traffic { return Traffic{Frames: c.frames.Load(), Bytes: c.bytes.Load()} }

// maxReasons bounds the distinct reasons, since a Handler may have its own.
const maxReasons = 64

// reasons counts by reason.
type reasons struct {
	mu sync.Mutex
	of map[string]uint64
}

func (r *reasons) add(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]uint64)
	}
	if _, ok := r.of[reason]; !ok && len(r.of) >= maxReasons {
		reason = reasonOther
	}
	r.of[reason]++
}

func (r *reasons) read() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.of)
}
