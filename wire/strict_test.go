package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// length is the wire type of protobuf of a field with a length.
const length = 2

func TestStrictRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genStrict(t)
		frame, err := EncodeStrict([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		frame = bytes.TrimPrefix(frame, []byte("before"))
		if !IsStrict(frame) || IsRights(frame) {
			t.Fatal("not recognized")
		}
		got, err := DecodeStrict(frame)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("got %+v\nwant %+v", got, m)
		}
		again, err := EncodeStrict(nil, got)
		if err != nil || !bytes.Equal(again, frame) {
			t.Fatalf("encoded again: %v, %d bytes, want the same %d", err, len(again), len(frame))
		}
		bad := rapid.IntRange(0, len(frame)*8-1).Draw(t, "bit")
		frame[bad/8] ^= 1 << (bad % 8)
		if _, err := DecodeStrict(frame); err == nil {
			t.Fatalf("bit %d changed, and accepted", bad)
		}
	})
}

// FuzzDecodeStrict decodes any bytes, with and without a correct envelope. A
// message that is accepted is valid: it can be encoded and decoded again.
func FuzzDecodeStrict(f *testing.F) {
	gen := rapid.Custom(genStrict)
	for seed := range 8 {
		f.Add(mustStrict(f, gen.Example(seed))[sealSize:])
	}
	f.Add(mustStrict(f, exampleRequest())[sealSize:])
	f.Add(mustStrict(f, exampleGrant())[sealSize:])
	f.Fuzz(func(t *testing.T, payload []byte) {
		decodeStrictAny(t, payload)
		decodeStrictAny(t, sealedStrict(payload))
	})
}

// decodeStrictAny decodes any frame and reports whether it was accepted.
func decodeStrictAny(t fataler, frame []byte) bool {
	given := bytes.Clone(frame)
	m, err := DecodeStrict(frame)
	if (m == nil) == (err == nil) {
		t.Fatalf("message %v beside the error %v", m, err)
	}
	if err != nil {
		return false
	}
	again, err := EncodeStrict(nil, m)
	if err != nil {
		t.Fatalf("a decoded message cannot be encoded: %v", err)
	}
	if !bytes.Equal(frame, given) {
		t.Fatal("the frame was changed")
	}
	if twice, err := DecodeStrict(again); err != nil || !reflect.DeepEqual(twice, m) {
		t.Fatalf("decoded again: %v\n is %+v\nwas %+v", err, twice, m)
	}
	return true
}

// TestStrictEdits changes a few bytes of valid frames behind a correct
// envelope.
func TestStrictEdits(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		payload := mustStrict(t, genStrict(t))[sealSize:]
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			at := rapid.IntRange(0, len(payload)).Draw(t, "at")
			b := rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 2, 0x7f, 0x80, 0xff}), rapid.Byte()).Draw(t, "byte")
			switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
			case kind == 0 || at == len(payload):
				payload = slices.Insert(payload, at, b)
			case kind == 1:
				payload[at] = b
			default:
				payload = slices.Delete(payload, at, at+1)
			}
		}
		verdicts[decodeStrictAny(t, sealedStrict(payload))]++
	})
	if !testing.Short() && (verdicts[true] == 0 || verdicts[false] == 0) {
		t.Errorf("%d accepted and %d rejected, want some of each", verdicts[true], verdicts[false])
	}
}

func TestStrictEnvelope(t *testing.T) {
	frame := mustStrict(t, exampleRequest())
	if IsStrict(nil) || IsStrict([]byte{Version}) || IsStrict([]byte{RightsVersion}) {
		t.Error("a frame of another kind counts as one about strict keys")
	}
	var version *VersionError
	if _, err := DecodeStrict([]byte{RightsVersion, 0, 0, 0, 0}); !errors.As(err, &version) {
		t.Errorf("frame about rights: %v", err)
	}
	var format *FormatError
	for n := range sealSize {
		if _, err := DecodeStrict(frame[:n]); !errors.As(err, &format) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	var sum *ChecksumError
	for n := sealSize; n < len(frame); n++ {
		if _, err := DecodeStrict(frame[:n]); !errors.As(err, &sum) {
			t.Errorf("cut to %d: %v", n, err)
		}
		decodeStrictAny(t, sealedStrict(frame[sealSize:n]))
	}
	var size *SizeError
	if _, err := DecodeStrict(make([]byte, MaxFrameBytes+1)); !errors.As(err, &size) {
		t.Errorf("large: %v", err)
	}
	if got, err := DecodeStrict(sealedStrict(nil)); err != nil || !reflect.DeepEqual(got, new(sticky.Message)) {
		t.Errorf("empty message: %+v, %v", got, err)
	}
}

// TestStrictOutOfRange decodes values that the generated types can hold and
// package sticky cannot.
func TestStrictOutOfRange(t *testing.T) {
	hops := &rldv1.StrictFrame{Requests: []*rldv1.LeaseRequest{{Hops: 256}}}
	if m, err := DecodeStrict(sealedStrict(marshal(t, hops))); err != nil || m.Requests[0].Hops != 255 {
		t.Errorf("256 hops: %+v, %v, want 255", m, err)
	}
	notText := []byte{13<<3 | length, 5, 2<<3 | length, 3, 1<<3 | length, 1, 0xff}
	for _, tt := range []struct {
		name    string
		payload []byte
		want    string
	}{
		{"reason of a grant", marshal(t, &rldv1.StrictFrame{Grants: []*rldv1.LeaseGrant{{Reason: 256}}}), "want at most 9"},
		{"reason of an answer", marshal(t, &rldv1.StrictFrame{Accepted: []*rldv1.WatermarkAccepted{{Reason: 1 << 31}}}), "want at most 9"},
		{"name that is no UTF-8", notText, "invalid UTF-8"},
		{"field that is cut", []byte{7<<3 | length, 1}, "frame: "},
	} {
		var format *FormatError
		if m, err := DecodeStrict(sealedStrict(tt.payload)); !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v, want %q", tt.name, m, err, tt.want)
		}
	}
}

