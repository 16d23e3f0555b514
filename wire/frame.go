package wire

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
)

// Version is the version of the encoding, the first byte of every frame.
const Version = 1

// The bounds of a frame.
const (
	// MaxFrameBytes bounds the frame.
	MaxFrameBytes = 4 << 20
	// MaxFrameCells bounds the cells of all parts together, and so the
	// refused ones.
	MaxFrameCells = 1 << 16
	// MaxShards bounds the shards of a daemon, and so the parts.
	MaxShards = 64
	// MaxViews bounds the regions of which a part tells the age.
	MaxViews = gossip.MaxPeers
)

// The envelope: where its fields start, and its size.
const (
	atChecksum   = 1
	atChecked    = 5 // what the checksum is of
	atFrom       = 5
	atTo         = 13
	atStamp      = 21
	atRules      = 29
	envelopeSize = 37
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode appends the frame that holds msgs to dst and returns the extended
// slice. msgs is at least one message; they have the same From, To, Shards and
// Header, and ascending numbers of shards. Encode only reads them and keeps
// nothing.
//
// Durations travel in whole milliseconds, rounded up, so that nothing looks
// younger than it is. Cells, refusals and buckets to repair may come in any
// order, and arrive in that of Compare. No cell may come twice; of several
// refusals of one cell the last arrives, and each bucket once. Regions and
// digests must be ascending.
//
// On an error dst is returned as it was: a *SizeError when the messages exceed
// the bounds of a frame and need several (Fit), a *FormatError when a message is
// not valid and can never be sent.
func Encode(dst []byte, msgs []gossip.Message) ([]byte, error) {
	e := encoder{b: append(dst, make([]byte, envelopeSize)...)}
	if err := e.frame(msgs); err != nil {
		return dst, err
	}
	frame := e.b[len(dst):]
	if len(frame) > MaxFrameBytes {
		return dst, &SizeError{What: "bytes", Got: len(frame), Max: MaxFrameBytes}
	}
	head := &msgs[0]
	frame[0] = Version
	binary.LittleEndian.PutUint64(frame[atFrom:], uint64(head.From))
	binary.LittleEndian.PutUint64(frame[atTo:], uint64(head.To))
	binary.LittleEndian.PutUint64(frame[atStamp:], uint64(head.Stamp))
	binary.LittleEndian.PutUint64(frame[atRules:], head.Rules)
	binary.LittleEndian.PutUint32(frame[atChecksum:], crc32.Checksum(frame[atChecked:], castagnoli))
	return e.b, nil
}

// Fit returns how many of the first messages fit one frame whatever they hold,
// but at least 1: the caller encodes those, and goes on with the rest. All
// messages of daemons of a few shards fit; it is the sweeps of many that do
// not. A message that an engine has bounded fits alone, unless its cells have
// next to nothing in common.
func Fit(msgs []gossip.Message) int {
	bytes, cells, refused := envelopeSize+64, 0, 0
	for i := range msgs {
		m := &msgs[i]
		cells += len(m.Cells)
		refused += len(m.Refused)
		bytes += maxPart + maxCell*len(m.Cells) + maxRefusal*len(m.Refused) +
			maxView*len(m.Staleness) + maxDigest*len(m.Digests) + maxRepair*len(m.Repair) + maxRightsMessage*len(m.RightsMessages)
		if i > 0 && (bytes > MaxFrameBytes || cells > MaxFrameCells || refused > MaxFrameCells) {
			return i
		}
	}
	return len(msgs)
}

// The most bytes that something can take in a frame, with its share of the
// tables and of what is around it.
const (
	maxPart          = 128
	maxCell          = 160
	maxRefusal       = 64
	maxView          = 32
	maxDigest        = 11
	maxRepair        = 3
	maxRightsMessage = 112
)

// Decode returns the messages of a frame, at least one. They share nothing
// with it nor with each other. Empty lists come back nil.
//
// It takes what Encode makes and nothing else. The error is a *VersionError
// for a frame of another version, a *SizeError for one beyond the bounds, a
// *ChecksumError for one that was cut or changed, and a *FormatError for
// anything else. What it allocates is bounded by the length of the frame: at
// most some 250 bytes for each of it.
func Decode(frame []byte) ([]gossip.Message, error) {
	switch {
	case len(frame) > MaxFrameBytes:
		return nil, &SizeError{What: "bytes", Got: len(frame), Max: MaxFrameBytes}
	case len(frame) > 0 && frame[0] != Version:
		return nil, &VersionError{Got: frame[0], Want: Version}
	case len(frame) < envelopeSize:
		return nil, malformed("frame of %d bytes, want at least %d", len(frame), envelopeSize)
	}
	got := crc32.Checksum(frame[atChecked:], castagnoli)
	if want := binary.LittleEndian.Uint32(frame[atChecksum:]); got != want {
		return nil, &ChecksumError{Got: got, Want: want}
	}
	d := decoder{
		head: gossip.Message{
			From: crdt.Incarnation(binary.LittleEndian.Uint64(frame[atFrom:])),
			To:   crdt.Incarnation(binary.LittleEndian.Uint64(frame[atTo:])),
			Header: gossip.Header{
				Stamp: hlc.Timestamp(binary.LittleEndian.Uint64(frame[atStamp:])),
				Rules: binary.LittleEndian.Uint64(frame[atRules:]),
			},
		},
		part: -1,
	}
	msgs := d.frame(frame[envelopeSize:])
	if d.err != nil {
		return nil, d.err
	}
	return msgs, nil
}
