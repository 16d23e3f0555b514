package replica

import (
	"errors"
	"fmt"
	"sort"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/wire"
)

// Inbound is a frame of a peer: counts, a message about rights, one about
// strict keys, or one of the control log.
type Inbound struct {
	Counts  []gossip.Message
	Rights  *agent.Message
	Strict  *sticky.Message
	Control *control.Message
}

// Origin is the daemon at the other end of a stream, as its hello proved.
type Origin struct {
	Incarnation crdt.Incarnation
	Daemon      control.ID
	Run         control.Run
	// To is the incarnation at this end, which the other end's proof covers.
	To crdt.Incarnation
}

// ControlEnds returns the ends of the stream.
func (o Origin) ControlEnds() *wire.ControlEnds {
	return &wire.ControlEnds{From: o.Incarnation, To: o.To, ID: o.Daemon, Run: o.Run}
}

// FrameError rejects a frame that a peer may not send.
type FrameError struct {
	// Reason is the cause in one word, for metrics: version, size, checksum,
	// format or foreign_sender.
	Reason string
	Err    error
}

// Error returns the cause.
func (e *FrameError) Error() string { return e.Err.Error() }

// Decode decodes a frame of a peer and checks that it is the peer's own. Counts
// and messages of the control log that are of or for another incarnation, or of
// another daemon or run, have the reason checksum. All messages of a
// frame have one sender and one receiver. Counts are valid until the decoder is
// used again. An error is a *FrameError.
func Decode(d *wire.Decoder, from Origin, frame []byte) (Inbound, error) {
	var in Inbound
	var sender crdt.Incarnation
	var err error
	switch {
	case wire.IsRights(frame):
		if in.Rights, err = wire.DecodeRights(frame); err == nil {
			sender = in.Rights.From
		}
	case wire.IsStrict(frame):
		if in.Strict, err = wire.DecodeStrict(frame); err == nil {
			sender = in.Strict.From
		}
	case wire.IsControl(frame):
		if in.Control, err = wire.DecodeControl(from.ControlEnds(), frame); err == nil {
			sender = in.Control.From
		}
	default:
		if in.Counts, err = d.Decode(from.Incarnation, from.To, frame); err == nil {
			sender = in.Counts[0].From
		}
	}
	switch {
	case err != nil:
		return Inbound{}, &FrameError{reasonOf(err), err}
	case sender != from.Incarnation:
		return Inbound{}, &FrameError{"foreign_sender", fmt.Errorf("frame of incarnation %v, want its own, %v", sender, from.Incarnation)}
	}
	for i := range in.Counts {
		if n := len(in.Counts[i].Cells); n > gossip.DefaultFrameCells { // a shard is locked meanwhile
			return Inbound{}, &FrameError{"size", fmt.Errorf("%d cells in a message, want at most %d", n, gossip.DefaultFrameCells)}
		}
	}
	return in, nil
}

// reasonOf returns the reason of a frame that cannot be decoded.
func reasonOf(err error) string {
	var version *wire.VersionError
	var size *wire.SizeError
	var sum *wire.ChecksumError
	switch {
	case errors.As(err, &version):
		return "version"
	case errors.As(err, &size):
		return "size"
	case errors.As(err, &sum):
		return "checksum"
	}
	return "format"
}

// byPeer orders messages without copies to compare them: they are large.
type byPeer []gossip.Message

// Len, Less and Swap are sort's.
func (m byPeer) Len() int           { return len(m) }
func (m byPeer) Less(i, j int) bool { return m[i].To < m[j].To }
func (m byPeer) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }

// sortByPeer sorts messages by their receivers. Those of one shard are sorted
// already, and sort.Stable would allocate.
func sortByPeer(m byPeer) {
	for i := 1; i < len(m); i++ {
		if m.Less(i, i-1) {
			sort.Stable(m)
			return
		}
	}
}

// CountFrames encodes the counts that shards send, in the order of the shards,
// and sorts them by peer: messages to one peer share a frame if they fit. e is
// used for one call at a time. buffer returns memory for a frame, or nil. send
// gets the messages of each frame, and the frame or why they cannot be encoded.
// A message that is lost is sent again, because it is not acknowledged.
func CountFrames(e *wire.Encoder, out []gossip.Message, buffer func() []byte, send func(msgs []gossip.Message, frame []byte, err error)) {
	sortByPeer(out)
	for len(out) > 0 {
		n := 1
		for n < len(out) && out[n].To == out[0].To && out[n].Shard > out[n-1].Shard {
			n++
		}
		gossip.Unite(out[:n])
		for rest := out[:n]; len(rest) > 0; {
			fit := wire.Fit(rest)
			frame, err := e.Encode(buffer(), rest[:fit])
			send(rest[:fit], frame, err)
			rest = rest[fit:]
		}
		out = out[n:]
	}
}
