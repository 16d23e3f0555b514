package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/sticky/route"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	rldv1 "github.com/georld/rld/proto/rld/v1"
	"github.com/georld/rld/sticky"
)

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
		if fault := generatedFault(frame[strictEnvelope:], new(rldv1.StrictFrame)); fault != "" {
			t.Fatal(fault)
		}
		bad := rapid.IntRange(0, len(frame)*8-1).Draw(t, "bit")
		frame[bad/8] ^= 1 << (bad % 8)
		if _, err := DecodeStrict(frame); err == nil {
			t.Fatalf("bit %d changed, and taken", bad)
		}
	})
}

// FuzzDecodeStrict feeds DecodeStrict anything, as it is and behind an envelope
// that is right. What it takes is valid, encoded to the same bytes, and read and
// written alike by the generated code.
func FuzzDecodeStrict(f *testing.F) {
	gen := rapid.Custom(genStrict)
	for seed := range 8 {
		f.Add(mustStrict(f, gen.Example(seed))[strictEnvelope:])
	}
	f.Add(mustStrict(f, exampleAsk())[strictEnvelope:])
	f.Add(mustStrict(f, exampleGrant())[strictEnvelope:])
	f.Fuzz(func(t *testing.T, payload []byte) {
		decodeStrictAny(t, payload)
		decodeStrictAny(t, sealedStrict(payload))
	})
}

// decodeStrictAny reports whether a frame was taken.
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
		t.Fatalf("what was decoded is not encoded: %v", err)
	}
	if !bytes.Equal(again, given) || !bytes.Equal(frame, given) {
		t.Fatalf("encoded again\n is %x\nwas %x", again, given)
	}
	if fault := generatedFault(frame[strictEnvelope:], new(rldv1.StrictFrame)); fault != "" {
		t.Fatal(fault)
	}
	return true
}

