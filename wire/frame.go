package wire

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// Version is the version of the encoding, the first byte of every frame.
const Version = 5

// Bounds of a frame.
const (
	// MaxFrameBytes bounds the frame.
	MaxFrameBytes = 4 << 20
	// MaxFrameCells bounds the cells of all parts together, and likewise the
	// refusals.
	MaxFrameCells = 1 << 16
	// MaxShards bounds the shards of a daemon, and so the parts.
	MaxShards = 64
	// MaxViews bounds the regions whose staleness a part reports.
	MaxViews = gossip.MaxPeers
)

// Encode appends the frame of msgs to dst and returns the extended slice. There
// is at least one message; all have the same From, To, Shards and Header, and
// ascending shard numbers. Encode only reads them and keeps no part of them.
//
// Durations are rounded up to whole milliseconds, so that no view looks fresher
// than it is. Cells, refusals and buckets to repair may be in any order, and
// are decoded in that of Compare. No cell may occur twice; of several refusals
// of one cell the last is sent, and each bucket once. Regions and digests must
// ascend.
//
// On an error it returns dst as it was: a *SizeError when the messages exceed
// the bounds of a frame and must be split (Fit), a *FormatError when a message
// is not valid and can never be sent.
func Encode(dst []byte, msgs []gossip.Message) ([]byte, error) {
	var e Encoder
	return e.Encode(dst, msgs)
}

// Encode is the function Encode with the memory of the encoder.
func (e *Encoder) Encode(dst []byte, msgs []gossip.Message) ([]byte, error) {
	e.reset(append(dst, make([]byte, sealSize)...))
	if err := e.frame(msgs); err != nil {
		return dst, err
	}
	frame, head := e.b[len(dst):], &msgs[0]
	frame[0] = Version
	if len(frame) > MaxFrameBytes {
		return dst, &SizeError{What: "bytes", Got: len(frame), Max: MaxFrameBytes}
	}
	e.ends.seal(head.From, head.To, frame)
	return e.b, nil
}

// Fit returns how many of the first messages fit one frame whatever their
// content, but at least 1: the caller encodes those and continues with the
// rest. The messages of daemons with a few shards always fit; only resyncs of
// many shards do not. A message that an engine has bounded fits alone, unless
// its cells have almost nothing in common.
func Fit(msgs []gossip.Message) int {
	bytes, cells, refused := sealSize+64, 0, 0
	for i := range msgs {
		m := &msgs[i]
		cells += len(m.Cells)
		refused += len(m.Refused)
		bytes += maxPart + maxCell*len(m.Cells) + maxRefusal*len(m.Refused) +
			maxView*len(m.Staleness) + maxDigest*len(m.Digests) + maxRepair*len(m.Repair) + maxRightsMessage*len(m.RightsMessages) + maxLoad*len(m.Loads)
		if i > 0 && (bytes > MaxFrameBytes || cells > MaxFrameCells || refused > MaxFrameCells) {
			return i
		}
	}
	return len(msgs)
}

// The maximum bytes of an item in a frame, including new incarnations and
// descriptions.
const (
	maxPart          = 128
	maxCell          = 152
	maxRefusal       = 56
	maxView          = 32
	maxDigest        = 11
	maxRepair        = 3
	maxRightsMessage = 104
	maxLoad          = 40
)

// Decode returns the messages of a frame from one incarnation to another, at
// least one. They share no memory with the frame; they and their cells are
// valid until the next call.
//
// It accepts exactly the output of Encode. The error is a *VersionError for a
// frame of another version, a *SizeError for one beyond the bounds, a
// *ChecksumError for one that was cut or changed, or that is of or for another
// incarnation, and a *FormatError otherwise.
// The memory that it allocates is at most some 250 bytes for each byte of the
// frame.
func (d *Decoder) Decode(from, to crdt.Incarnation, frame []byte) ([]gossip.Message, error) {
	d.ends.set(from, to)
	if err := checkEnvelope(frame, Version, sealSize, d.ends[:]); err != nil {
		return nil, err
	}
	d.reset(gossip.Message{From: from, To: to})
	msgs := d.frame(frame[sealSize:])
	if d.err != nil {
		return nil, d.err
	}
	return msgs, nil
}
