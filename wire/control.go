package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

// ControlVersion is the version of the encoding of messages of the control log,
// the first byte of their frames.
const ControlVersion = 0x81

// IsControl reports whether a frame is of the control log, by its first byte.
func IsControl(frame []byte) bool { return len(frame) > 0 && frame[0] == ControlVersion }

// ControlEnds are the ends of a stream of control messages, as its hellos prove
// them: the incarnations of the sender and the receiver, and the daemon that
// sends. Frames do not contain them; their checksum covers them.
type ControlEnds struct {
	From, To crdt.Incarnation
	ID       control.ID
	Run      control.Run
}

// covered returns the ends as bytes.
func (e *ControlEnds) covered() []byte {
	var incarnations ends
	incarnations.set(e.From, e.To)
	return slices.Concat(incarnations[:], e.ID[:], e.Run[:])
}

// SetControlChecksum sets the checksum of a frame of the control log that was
// changed by hand.
func SetControlChecksum(e *ControlEnds, frame []byte) {
	binary.LittleEndian.PutUint32(frame[atChecksum:], checksum(frame, e.covered()))
}

// EncodeControl appends the frame of a message to dst and returns the extended
// slice. It only reads the message and keeps no part of it. Equal messages have
// equal frames on all daemons of one build.
//
// On an error it returns dst as it was: a *SizeError when a list of the message
// is too long or the frame would exceed MaxFrameBytes, a *FormatError when the
// message is not valid.
func EncodeControl(dst []byte, m *control.Message) ([]byte, error) {
	if err := checkControl(m); err != nil {
		return dst, err
	}
	voter := m.Sender.Voter
	m = m.Without()
	header, err := controlHeader(m)
	if err != nil {
		return dst, err
	}
	f := &rldv1.ControlFrame{Header: header, Base: m.Base}
	putControl(f, m)
	for i, r := range m.Raft {
		data, err := deterministic.Marshal(lean(r, voter, m.ToVoter))
		if err != nil {
			return dst, malformed("raft message %d: %v", i, err)
		}
		f.Raft = append(f.Raft, data)
	}
	f.Entries = putItems(m.Entries)
	out, err := deterministic.MarshalAppend(append(dst, ControlVersion, 0, 0, 0, 0), f)
	if err != nil {
		return dst, malformed("%v", err)
	}
	if len(f.Header)+len(f.Base)+len(f.Entries)+len(f.Raft) > 0 { // a statement alone becomes no shorter
		out = deflated(out, len(dst)+sealSize)
	}
	if n := len(out) - len(dst); n > MaxFrameBytes {
		return dst, &SizeError{What: "bytes", Got: n, Max: MaxFrameBytes}
	}
	SetControlChecksum(endsOf(m), out[len(dst):])
	return out, nil
}

// endsOf returns the ends of the stream of a message.
func endsOf(m *control.Message) *ControlEnds {
	return &ControlEnds{m.From, m.To, m.Sender.ID, m.Sender.Run}
}

// lean returns a message of raft without what its frame leaves out: the two
// voters, if they are those of the statements.
func lean(r *raftpb.Message, from, to control.Number) *raftpb.Message {
	l := &raftpb.Message{
		Type: r.Type, From: some(r.From), To: some(r.To), Term: some(r.Term), LogTerm: some(r.LogTerm), Index: some(r.Index),
		Entries: r.Entries, Commit: some(r.Commit), Vote: some(r.Vote), Snapshot: r.Snapshot, Reject: some(r.Reject),
		RejectHint: some(r.RejectHint), Context: r.Context, Responses: r.Responses,
	}
	if r.GetFrom() == uint64(from) {
		l.From = nil
	}
	if r.GetTo() == uint64(to) {
		l.To = nil
	}
	return l
}

// some returns nil for a number of 0.
func some[T comparable](v *T) *T {
	if v != nil && *v == *new(T) {
		return nil
	}
	return v
}