func marshal(t fataler, m proto.Message) []byte {
	b, err := deterministic.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Parts of messages, within bounds or not.

func names(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("r%03d", i))
	}
	return out
}

func watermarksOf(windows ...int64) (out sticky.Watermarks) {
	for _, l := range windows {
		out = append(out, sticky.Watermark{Window: l})
	}
	return out
}

func manyWatermarks(n int) sticky.Watermarks {
	out := make(sticky.Watermarks, n)
	for i := range out {
		out[i].Window = int64(i)
	}
	return out
}

func accepts(all ...sticky.Accept) sticky.Message       { return sticky.Message{Accepts: all} }
func answers(all ...sticky.Accepted) sticky.Message     { return sticky.Message{Accepted: all} }
func chunks(all ...sticky.SnapshotChunk) sticky.Message { return sticky.Message{SnapshotChunks: all} }

func records(all ...sticky.Record) sticky.Message { return chunks(sticky.SnapshotChunk{Records: all}) }

func layout(l route.Layout) sticky.Message { return sticky.Message{Layouts: []route.Layout{l}} }

func strictRegions(all ...route.Region) sticky.Message { return layout(route.Layout{Regions: all}) }

func pins(all ...route.Pin) sticky.Message { return layout(route.Layout{Pins: all}) }

