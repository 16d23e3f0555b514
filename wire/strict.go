package wire

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/sticky"
)

// StrictVersion is the version of the encoding of messages about strict keys,
// the first byte of their frames.
const StrictVersion = 0x61

// The envelope of a frame about strict keys: where its checksum is, and its
// size.
const (
	strictChecksum = 1
	strictEnvelope = 5
)

// IsStrict reports whether a frame is one about strict keys, by its first byte.
func IsStrict(frame []byte) bool { return len(frame) > 0 && frame[0] == StrictVersion }

// EncodeStrict appends the frame that holds the message to dst and returns the
// extended slice. It only reads the message and keeps nothing. A message has
// one frame.
//
// On an error dst is returned as it was: a *SizeError when the message has too
// many of something or the frame would exceed MaxFrameBytes, so that it needs
// several, and a *FormatError when the message is not valid.
func EncodeStrict(dst []byte, m *sticky.Message) ([]byte, error) {
	if err := checkStrict(m); err != nil {
		return dst, err
	}
	e := encoder{b: append(dst, StrictVersion, 0, 0, 0, 0)}
	e.strict(m)
	frame := e.b[len(dst):]
	if len(frame) > MaxFrameBytes {
		return dst, &SizeError{What: "bytes", Got: len(frame), Max: MaxFrameBytes}
	}
	binary.LittleEndian.PutUint32(frame[strictChecksum:], crc32.Checksum(frame[strictEnvelope:], castagnoli))
	return e.b, nil
}

// DecodeStrict returns the message of a frame, which shares nothing with it.
// Empty lists come back nil. The message is valid on its own: bounded, lists
// ordered as package sticky says, and reasons known. Whether it is true, and
// from whom it says, is for who receives it to judge.
//
// It takes what EncodeStrict makes and nothing else. The error is a
// *VersionError, a *SizeError, a *ChecksumError for a frame that was cut or
// changed, or a *FormatError. What it allocates is bounded by the length of the
// frame: at most some 70 bytes for each of it.
func DecodeStrict(frame []byte) (*sticky.Message, error) {
	switch {
	case len(frame) > MaxFrameBytes:
		return nil, &SizeError{What: "bytes", Got: len(frame), Max: MaxFrameBytes}
	case len(frame) > 0 && frame[0] != StrictVersion:
		return nil, &VersionError{Got: frame[0], Want: StrictVersion}
	case len(frame) < strictEnvelope:
		return nil, malformed("frame of %d bytes, want at least %d", len(frame), strictEnvelope)
	}
	got := crc32.Checksum(frame[strictEnvelope:], castagnoli)
	if want := binary.LittleEndian.Uint32(frame[strictChecksum:]); got != want {
		return nil, &ChecksumError{Got: got, Want: want}
	}
	d := decoder{part: -1}
	m := new(sticky.Message)
	r := reader{d: &d, b: frame[strictEnvelope:]}
	r.strict(m)
	r.end()
	if d.err != nil {
		return nil, d.err
	}
	if err := checkStrict(m); err != nil {
		return nil, err
	}
	return m, nil
}

func (e *encoder) strict(m *sticky.Message) {
	e.word(strictFrom, uint64(m.From))
	e.word(strictTo, uint64(m.To))
	e.word(strictStamp, uint64(m.Stamp))
	e.uint(strictNumber, m.Number)
	e.flag(strictVoting, m.Voting)
	e.uint(strictGeneration, m.Generation)
	for i := range m.Requests {
		e.ask(&m.Requests[i])
	}
	for i := range m.Grants {
		e.grant(&m.Grants[i])
	}
	for i := range m.Accepts {
		e.accept(&m.Accepts[i])
	}
	for i := range m.Accepted {
		e.vote(&m.Accepted[i])
	}
	for i := range m.SnapshotRequests {
		e.copy(&m.SnapshotRequests[i])
	}
	for i := range m.SnapshotChunks {
		e.page(&m.SnapshotChunks[i])
	}
	for i := range m.Layouts {
		at := e.open(strictLayouts)
		e.layout(&m.Layouts[i])
		e.close(at)
	}
}

func (r *reader) strict(m *sticky.Message) {
	m.From = crdt.Incarnation(r.fixed(strictFrom))
	m.To = crdt.Incarnation(r.fixed(strictTo))
	m.Stamp = hlc.Timestamp(r.fixed(strictStamp))
	m.Number = r.uint(strictNumber)
	m.Voting = r.flag(strictVoting)
	m.Generation = r.uint(strictGeneration)
	m.Requests = readList(r, strictAsks, sticky.MaxItems, readAsk)
	m.Grants = readList(r, strictGrants, sticky.MaxItems, readGrant)
	m.Accepts = readList(r, strictAccepts, sticky.MaxItems, readAccept)
	m.Accepted = readList(r, strictVotes, sticky.MaxItems, readVote)
	m.SnapshotRequests = readList(r, strictCopies, sticky.MaxItems, readCopy)
	m.SnapshotChunks = readList(r, strictPages, sticky.MaxSnapshotChunks, readPage)
	m.Layouts = readList(r, strictLayouts, sticky.MaxLayouts, readLayout)
}