// DecodeControl returns the message of a frame, which shares no memory with it.
// Empty lists are nil. The message is valid on its own: its lists are bounded,
// its header is the one that EncodeControl writes, and its messages of raft are
// those that voters exchange. The receiver checks its sender and its content:
// the record and the entries are not decoded. It lacks what Receive adds.
//
// The error is a *VersionError, a *SizeError, a *ChecksumError for a frame that
// was cut or changed or is of another stream, or a *FormatError. The memory
// that it allocates is at most some 150 bytes for each byte of the frame, or of
// what it was before it was compressed.
func DecodeControl(ends *ControlEnds, frame []byte) (*control.Message, error) {
	if err := checkEnvelope(frame, ControlVersion, sealSize, ends.covered()); err != nil {
		return nil, err
	}
	var f rldv1.ControlFrame
	if err := decode(frame[sealSize:], &f); err != nil {
		return nil, err
	}
	if len(f.Packed) > 0 {
		payload, err := inflated(f.Packed)
		if err != nil {
			return nil, err
		}
		f.Reset()
		if err := decode(payload, &f); err != nil {
			return nil, err
		}
		if len(f.Packed) > 0 {
			return nil, malformed("a frame that is compressed twice")
		}
	}
	if n := len(f.Raft); n > control.MaxRaft { // before the work of a list without bounds
		return nil, &SizeError{What: "raft messages", Got: n, Max: control.MaxRaft}
	}
	m := &control.Message{From: ends.From, To: ends.To}
	m.Sender.ID, m.Sender.Run = ends.ID, ends.Run
	if len(f.Header) > 0 {
		if err := json.Unmarshal(f.Header, m); err != nil {
			return nil, malformed("header: %.260v", err)
		}
	}
	if err := getControl(m, &f); err != nil {
		return nil, err
	}
	if len(f.Base) > 0 {
		m.Base = f.Base
	}
	for _, data := range f.Raft {
		var r raftpb.Message
		if err := decode(data, &r); err != nil {
			return nil, err
		}
		m.Raft = append(m.Raft, &r)
	}
	if err := checkControl(m); err != nil {
		return nil, err
	}
	if len(f.Header) > 0 {
		if err := checkControlHeader(f.Header, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// invalidUTF8 is what json.Marshal writes for a byte that is not UTF-8.
var invalidUTF8 = []byte(`\ufffd`)

// noHeader is the JSON form of a message with nothing for a header.
const noHeader = "{}"

// controlHeader returns the header of a message, nil for none.
func controlHeader(m *control.Message) ([]byte, error) {
	if headerless(m) {
		return nil, nil
	}
	header, err := json.Marshal(inHeader(m))
	switch {
	case err != nil:
		return nil, malformed("header: %.260v", err)
	case string(header) == noHeader:
		return nil, nil
	case bytes.Contains(header, invalidUTF8): // or the text means it
		var again control.Message
		if err := readControlHeader(header, &again); err != nil {
			return nil, err
		}
		return header, checkControlHeader(header, &again)
	}
	return header, nil
}

// readControlHeader sets the fields of m that a header contains. It rejects
// fields that are unknown.
func readControlHeader(header []byte, m *control.Message) error {
	d := json.NewDecoder(bytes.NewReader(header))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return malformed("header: %.260v", err)
	}
	return nil
}

// checkControlHeader rejects a header of m that controlHeader would not return.
func checkControlHeader(header []byte, m *control.Message) error {
	if want, err := json.Marshal(inHeader(m)); err != nil || !bytes.Equal(want, header) || string(header) == noHeader {
		if err := readControlHeader(header, &control.Message{}); err != nil { // names the field
			return err
		}
		return malformed("header of %d bytes, want %d: each field once and in order, UTF-8, no spaces, no empty lists",
			len(header), len(want))
	}
	return nil
}

// checkControl returns a *SizeError or a *FormatError for a message that
// exceeds a bound, or that no daemon may send.
func checkControl(m *control.Message) error {
	var c checker
	c.atMost("entries", len(m.Entries), control.MaxEntries)
	c.atMost("requests", len(m.Requests), control.MaxRequests)
	c.atMost("emergency overrides", len(m.Emergencies), control.MaxEmergencies)
	c.atMost("reasons to wait", len(m.Sender.Waits), control.MaxWaits)
	c.atMost("raft messages", len(m.Raft), control.MaxRaft)
	if g := m.Founding; g != nil {
		c.atMost("names of founders", len(g.Founders), control.MaxFounders)
		if v := g.Value; v != nil {
			c.atMost("founders", len(v.Founders), control.MaxFounders)
			c.atMost("regions", len(v.Regions), control.MaxRegions)
		}
	}
	if m.From == 0 || m.To == 0 {
		c.fail("message from incarnation %v to %v, want none to be 0", m.From, m.To)
	}
	c.statement(m)
	for i := 0; i < len(m.Raft) && c.err == nil; i++ {
		c.raft(i, m.Raft[i])
	}
	return c.err
}

// raft checks a message of raft: it is one that voters send each other.
func (c *checker) raft(item int, r *raftpb.Message) {
	_, known := raftpb.MessageType_name[int32(r.GetType())]
	switch {
	case !known || raft.IsLocalMsg(r.GetType()):
		c.fail("raft message %d of type %v, want one that voters send each other", item, r.GetType())
	case raft.IsLocalMsgTarget(r.GetFrom()) || raft.IsLocalMsgTarget(r.GetTo()): // 0 is of the two statements
		c.fail("raft message %d from voter %x to %x, want two voters", item, r.GetFrom(), r.GetTo())
	case len(r.GetResponses()) > 0:
		c.fail("raft message %d with %d responses, which only local messages have", item, len(r.GetResponses()))
	}
}

// statement checks the numbers of the statements that a message refers to.
func (c *checker) statement(m *control.Message) {
	switch {
	case m.Since > m.State:
		c.fail("statement %d that changed since statement %d, want an earlier one", m.State, m.Since)
	case m.Since == 0 && m.Changed != 0 || m.Changed&^control.AllParts != 0:
		c.fail("statement %d changed since %d in %x, want no other parts than %x, and none since 0", m.State, m.Since, m.Changed, control.AllParts)
	}
}
