package link

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// State is what a stream is doing.
type State string

// The states of a stream. An accepted one is always up.
const (
	StateConnecting State = "connecting"
	StateUp         State = "up"
	StateWaiting    State = "waiting" // to be dialed again
)

// Traffic is what went one way. A frame that was packed counts with its packed
// size; what TLS, HTTP/2 and TCP add is not in it. A list of members counts as
// a frame.
type Traffic struct{ Frames, Bytes uint64 }

// Stream describes a target or an accepted stream.
type Stream struct {
	// Incoming says that the peer has dialed it.
	Incoming bool
	// Addr is what is dialed; of an accepted stream, where its peer says that
	// it takes streams.
	Addr string
	// Remote is where an accepted stream comes from.
	Remote string
	// Region and WAN are those of the target.
	Region string
	WAN    bool

	State State
	Since time.Time // of the state
	// Hello is who is at the other end, or was there last: zero when nobody
	// ever was.
	Hello Hello

	// Sent and Received are since the target is one, over all its streams.
	Sent, Received Traffic
	// Dropped is frames that were not sent: the queue was full, or the stream
	// ended before.
	Dropped uint64
	// Queued is frames in the queue now.
	Queued int
	// Attempts is how often the target was dialed.
	Attempts uint64
	// Err is why there was no stream at last, and ErrAt when; nil when never.
	Err   error
	ErrAt time.Time
}

// Stats is totals since the Host was made, but for streams, which are those of
// now. The maps are the caller's.
type Stats struct {
	Outgoing, Accepted int
	Sent, Received     Traffic
	// Dropped is frames that were not sent.
	Dropped uint64
	// Refused is handshakes that this daemon refused, by reason; RejectedPeers
	// is the refusals and drops of its own streams by peers.
	Refused, RejectedPeers map[string]uint64
	// ProtocolErrors is streams that were dropped for what came over them, by reason.
	ProtocolErrors map[string]uint64
	// Faulty is frames that the handler refused without dropping the stream.
	Faulty uint64
}

// Streams describes every target, by address, and then every accepted stream,
// by address and age.
func (h *Host) Streams() []Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Stream, 0, len(h.targets)+len(h.accepted))
	for _, t := range h.targets {
		all = append(all, t.describe())
	}
	for a := range h.accepted {
		all = append(all, Stream{
			Incoming: true, Addr: a.hello.Member.Addr, Remote: a.remote,
			State: StateUp, Since: a.since, Hello: a.hello,
			Sent: a.counts.sent.read(), Received: a.counts.received.read(),
		})
	}
	slices.SortFunc(all, func(a, b Stream) int {
		if a.Incoming != b.Incoming {
			if b.Incoming {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), a.Since.Compare(b.Since), cmp.Compare(a.Remote, b.Remote))
	})
	return all
}

func (t *target) describe() Stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Stream{
		Addr: t.Addr, Region: t.Region, WAN: t.WAN,
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
		Refused: c.refused.read(), RejectedPeers: c.turnedAway.read(), ProtocolErrors: c.protocolErrors.read(),
	}
}

// counts is the totals of a Host.
type counts struct {
	streamCounts
	outgoing                            atomic.Int64
	faulty                              atomic.Uint64
	refused, turnedAway, protocolErrors reasons
}

// streamCounts is the totals of a target or an accepted stream.
type streamCounts struct {
	sent, received counter
	dropped        atomic.Uint64
}

// counter counts what goes one way.
type counter struct{ frames, bytes atomic.Uint64 }

func (c *counter) add(size int) {
	c.frames.Add(1)
	c.bytes.Add(uint64(size))
}

func (c *counter) read() Traffic { return Traffic{Frames: c.frames.Load(), Bytes: c.bytes.Load()} }

// maxReasons bounds the reasons told apart, as a Handler may make up its own.
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
	copied := make(map[string]uint64, len(r.of))
	for reason, n := range r.of {
		copied[reason] = n
	}
	return copied
}
