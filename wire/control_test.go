package wire

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/georld/rld/control"
	rldv1 "github.com/georld/rld/proto/rld/v1"
)

func mustControl(t fataler, m *control.Message) []byte {
	frame, err := EncodeControl(nil, m)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	return frame
}

// sealedControl adds an envelope to a payload.
func sealedControl(payload []byte) []byte {
	frame := append(make([]byte, sealSize), payload...)
	frame[0] = ControlVersion
	SetControlChecksum(endsOf(exampleControl()), frame)
	return frame
}

// decodeExample decodes a frame of a stream with the ends of the examples.
func decodeExample(frame []byte) (*control.Message, error) {
	return DecodeControl(endsOf(exampleControl()), frame)
}

// frameOf returns the message of an example with another header.
func frameOf(header []byte) *rldv1.ControlFrame {
	f := &rldv1.ControlFrame{Header: header}
	putControl(f, exampleControl())
	return f
}

// withHeader returns the frame of an example with another header.
func withHeader(t fataler, header string) []byte {
	return sealedControl(marshal(t, frameOf([]byte(header))))
}

// exampleAsking is an example with a header.
func exampleAsking() *control.Message {
	return controlWith(func(m *control.Message) {
		m.Log, m.Answer = control.Recovery{Number: 1, Random: 2}, &control.Answer{Ask: 0x3333333333333333}
	})
}

func headerOf(t fataler, m *control.Message) string {
	header, err := controlHeader(m)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	return string(header)
}

func TestControlRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genControl(t)
		frame, err := EncodeControl([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		frame = bytes.TrimPrefix(frame, []byte("before"))
		if !IsControl(frame) || IsRights(frame) || IsStrict(frame) {
			t.Fatal("not recognized")
		}
		got, err := DecodeControl(endsOf(m), frame)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, protocmp.Transform()); diff != "" {
			t.Fatalf("-sent +received\n%s", diff)
		}
		if again := mustControl(t, got); !bytes.Equal(again, frame) {
			t.Fatalf("encoded again: %d bytes, want the same %d", len(again), len(frame))
		}
		bad := rapid.IntRange(0, len(frame)*8-1).Draw(t, "bit")
		frame[bad/8] ^= 1 << (bad % 8)
		if _, err := DecodeControl(endsOf(m), frame); err == nil {
			t.Fatalf("bit %d changed, and accepted", bad)
		}
	})
}

// FuzzDecodeControl decodes any bytes: as a frame, as the payload of one, and
// as the header and a raft message in one. A message that is accepted is valid:
// it can be encoded and decoded again.
func FuzzDecodeControl(f *testing.F) {
	gen := rapid.Custom(genControl)
	messages := []*control.Message{exampleControl(), exampleHeartbeat(), exampleRest(), exampleBeat(), exampleEntries()}
	for seed := range 8 {
		messages = append(messages, gen.Example(seed))
	}
	for _, m := range messages {
		var r []byte
		if len(m.Raft) > 0 {
			r = marshal(f, m.Raft[0])
		}
		f.Add(mustControl(f, m)[sealSize:], []byte(headerOf(f, m)), r)
	}
	f.Fuzz(func(t *testing.T, payload, header, r []byte) {
		decodeControlAny(t, payload)
		decodeControlAny(t, sealedControl(payload))
		f := frameOf(header)
		f.Raft = [][]byte{r}
		decodeControlAny(t, sealedControl(marshal(t, f)))
	})
}

// decodeControlAny decodes any frame and reports whether it was accepted.
func decodeControlAny(t fataler, given []byte) bool {
	frame := bytes.Clone(given)
	m, err := decodeExample(frame)
	if (m == nil) == (err == nil) {
		t.Fatalf("message %v beside the error %v", m, err)
	}
	if err != nil {
		return false
	}
	again, err := EncodeControl(nil, m)
	if err != nil {
		t.Fatalf("a decoded message cannot be encoded: %v", err)
	}
	if !bytes.Equal(frame, given) {
		t.Fatal("the frame was changed")
	}
	clear(frame) // the message does not share its memory
	twice, err := decodeExample(again)
	if diff := cmp.Diff(m, twice, protocmp.Transform()); err != nil || diff != "" {
		t.Fatalf("decoded again: %v\n-first +second\n%s", err, diff)
	}
	return true
}

