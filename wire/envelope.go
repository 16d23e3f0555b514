package wire

import (
	"encoding/binary"
	"hash/crc32"

	"google.golang.org/protobuf/proto"

	"github.com/georld/rld/crdt"
)

// The envelope of every frame: its version, its checksum at atChecksum, and
// then the message, after a head of fixed size in a frame of counts. The
// checksum covers the version and all that follows the checksum, and in a frame
// of counts the incarnations at the ends of its stream.
const (
	atChecksum = 1
	sealSize   = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// deterministic writes equal messages as equal bytes within one build.
var deterministic = proto.MarshalOptions{Deterministic: true}

// seal appends the frame of a message to dst. On an error it returns dst as it
// was.
func seal(dst []byte, version byte, m proto.Message) ([]byte, error) {
	out, err := deterministic.MarshalAppend(append(dst, version, 0, 0, 0, 0), m)
	if err != nil {
		return dst, malformed("%v", err)
	}
	return checksummed(dst, out)
}

// checksummed completes the frame behind dst in out with its checksum. On an
// error it returns dst.
func checksummed(dst, out []byte) ([]byte, error) {
	frame := out[len(dst):]
	if len(frame) > MaxFrameBytes {
		return dst, &SizeError{What: "bytes", Got: len(frame), Max: MaxFrameBytes}
	}
	SetChecksum(frame)
	return out, nil
}

// SetChecksum sets the checksum of a frame that was changed by hand, of another
// kind than counts. The frame has at least the 5 bytes of an envelope.
func SetChecksum(frame []byte) {
	binary.LittleEndian.PutUint32(frame[atChecksum:], checksum(frame, nil))
}

// SetCountsChecksum does the same for a frame of counts from one incarnation to
// another.
func SetCountsChecksum(from, to crdt.Incarnation, frame []byte) {
	new(ends).seal(from, to, frame)
}

// ends is the incarnations at the ends of a stream, as bytes. Frames of counts
// do not contain them, since the hellos of the stream do; their checksum covers
// them.
type ends [16]byte

func (e *ends) set(from, to crdt.Incarnation) {
	binary.LittleEndian.PutUint64(e[:], uint64(from))
	binary.LittleEndian.PutUint64(e[8:], uint64(to))
}

// seal sets the checksum of a frame of counts.
func (e *ends) seal(from, to crdt.Incarnation, frame []byte) {
	e.set(from, to)
	binary.LittleEndian.PutUint32(frame[atChecksum:], checksum(frame, e[:]))
}

// checksum returns the checksum of a frame, of sealSize bytes at least. It
// covers the version, the ends of the stream of a frame of counts, and the
// content.
func checksum(frame, ends []byte) uint32 {
	sum := crc32.Update(crc32.Checksum(frame[:atChecksum], castagnoli), castagnoli, ends)
	return crc32.Update(sum, castagnoli, frame[sealSize:])
}

// unseal checks the envelope of a frame and decodes its message into m.
func unseal(frame []byte, version byte, m proto.Message) error {
	if err := checkEnvelope(frame, version, sealSize, nil); err != nil {
		return err
	}
	return decode(frame[sealSize:], m)
}

// checkEnvelope checks the size of a frame, its version and its checksum. ends
// is of the stream of a frame of counts, nil for others.
func checkEnvelope(frame []byte, version byte, least int, ends []byte) error {
	switch {
	case len(frame) > MaxFrameBytes:
		return &SizeError{What: "bytes", Got: len(frame), Max: MaxFrameBytes}
	case len(frame) > 0 && frame[0] != version:
		return &VersionError{Got: frame[0], Want: version}
	case len(frame) < least:
		return malformed("frame of %d bytes, want at least %d", len(frame), least)
	}
	got := checksum(frame, ends)
	if want := binary.LittleEndian.Uint32(frame[atChecksum:]); got != want {
		return &ChecksumError{Got: got, Want: want}
	}
	return nil
}

// decode decodes a generated message. Unknown fields are dropped.
func decode(payload []byte, m proto.Message) error {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(payload, m); err != nil {
		return malformed("frame: %v", err)
	}
	return nil
}

// listOf converts a list; an empty one is nil.
func listOf[S ~[]T, T, U any](in S, convert func(*T) U) []U {
	if len(in) == 0 {
		return nil
	}
	out := make([]U, len(in))
	for i := range in {
		out[i] = convert(&in[i])
	}
	return out
}

// fromList converts a list of generated messages; an empty one is nil.
func fromList[T, U any](in []*T, convert func(*T) U) []U {
	if len(in) == 0 {
		return nil
	}
	out := make([]U, len(in))
	for i := range in {
		out[i] = convert(in[i])
	}
	return out
}