var strictBounds = []struct {
	name string
	m    sticky.Message
	want string // "" for a valid one
}{
	{"most requests", sticky.Message{Requests: make([]sticky.LeaseRequest, sticky.MaxItems)}, ""},
	{"requests", sticky.Message{Requests: make([]sticky.LeaseRequest, sticky.MaxItems+1)}, "frame of 1025 "},
	{"grants", sticky.Message{Grants: make([]sticky.LeaseGrant, sticky.MaxItems+1)}, "frame of 1025 "},
	{"accepts", accepts(make([]sticky.Accept, sticky.MaxItems+1)...), "frame of 1025 "},
	{"accepted", answers(make([]sticky.Accepted, sticky.MaxItems+1)...), "frame of 1025 "},
	{"snapshot requests", sticky.Message{SnapshotRequests: make([]sticky.SnapshotRequest, sticky.MaxItems+1)}, "frame of 1025 "},
	{"snapshot chunks", chunks(sticky.SnapshotChunk{}, sticky.SnapshotChunk{}), "frame of 2 "},
	{"layouts", sticky.Message{Layouts: make([]route.Layout, 2)}, "frame of 2 "},
	{"most watermarks", accepts(sticky.Accept{Known: manyWatermarks(sticky.MaxWatermarks)}), ""},
	{"known", accepts(sticky.Accept{Known: manyWatermarks(sticky.MaxWatermarks + 1)}), "frame of 41 watermarks of one accept, want at most 40"},
	{"watermarks twice", accepts(sticky.Accept{}, sticky.Accept{Watermarks: watermarksOf(-1, 0, 0)}), "accept 1: watermarks are not ascending at 2"},
	{"held", answers(sticky.Accepted{Held: watermarksOf(2, 1)}), "accepted 0: watermarks are not ascending at 1"},
	{"last round", accepts(sticky.Accept{Ballot: sticky.Ballot{Round: sticky.MaxRound}}), ""},
	{"round of an accept", accepts(sticky.Accept{Ballot: sticky.Ballot{Round: sticky.MaxRound + 1}}), "accept 0: ballot of round 4611686018427387905"},
	{"round of an answer", answers(sticky.Accepted{Promised: sticky.Ballot{Round: sticky.MaxRound + 1}}), "accepted 0: ballot of round"},
	{"round of a record", records(sticky.Record{Ballot: sticky.Ballot{Round: sticky.MaxRound + 1}}), "record 0: ballot of round"},
	{
		"generations of a region", strictRegions(route.Region{Name: "a", Generations: make([]route.Generation, 1_025)}),
		"frame of 1025 generations, want at most 1024",
	},
	{"generations of an answer", answers(sticky.Accepted{Generations: make([]route.Generation, 1_025)}), "frame of 1025 generations, want at most 1024"},
	{"generations of a chunk", chunks(sticky.SnapshotChunk{Generations: make([]route.Generation, 1_025)}), "frame of 1025 generations, want at most 1024"},
	{"records", records(make([]sticky.Record, 1_025)...), "frame of 1025 "},
	{
		"records twice", records(sticky.Record{Key: crdt.Key(1<<32 | 2)}, sticky.Record{Key: crdt.Key(1<<32 | 2)}),
		"snapshot chunk: records are not ascending at 1",
	},
	{"record", records(sticky.Record{Watermarks: watermarksOf(1, 1)}), "record 0: watermarks are not ascending at 1"},
	{"longest name", strictRegions(route.Region{
		Name: strings.Repeat("x", MaxStrictName), Replicas: names(9),
	}), ""},
	{"long name", strictRegions(route.Region{Name: strings.Repeat("x", MaxStrictName+1)}), "want 1 to 255 bytes of UTF-8"},
	{"no name", strictRegions(route.Region{}), `layout: name "", want 1 to 255 bytes of UTF-8`},
	{"no text", strictRegions(route.Region{Name: "a\xff"}), `layout: name "a\xff", want 1 to 255 bytes of UTF-8`},
	{
		"replicas", strictRegions(route.Region{Name: "a", Replicas: names(10)}),
		"frame of 10 replicas of one region, want at most 9",
	},
	{"former", formers(route.FormerRegion{Name: "a", Replicas: []string{"b", "a"}}), `layout: names are not ascending at "a"`},
	{"former voters", formers(route.FormerRegion{Name: "a", Replicas: names(10)}), "frame of 10 replicas of one region, want at most 9"},
	{"former regions", formers(make([]route.FormerRegion, route.MaxRegions+1)...), "frame of 65 regions of a former layout, want at most 64"},
	{"former layouts", layouts(route.Layout{Formers: make([]route.Former, route.MaxFormers+1)}), "frame of 17 former layouts, want at most 16"},
	{"reserves", layouts(route.Layout{Reserves: make([]route.Reserves, route.MaxReserves+1)}), "frame of 17 numbers of reserves, want at most 16"},
	{
		"new reserves", layouts(route.Layout{Reserves: []route.Reserves{{New: make([]string, route.MaxRegions+1)}}}),
		"frame of 65 new regions with reserves, want at most 64",
	},
	{"new reserve without a name", layouts(route.Layout{Reserves: []route.Reserves{{New: []string{""}}}}), `layout: name "", want`},
	{"replica without a name", strictRegions(route.Region{Name: "a", Replicas: []string{""}}), `layout: name "", want`},
	{"regions", strictRegions(make([]route.Region, route.MaxRegions+1)...), "frame of 65 regions, want at most 64"},
	{
		"regions twice", strictRegions(route.Region{Name: "a"}, route.Region{Name: "a"}),
		"layout: regions are not ascending at 1",
	},
	{"pins", pins(make([]route.Pin, route.MaxPins+1)...), "frame of 1025 pins, want at most 1024"},
	{"pins twice", pins(route.Pin{Region: "a"}, route.Pin{Region: "b"}), "layout: pins are not ascending at 1"},
	{"pin to nowhere", pins(route.Pin{}), `layout: name "", want`},
	{"reason of a grant", sticky.Message{Grants: []sticky.LeaseGrant{{Reason: sticky.MaxReason + 1}}}, "want at most 9"},
	{"reason of an answer", answers(sticky.Accepted{Reason: sticky.MaxReason + 1}), "want at most 9"},
	{"reason of a chunk", chunks(sticky.SnapshotChunk{Reason: sticky.MaxReason + 1}), "want at most 9"},
}

func layouts(all ...route.Layout) sticky.Message { return sticky.Message{Layouts: all} }

func formers(regions ...route.FormerRegion) sticky.Message {
	return layouts(route.Layout{Formers: []route.Former{{Regions: regions}}})
}

// TestStrictBounds encodes and decodes messages at and beyond their bounds.
func TestStrictBounds(t *testing.T) {
	for _, tt := range strictBounds {
		out, sent := EncodeStrict([]byte{1}, &tt.m)
		received := sent
		if payload, err := deterministic.Marshal(strictFrame(&tt.m)); err == nil { // else no frame has it
			_, received = DecodeStrict(sealedStrict(payload))
		}
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

// TestStrictTooLarge encodes a message that is within all other bounds and
// needs more than one frame.
func TestStrictTooLarge(t *testing.T) {
	m := accepts(make([]sticky.Accept, sticky.MaxItems)...)
	m.Accepted = make([]sticky.Accepted, sticky.MaxItems)
	for i := range m.Accepts {
		all := make(sticky.Watermarks, sticky.MaxWatermarks)
		for j := range all {
			all[j] = sticky.Watermark{Window: int64(j+1) << 57, Amount: 1 << 63, End: -1 << 63}
		}
		m.Accepts[i].Known, m.Accepts[i].Watermarks, m.Accepted[i].Held = all, all, all
	}
	var size *SizeError
	if out, err := EncodeStrict([]byte{7}, &m); !errors.As(err, &size) || len(out) != 1 || size.Max != MaxFrameBytes {
		t.Errorf("%d bytes, error %v, want the one given and a size", len(out), err)
	}
}
