package wire

import (
	"bytes"
	"encoding/json"

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
	header, err := controlHeader(m)
	if err != nil {
		return dst, err
	}
	f := &rldv1.ControlFrame{From: uint64(m.From), To: uint64(m.To), Header: header, Base: m.Base}
	if err := putControl(f, m); err != nil {
		return dst, err
	}
	for i, r := range m.Raft {
		data, err := deterministic.Marshal(r)
		if err != nil {
			return dst, malformed("raft message %d: %v", i, err)
		}
		f.Raft = append(f.Raft, data)
	}
	return seal(dst, ControlVersion, f)
}

// DecodeControl returns the message of a frame, which shares no memory with it.
// Empty lists are nil. The message is valid on its own: its lists are bounded,
// its header is the one that EncodeControl writes, and its messages of raft are
// those that voters exchange. The receiver checks its sender and its content:
// the record and the entries are not decoded.
//
// The error is a *VersionError, a *SizeError, a *ChecksumError for a frame that
// was cut or changed, or a *FormatError. The memory that it allocates is at
// most some 150 bytes for each byte of the frame.
func DecodeControl(frame []byte) (*control.Message, error) {
	var f rldv1.ControlFrame
	if err := unseal(frame, ControlVersion, &f); err != nil {
		return nil, err
	}
	if n := len(f.Raft); n > control.MaxRaft { // before the work of a list without bounds
		return nil, &SizeError{What: "raft messages", Got: n, Max: control.MaxRaft}
	}
	m := &control.Message{From: crdt.Incarnation(f.From), To: crdt.Incarnation(f.To)}
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
	case r.GetFrom() == 0 || r.GetTo() == 0 || raft.IsLocalMsgTarget(r.GetFrom()) || raft.IsLocalMsgTarget(r.GetTo()):
		c.fail("raft message %d from voter %x to %x, want two voters", item, r.GetFrom(), r.GetTo())
	case len(r.GetResponses()) > 0:
		c.fail("raft message %d with %d responses, which only local messages have", item, len(r.GetResponses()))
	}
}