// TestControlEdits changes a few bytes of valid payloads and headers behind a
// correct envelope.
func TestControlEdits(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := genControl(t)
		data := mustControl(t, m)[sealSize:]
		inHeader := rapid.Bool().Draw(t, "header")
		if inHeader {
			data = []byte(headerOf(t, m))
		}
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(data)).Draw(t, "at")
			b := rapid.OneOf(rapid.SampledFrom([]byte(" \"\\{}[],:019aF\x00\x80\xff")), rapid.Byte()).Draw(t, "byte")
			switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
			case kind == 0 || at == len(data):
				data = slices.Insert(data, at, b)
			case kind == 1:
				data[at] = b
			default:
				data = slices.Delete(data, at, at+1)
			}
		}
		if inHeader {
			data = marshal(t, frameOf(data))
		}
		verdicts[decodeControlAny(t, sealedControl(data))]++
	})
	if !testing.Short() && (verdicts[true] == 0 || verdicts[false] == 0) {
		t.Errorf("%d accepted and %d rejected, want some of each", verdicts[true], verdicts[false])
	}
}

func TestControlEnvelope(t *testing.T) {
	frame := mustControl(t, exampleHeartbeat())
	if IsControl(nil) || IsControl([]byte{Version}) || IsControl([]byte{RightsVersion}) || IsControl([]byte{StrictVersion}) {
		t.Error("a frame of another kind counts as one of the control log")
	}
	var version *VersionError
	if _, err := decodeExample([]byte{StrictVersion, 0, 0, 0, 0}); !errors.As(err, &version) {
		t.Errorf("frame about strict keys: %v", err)
	}
	var format *FormatError
	for n := range sealSize {
		if _, err := decodeExample(frame[:n]); !errors.As(err, &format) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	var sum *ChecksumError
	for n := sealSize; n < len(frame); n++ {
		if _, err := decodeExample(frame[:n]); !errors.As(err, &sum) {
			t.Errorf("cut to %d: %v", n, err)
		}
		decodeControlAny(t, sealedControl(frame[sealSize:n]))
	}
	var size *SizeError
	if _, err := decodeExample(make([]byte, MaxFrameBytes+1)); !errors.As(err, &size) {
		t.Errorf("large: %v", err)
	}
	if m, err := decodeExample(sealedControl(nil)); err != nil || m.State != 0 { // all fields are 0
		t.Errorf("empty payload: %v", err)
	}
}

// TestControlLater decodes a frame of a later version, whose fields that are
// unknown here are dropped. Those of a header are rejected: TestControlHeaders.
func TestControlLater(t *testing.T) {
	later := protowire.AppendString(protowire.AppendTag(nil, 1_000, protowire.BytesType), "later")
	m := exampleHeartbeat()
	m.Raft[0].ProtoReflect().SetUnknown(later)
	got, err := decodeExample(sealedControl(append(mustControl(t, m)[sealSize:], later...)))
	if diff := cmp.Diff(exampleHeartbeat(), got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// controlWith returns the example after a change.
func controlWith(change func(m *control.Message)) *control.Message {
	m := exampleControl()
	change(m)
	return m
}

// heartbeatWith returns the heartbeat after a change of its message of raft.
func heartbeatWith(change func(r *raftpb.Message)) *control.Message {
	m := exampleHeartbeat()
	change(m.Raft[0])
	return m
}

func founding(change func(g *control.FoundingMessage)) *control.Message {
	return controlWith(func(m *control.Message) {
		m.Founding = &control.FoundingMessage{Value: &control.Founding{}}
		change(m.Founding)
	})
}

// TestControlBounds encodes and decodes messages at and beyond their bounds.
func TestControlBounds(t *testing.T) {
	type message = control.Message
	tests := []struct {
		name string
		m    *message
		want string // "" for a valid one
	}{
		{"from 0", controlWith(func(m *message) { m.From = 0 }), "want none to be 0"},
		{"to 0", controlWith(func(m *message) { m.To = 0 }), "want none to be 0"},
		{"most entries", controlWith(func(m *message) { m.Entries = make([]control.Item, control.MaxEntries) }), ""},
		{"entries", controlWith(func(m *message) { m.Entries = make([]control.Item, control.MaxEntries+1) }), "frame of 257 entries, want at most 256"},
		{"most requests", controlWith(func(m *message) { m.Requests = make([]control.Request, control.MaxRequests) }), ""},
		{"requests", controlWith(func(m *message) { m.Requests = make([]control.Request, control.MaxRequests+1) }), "frame of 65 requests, want at most 64"},
		{"most emergency overrides", controlWith(func(m *message) { m.Emergencies = make([]control.Emergency, control.MaxEmergencies) }), ""},
		{"emergency overrides", controlWith(func(m *message) { m.Emergencies = make([]control.Emergency, control.MaxEmergencies+1) }), "frame of 65 emergency overrides, want at most 64"},
		{"most raft messages", controlWith(func(m *message) { m.Raft = slices.Repeat(exampleHeartbeat().Raft, control.MaxRaft) }), ""},
		{"raft messages", controlWith(func(m *message) { m.Raft = slices.Repeat(exampleHeartbeat().Raft, control.MaxRaft+1) }), "frame of 257 raft messages, want at most 256"},
		{"most founders", founding(func(g *control.FoundingMessage) {
			g.Founders, g.Value.Founders = make([]string, control.MaxFounders), make([]control.Founder, control.MaxFounders)
			g.Value.Regions = make([]control.FirstRegion, control.MaxRegions)
		}), ""},
		{"names of founders", founding(func(g *control.FoundingMessage) { g.Founders = make([]string, control.MaxFounders+1) }), "frame of 6 names of founders, want at most 5"},
		{"founders", founding(func(g *control.FoundingMessage) { g.Value.Founders = make([]control.Founder, control.MaxFounders+1) }), "frame of 6 founders, want at most 5"},
		{"regions", founding(func(g *control.FoundingMessage) {
			g.Value.Regions = make([]control.FirstRegion, control.MaxRegions+1)
		}), "frame of 65 regions, want at most 64"},
		{"empty raft message", heartbeatWith((*raftpb.Message).Reset), "raft message 0 of type MsgHup"},
		{"raft message of the two statements", heartbeatWith(func(r *raftpb.Message) { r.From, r.To = nil, nil }), ""},
		{"statement since a later one", controlWith(func(m *message) { m.State, m.Since = 7, 9 }), "statement 7"},
		{"statement since itself", controlWith(func(m *message) { m.State, m.Since = 7, 7 }), ""},
		{"changes since none", controlWith(func(m *message) { m.Changed = 1 }), "want no other parts"},
		{"unknown changes", controlWith(func(m *message) { m.State, m.Since, m.Changed = 7, 6, control.AllParts+1 }), "want no other parts"},
		{"raft message from a thread", heartbeatWith(func(r *raftpb.Message) { r.From = new(uint64(raft.LocalAppendThread)) }), "want two voters"},
		{"raft message to a thread", heartbeatWith(func(r *raftpb.Message) { r.To = new(uint64(raft.LocalApplyThread)) }), "want two voters"},
		{"raft message with responses", heartbeatWith(func(r *raftpb.Message) { r.Responses = make([]*raftpb.Message, 1) }), "raft message 0 with 1 responses"},
	}
	for number := int32(-1); number <= int32(len(raftpb.MessageType_name)); number++ {
		kind, want := raftpb.MessageType(number), ""
		if _, known := raftpb.MessageType_name[number]; !known || raft.IsLocalMsg(kind) {
			want = "want one that voters send each other"
		}
		m := heartbeatWith(func(r *raftpb.Message) { r.Type = &kind })
		tests = append(tests, struct {
			name string
			m    *message
			want string
		}{fmt.Sprintf("type %d", number), m, want})
	}
	for _, tt := range tests {
		out, sent := EncodeControl([]byte{1}, tt.m)
		f := &rldv1.ControlFrame{Header: []byte(headerOf(t, tt.m)), Entries: putItems(tt.m.Entries)}
		putControl(f, tt.m.Without())
		for _, r := range tt.m.Raft {
			f.Raft = append(f.Raft, marshal(t, r))
		}
		ends := endsOf(tt.m)
		frame := sealedControl(marshal(t, f))
		SetControlChecksum(ends, frame)
		_, received := DecodeControl(ends, frame)
		if tt.want == "" {
			if sent != nil || received != nil {
				t.Errorf("%s: %v, %v", tt.name, sent, received)
			}
			continue
		}
		for _, err := range []error{sent, received} {
			var format *FormatError
			var size *SizeError
			if !errors.As(err, &format) && !errors.As(err, &size) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		}
		if len(out) != 1 {
			t.Errorf("%s: %d bytes beside an error, want the one given", tt.name, len(out))
		}
	}
}

// TestControlTooLarge encodes a message that is within all other bounds and
// needs more than one frame, and the largest record.
func TestControlTooLarge(t *testing.T) {
	m := exampleControl()
	m.Base = make([]byte, control.MaxRecordBytes)
	mustControl(t, m)
	m.Base = make([]byte, MaxFrameBytes)
	var size *SizeError
	if out, err := EncodeControl([]byte{7}, m); !errors.As(err, &size) || len(out) != 1 || size.Max != MaxFrameBytes {
		t.Errorf("%d bytes, error %v, want the one given and a size", len(out), err)
	}
}

// TestControlRaftGarbage rejects bytes that are not a message of raft.
func TestControlRaftGarbage(t *testing.T) {
	f := frameOf(nil)
	f.Raft = [][]byte{{0xff}}
	var format *FormatError
	if m, err := decodeExample(sealedControl(marshal(t, f))); !errors.As(err, &format) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestControlStreams rejects frames of other streams.
func TestControlStreams(t *testing.T) {
	frame := mustControl(t, exampleRest())
	for i, change := range []func(e *ControlEnds){
		func(e *ControlEnds) { e.From++ }, func(e *ControlEnds) { e.To++ }, func(e *ControlEnds) { e.From, e.To = e.To, e.From },
		func(e *ControlEnds) { e.ID[15]++ }, func(e *ControlEnds) { e.Run[0]++ }, func(*ControlEnds) {},
	} {
		e := endsOf(exampleRest())
		change(e)
		var sum *ChecksumError
		if _, err := DecodeControl(e, frame); errors.As(err, &sum) != (i < 5) {
			t.Errorf("change %d: %v", i, err)
		}
	}
}

// TestControlSize bounds the messages that daemons exchange while nothing
// changes.
func TestControlSize(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    *control.Message
		most int
	}{
		{"comparison of versions", exampleControl(), 120},
		{"comparison without changes", exampleRest(), 16},
		{"heartbeat of a leader", exampleBeat(), 30},
		{"entry about a voter", exampleEntries(), 70},
	} {
		n := len(mustControl(t, tt.m))
		t.Logf("%s: %d bytes", tt.name, n)
		if n >= tt.most {
			t.Errorf("%s: %d bytes, want less than %d", tt.name, n, tt.most)
		}
	}
}

// TestControlAllocationBounded decodes the frames that need most memory for
// their length.
func TestControlAllocationBounded(t *testing.T) {
	header := headerOf(t, exampleAsking())
	list := func(name, item string) []byte {
		const n = 100_000
		return fmt.Appendf(nil, `%s,"%s":[%s]}`, header[:len(header)-1], name, strings.Repeat(item+",", n)+item)
	}
	many := func(tag protowire.Number) [][]byte {
		return [][]byte{bytes.Repeat(protowire.AppendBytes(protowire.AppendTag(nil, tag, protowire.BytesType), nil), 100_000)}
	}
	for _, tt := range []struct {
		name string
		f    *rldv1.ControlFrame
	}{
		{"record", &rldv1.ControlFrame{Header: []byte(header), Base: make([]byte, 100_000)}},
		{"entries", &rldv1.ControlFrame{Entries: slices.Repeat([]*rldv1.ControlItem{{}}, 100_000)}},
		{"entries in a header", &rldv1.ControlFrame{Header: list("entries", `{"seat":{}}`)}},
		{"requests", &rldv1.ControlFrame{Header: list("requests", "{}")}},
		{"refusals", &rldv1.ControlFrame{Header: list("refused", "{}")}},
		{"one large entry", &rldv1.ControlFrame{Header: list(`entries":[{"entry":[0]}],"later`, "0")}},
		{"raft messages", &rldv1.ControlFrame{Header: []byte(header), Raft: make([][]byte, 100_000)}},
		{"raft entries", &rldv1.ControlFrame{Header: []byte(header), Raft: many(7)}},
		{"raft responses", &rldv1.ControlFrame{Header: []byte(header), Raft: many(14)}},
	} {
		f := frameOf(tt.f.Header)
		f.Base, f.Raft, f.Entries, f.Packed = tt.f.Base, tt.f.Raft, tt.f.Entries, tt.f.Packed
		frame := sealedControl(marshal(t, f))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = decodeExample(frame)
		runtime.ReadMemStats(&after)
		got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(frame))
		t.Logf("%s: %d bytes for each", tt.name, got)
		if got > 190 {
			t.Errorf("%s: %d bytes allocated for each of the frame, want at most 190", tt.name, got)
		}
	}
}

func BenchmarkControl(b *testing.B) {
	for _, tt := range []struct {
		name string
		m    *control.Message
	}{{"comparison", exampleControl()}, {"heartbeat", exampleHeartbeat()}} {
		frame := mustControl(b, tt.m)
		b.Run("encode/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = EncodeControl(frame[:0], tt.m)
			}
		})
		b.Run("decode/"+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = decodeExample(frame)
			}
		})
	}
}