// TestStrictEdits changes a few bytes of frames in the places where they mean
// something. Most edits are refused; what is taken has to be canonical.
func TestStrictEdits(t *testing.T) {
	verdicts := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		payload := mustStrict(t, genStrict(t))[strictEnvelope:]
		for range rapid.IntRange(1, 3).Draw(t, "edits") {
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
	if verdicts[true] == 0 || verdicts[false] == 0 {
		t.Errorf("%d taken and %d refused, want some of each", verdicts[true], verdicts[false])
	}
}

func TestStrictRefused(t *testing.T) {
	frame := mustStrict(t, exampleAsk())
	if IsStrict(nil) || IsStrict([]byte{Version}) || IsStrict([]byte{RightsVersion}) {
		t.Error("a frame of another kind is taken for one about strict keys")
	}
	var version *VersionError
	if _, err := DecodeStrict([]byte{RightsVersion, 0, 0, 0, 0}); !errors.As(err, &version) {
		t.Errorf("frame about rights: %v", err)
	}
	var format *FormatError
	for n := range strictEnvelope {
		if _, err := DecodeStrict(frame[:n]); !errors.As(err, &format) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	var sum *ChecksumError
	for n := strictEnvelope; n < len(frame); n++ {
		if _, err := DecodeStrict(frame[:n]); !errors.As(err, &sum) {
			t.Errorf("cut to %d: %v", n, err)
		}
		decodeStrictAny(t, sealedStrict(frame[strictEnvelope:n]))
	}
	var size *SizeError
	if _, err := DecodeStrict(make([]byte, MaxFrameBytes+1)); !errors.As(err, &size) {
		t.Errorf("large: %v", err)
	}
	if got, err := DecodeStrict(sealedStrict(nil)); err != nil || !reflect.DeepEqual(got, new(sticky.Message)) {
		t.Errorf("nothing to say: %+v, %v", got, err)
	}
}

// TestStrictOneForm: what has another form is refused in all others.
func TestStrictOneForm(t *testing.T) {
	field := func(t tag, content ...byte) []byte {
		return append([]byte{byte(t), byte(len(content))}, content...)
	}
	max64 := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	for _, tt := range []struct {
		name    string
		payload []byte
		want    string
	}{
		{"word of 0", []byte{byte(strictFrom), 0, 0, 0, 0, 0, 0, 0, 0}, "field 1 is 0 or no number"},
		{"word that is cut", []byte{byte(strictFrom), 1, 0, 0, 0, 0, 0, 0}, "word of 7 bytes, want 8"},
		{"number of 0", []byte{byte(strictNumber), 0}, "field 4 is 0 or no number"},
		{"long number", []byte{byte(strictNumber), 0x81, 0}, "longer than it must be"},
		{"large number", append([]byte{byte(strictNumber)}, append(max64[:9:9], 2)...), "too large"},
		{"flag of 2", []byte{byte(strictVoting), 2}, "field 5 is 2, want 1"},
		{"twice", []byte{byte(strictNumber), 1, byte(strictNumber), 1}, "field 4 of type 0 is unknown or out of place"},
		{"out of order", []byte{byte(strictGrants), 0, byte(strictAsks), 0}, "is unknown or out of place"},
		{"unknown", []byte{15<<3 | varint, 1}, "field 15 of type 0 is unknown or out of place"},
		{"unknown of an item", field(strictAsks, 15<<3|wide, 1), "field 15 of type 1 is unknown or out of place"},
		{"long length", []byte{byte(strictAsks), 0x80, 0}, "is cut, or its length not as short as can be"},
		{"cut item", []byte{byte(strictAsks), 1}, "is cut, or its length not as short as can be"},
		{"wait", field(strictAsks, byte(askWithin), 0x80, 0x80, 0x80, 0x80, 0x10), "field 13 is 4294967296, want at most 4294967295"},
		{"hops", field(strictAsks, byte(askHops), 0x80, 2), "field 14 is 256, want at most 255"},
		{"flags", field(strictGrants, byte(grantFlags), 8), "field 7 is 8, want at most 7"},
		{"reason", field(strictGrants, byte(grantWhy), byte(sticky.MaxReason)+1), "field 14 is 10, want at most 9"},
		{"empty name", field(strictLayouts, field(layoutRegions, field(regionName)...)...), "field 1 is empty, want it left out"},
		{"empty pin", field(strictLayouts, field(layoutPins, field(pinRegion)...)...), "field 2 is empty, want it left out"},
		{"weight", field(strictLayouts, field(layoutRegions, append([]byte{byte(regionWeight)}, max64...)...)...),
			"field 2 is 18446744073709551615, want at most 4294967295"},
	} {
		var format *FormatError
		if m, err := DecodeStrict(sealedStrict(tt.payload)); !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %+v, %v, want %q", tt.name, m, err, tt.want)
		}
	}
}

// Parts of messages that are within bounds or not.

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

func accepts(all ...sticky.Accept) sticky.Message      { return sticky.Message{Accepts: all} }
func votes(all ...sticky.Accepted) sticky.Message      { return sticky.Message{Accepted: all} }
func pages(all ...sticky.SnapshotChunk) sticky.Message { return sticky.Message{SnapshotChunks: all} }

func records(all ...sticky.Record) sticky.Message { return pages(sticky.SnapshotChunk{Records: all}) }

func layout(l route.Layout) sticky.Message { return sticky.Message{Layouts: []route.Layout{l}} }

func strictRegions(all ...route.Region) sticky.Message { return layout(route.Layout{Regions: all}) }

func pins(all ...route.Pin) sticky.Message { return layout(route.Layout{Pins: all}) }

var strictBounds = []struct {
	name string
	m    sticky.Message
	want string // "" for what is good
}{
	{"most asks", sticky.Message{Requests: make([]sticky.LeaseRequest, sticky.MaxItems)}, ""},
	{"asks", sticky.Message{Requests: make([]sticky.LeaseRequest, sticky.MaxItems+1)}, "frame of 1025 "},
	{"grants", sticky.Message{Grants: make([]sticky.LeaseGrant, sticky.MaxItems+1)}, "frame of 1025 "},
	{"raises", accepts(make([]sticky.Accept, sticky.MaxItems+1)...), "frame of 1025 "},
	{"votes", votes(make([]sticky.Accepted, sticky.MaxItems+1)...), "frame of 1025 "},
	{"copies", sticky.Message{SnapshotRequests: make([]sticky.SnapshotRequest, sticky.MaxItems+1)}, "frame of 1025 "},
	{"pages", pages(sticky.SnapshotChunk{}, sticky.SnapshotChunk{}), "frame of 2 "},
	{"layouts", sticky.Message{Layouts: make([]route.Layout, 2)}, "frame of 2 "},
	{"most marks", accepts(sticky.Accept{Known: manyWatermarks(sticky.MaxWatermarks)}), ""},
	{"known", accepts(sticky.Accept{Known: manyWatermarks(sticky.MaxWatermarks + 1)}), "frame of 41 marks of one raise, want at most 40"},
	{"marks twice", accepts(sticky.Accept{}, sticky.Accept{Watermarks: watermarksOf(-1, 0, 0)}), "raise 1: marks are not ascending at 2"},
	{"held", votes(sticky.Accepted{Held: watermarksOf(2, 1)}), "vote 0: marks are not ascending at 1"},
	{"last round", accepts(sticky.Accept{Ballot: sticky.Ballot{Round: sticky.MaxRound}}), ""},
	{"raise's round", accepts(sticky.Accept{Ballot: sticky.Ballot{Round: sticky.MaxRound + 1}}), "raise 0: ballot of round 4611686018427387905"},
	{"vote's round", votes(sticky.Accepted{Promised: sticky.Ballot{Round: sticky.MaxRound + 1}}), "vote 0: ballot of round"},
	{"record's round", records(sticky.Record{Ballot: sticky.Ballot{Round: sticky.MaxRound + 1}}), "record 0: ballot of round"},
	{"lives of a region", strictRegions(route.Region{Name: "a", Generations: make([]route.Generation, 1_025)}),
		"frame of 1025 lives, want at most 1024"},
	{"lives of a vote", votes(sticky.Accepted{Generations: make([]route.Generation, 1_025)}), "frame of 1025 lives, want at most 1024"},
	{"lives of a page", pages(sticky.SnapshotChunk{Generations: make([]route.Generation, 1_025)}), "frame of 1025 lives, want at most 1024"},
	{"records", records(make([]sticky.Record, 1_025)...), "frame of 1025 "},
	{"records twice", records(sticky.Record{Key: crdt.Key{Hi: 1, Lo: 2}}, sticky.Record{Key: crdt.Key{Hi: 1, Lo: 2}}),
		"page: records are not ascending at 1"},
	{"record", records(sticky.Record{Watermarks: watermarksOf(1, 1)}), "record 0: marks are not ascending at 1"},
	{"longest name", strictRegions(route.Region{
		Name: strings.Repeat("x", MaxStrictName), Replicas: names(9), Former: names(9),
	}), ""},
	{"long name", strictRegions(route.Region{Name: strings.Repeat("x", MaxStrictName+1)}), "want 1 to 255 bytes of UTF-8"},
	{"no name", strictRegions(route.Region{}), `layout: name "", want 1 to 255 bytes of UTF-8`},
	{"no text", strictRegions(route.Region{Name: "a\xff"}), `layout: name "a\xff", want 1 to 255 bytes of UTF-8`},
	{"replicas", strictRegions(route.Region{Name: "a", Replicas: names(10)}),
		"frame of 10 replicas of one region, want at most 9"},
	{"former", strictRegions(route.Region{Name: "a", Former: []string{"b", "a"}}), `layout: names are not ascending at "a"`},
	{"replica without a name", strictRegions(route.Region{Name: "a", Replicas: []string{""}}), `layout: name "", want`},
	{"regions", strictRegions(make([]route.Region, route.MaxRegions+1)...), "frame of 65 regions, want at most 64"},
	{"regions twice", strictRegions(route.Region{Name: "a"}, route.Region{Name: "a"}),
		"layout: regions are not ascending at 1"},
	{"pins", pins(make([]route.Pin, route.MaxPins+1)...), "frame of 1025 pins, want at most 1024"},
	{"pins twice", pins(route.Pin{Region: "a"}, route.Pin{Region: "b"}), "layout: pins are not ascending at 1"},
	{"pin to nowhere", pins(route.Pin{}), `layout: name "", want`},
	{"grant's reason", sticky.Message{Grants: []sticky.LeaseGrant{{Reason: sticky.MaxReason + 1}}}, "want at most 9"},
	{"vote's reason", votes(sticky.Accepted{Reason: sticky.MaxReason + 1}), "want at most 9"},
	{"page's reason", pages(sticky.SnapshotChunk{Reason: sticky.MaxReason + 1}), "want at most 9"},
}

// TestStrictBounds: what a receiver would refuse is not sent, and not taken
// when somebody sends it.
func TestStrictBounds(t *testing.T) {
	for _, tt := range strictBounds {
		e := encoder{}
		e.strict(&tt.m)
		_, received := DecodeStrict(sealedStrict(e.b))
		out, sent := EncodeStrict([]byte{1}, &tt.m)
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

// TestStrictTooLarge: a message that is within all other bounds may need more
// than one frame, and dst comes back as it was.
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
