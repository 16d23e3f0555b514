package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/prior"
)

// wantError compares the text of an error.
func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%s\n got %v\nwant %s", name, err, want)
	}
}

// TestEncodeErrors: what Decode would refuse is not sent.
func TestEncodeErrors(t *testing.T) {
	two := func(change func(first, second *gossip.Message)) []gossip.Message {
		msgs := shards(2, idle())
		change(&msgs[0], &msgs[1])
		return msgs
	}
	one := func(change func(m *gossip.Message)) []gossip.Message {
		m := example()
		change(&m)
		return []gossip.Message{m}
	}
	for _, test := range []struct {
		name string
		msgs []gossip.Message
		want string
	}{
		{"none", nil, "wire: no messages, want at least one"},
		{
			"itself", one(func(m *gossip.Message) { m.To = m.From }),
			"wire: message from 1111111111111111 to itself",
		},
		{
			"shards", one(func(m *gossip.Message) { m.Shards = 65 }),
			"wire: message of one of 65 shards, want 1 to 64",
		},
		{
			"header", two(func(_, b *gossip.Message) { b.Nonce++ }),
			"wire: message 1 differs from message 0 in what a frame holds once",
		},
		{
			"shard twice", two(func(_, b *gossip.Message) { b.Shard = 0 }),
			"wire: message 1 is of shard 0, want 1 to 1",
		},
		{
			"versions", one(func(m *gossip.Message) { m.Lo, m.Hi = 6, 5 }),
			"wire: shard 0: versions (6, 5] are none",
		},
		{
			"unsent", one(func(m *gossip.Message) { m.Unsent = -1 }),
			"wire: shard 0: age of -1ns or 120ms, want 0 or more",
		},
		{
			"age", one(func(m *gossip.Message) { m.Staleness[1].Age = -1 }),
			"wire: shard 0: age of -1ns, want 0 or more",
		},
		{
			"regions", one(func(m *gossip.Message) { slices.Reverse(m.Staleness) }),
			"wire: shard 0: regions are not ascending at 1",
		},
		{
			"too many regions", one(func(m *gossip.Message) { m.Staleness = make([]gossip.Staleness, 4097) }),
			"wire: frame of 4097 regions, want at most 4096",
		},
		{
			"digests", one(func(m *gossip.Message) { m.Digests[1].Bucket = 0 }),
			"wire: shard 0: digests are not ascending at 1",
		},
		{
			"kind", one(func(m *gossip.Message) { m.Cells[3].Kind = 5 }),
			"wire: shard 0: cell of kind 5, want at most 4",
		},
		{
			"cell twice", one(func(m *gossip.Message) { m.Cells[1] = m.Cells[0] }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2 " +
				"is there twice",
		},
		{
			"width", one(func(m *gossip.Message) { m.Cells[0].WindowLength = 0 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2: " +
				"width below 1 ms",
		},
		{
			"carry", one(func(m *gossip.Message) { m.Cells[0].Carry = -1 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2: " +
				"carry below 0 ms",
		},
		{
			"refund", one(func(m *gossip.Message) { m.Cells[0].Value.N = 301 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-301: " +
				"a daemon refunded more than it admitted",
		},
		{
			"reason", one(func(m *gossip.Message) { m.Refused[0].Reason = 0 }),
			"wire: shard 0: refusal for reason 0, want 1 to 3",
		},
		{
			"rights with a rate", one(func(m *gossip.Message) { m.Cells[3].Kind, m.Cells[3].Rate = gossip.Given, 1 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 given to 000000000000aaaa: 900-0: " +
				"rights with more than what was given",
		},
		{
			"level of a daemon", one(func(m *gossip.Message) { m.Cells[0].Level = 1 }),
			"wire: shard 0: cell 0000000000000001@1799999990000 daemon 1111111111111111: 300-2: " +
				"level of a bucket that it does not describe",
		},
		{
			"note", one(func(m *gossip.Message) { m.RightsMessages = []gossip.RightsMessage{{Kind: 9}} }),
			"wire: shard 0: rights message of kind 9, want 1 to 5",
		},
		{
			"load", one(func(m *gossip.Message) { m.Loads = []gossip.LoadReport{{Load: prior.Load{Offered: 1, Doubted: 2}}} }),
			"wire: shard 0: load 0: more hits than a load may have, or more doubted than offered",
		},
		{
			"loads", one(func(m *gossip.Message) { m.Loads = make([]gossip.LoadReport, gossip.MaxLoads+1) }),
			"wire: frame of 257 loads, want at most 256",
		},
		{
			"refused kind", one(func(m *gossip.Message) { m.Refused[1].Kind = 7 }),
			"wire: shard 0: refusal of kind 7, want at most 4",
		},
		{"too many cells", two(func(a, b *gossip.Message) {
			b.Cells = busy(MaxFrameCells, 1).Cells
			a.Cells = b.Cells[:1]
		}), "wire: frame of 65537 cells, want at most 65536"},
		{"too many refusals", one(func(m *gossip.Message) {
			m.Refused = make([]gossip.Refusal, MaxFrameCells+1)
		}), "wire: frame of 65537 refusals, want at most 65536"},
		{"too many bytes", shards(1, scattered(MaxFrameCells)), "wire: frame of 7962424 bytes, want at most 4194304"},
	} {
		dst := []byte("as it was")
		got, err := Encode(dst, test.msgs)
		wantError(t, test.name, err, test.want)
		if string(got) != "as it was" {
			t.Errorf("%s: beside the error there are bytes: %x", test.name, got)
		}
	}
}

// seal puts an envelope around a payload.
func sealFrame(from, to crdt.Incarnation, payload []byte) []byte {
	frame := make([]byte, sealSize, sealSize+len(payload))
	frame[0] = Version
	return reseal(from, to, append(frame, payload...))
}

// reseal makes version and checksum of a frame right.
func reseal(from, to crdt.Incarnation, frame []byte) []byte {
	frame[0] = Version
	SetCountsChecksum(from, to, frame)
	return frame
}

func TestEnvelopeErrors(t *testing.T) {
	frame := mustEncode(t, idle())
	change := func(i int, b byte) []byte {
		changed := bytes.Clone(frame)
		changed[i] = b
		return changed
	}
	for _, test := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"empty", nil, "wire: frame of 0 bytes, want at least 5"},
		{"short", frame[:4], "wire: frame of 4 bytes, want at least 5"},
		{"version", change(0, 1), "wire: frame of version 1, want 3, the only one known here"},
		{"short, of another version", []byte{9}, "wire: frame of version 9, want 3, the only one known here"},
		{"changed", change(8, 9), "wire: frame with checksum 825fb926, want 17b180d9: it was cut, changed or misdirected"},
		{"cut", frame[:18], "wire: frame with checksum ae724924, want 17b180d9: it was cut, changed or misdirected"},
		{"long", make([]byte, MaxFrameBytes+1), "wire: frame of 4194305 bytes, want at most 4194304"},
	} {
		msgs, err := decodeFrame(test.frame)
		wantError(t, test.name, err, test.want)
		if msgs != nil {
			t.Errorf("%s: beside the error there are messages: %v", test.name, msgs)
		}
	}
	var version *VersionError
	if _, err := decodeFrame(change(0, 1)); !errors.As(err, &version) || *version != (VersionError{Got: 1, Want: 3}) {
		t.Errorf("error of a version is %v", err)
	}
}

// TestDecodeErrors changes one thing of a frame that holds something of
// everything.
func TestDecodeErrors(t *testing.T) {
	type frame = peerFrame
	part := func(f *frame) *peerPart { return f.Parts[0] }
	own := func(f *frame) *peerCells { return f.Parts[0].Cells[0] }
	refused := func(f *frame) *peerRefusals { return f.Parts[0].Refused[0] }
	for _, test := range []struct {
		name   string
		change func(f *frame)
		want   string
	}{
		{
			"shards", func(f *frame) { f.LastShard = 64 },
			"wire: frame: it is of one of 65 shards, want at most 64",
		},
		{
			"no parts", func(f *frame) { f.Parts = nil },
			"wire: frame: it has no parts, want at least one",
		},
		{
			"more parts than shards", func(f *frame) { f.Parts = append(f.Parts, part(f)) },
			"wire: frame: it has more parts than its 1 shards",
		},
		{
			"incarnation twice", func(f *frame) { f.Incarnations[1] = f.Incarnations[0] },
			"wire: frame: incarnation 000000000000aaaa is there twice",
		},
		{
			"sender among incarnations", func(f *frame) { f.Incarnations[1] = 1 },
			"wire: frame: incarnation 0000000000000001 is there twice",
		},
		{
			"incarnation unused", func(f *frame) { f.Incarnations = append(f.Incarnations, 99) },
			"wire: frame: 3 incarnations and 2 metas, of which 2 and 2 are used",
		},
		{
			"meta unused", func(f *frame) { f.Metas = append(f.Metas, &peerCellMeta{Millis: 1}) },
			"wire: frame: 2 incarnations and 3 metas, of which 2 and 2 are used",
		},
		{
			"meta twice", func(f *frame) { f.Metas[1] = f.Metas[0] },
			"wire: frame: meta {Rule:7 WindowLength:60000 Carry:60000 Regional:false} with number 0 is there twice",
		},
		{
			"known meta with more", func(f *frame) { f.Metas[0].Known, f.Metas[0].Window = 5, 0 },
			"wire: frame: field 2 of type 1 is unknown or out of place",
		},
		{
			"window beyond a block", func(f *frame) { f.Metas[0] = &peerCellMeta{Known: 5, Window: 64} },
			"wire: part 0 of the frame: cell 0000000000000001@64 daemon 0000000000000001: 300-2: no window of the block of a known meta",
		},
		{
			"number of a meta", func(f *frame) { f.Metas[0].Number = 1 << 32 },
			"wire: frame: number 4294967296 of a meta, want 32 bits",
		},
		{
			"meta without width", func(f *frame) { f.Metas[0].Minutes = 0 },
			"wire: frame: window length of 0 min, 0 s and 0 ms, want one of them, in the longest unit and 63 bits",
		},
		{
			"skipped", func(f *frame) { part(f).Skipped = 1 },
			"wire: part 0 of the frame: 1 shards after shard -1 are skipped, and there are only 1",
		},
		{
			"versions", func(f *frame) { part(f).Changed = 12346 },
			"wire: part 0 of the frame: 12346 versions up to 12345, want at most as many",
		},
		{
			"duration", func(f *frame) { part(f).UnsentMs = math.MaxUint64 },
			"wire: part 0 of the frame: duration of 18446744073709551615 ms, want at most 9223372036854",
		},
		{
			"no views and some", func(f *frame) { part(f).NoViews = true },
			"wire: part 0 of the frame: no_views, and it has views or the part before has none",
		},
		{
			"no views after none", func(f *frame) { part(f).Views, part(f).NoViews = nil, true },
			"wire: part 0 of the frame: no_views, and it has views or the part before has none",
		},
		{
			"views as before", func(f *frame) {
				f.LastShard, f.Parts = 1, []*peerPart{{Views: part(f).Views}, {Views: part(f).Views}}
				f.Metas = nil
			},
			"wire: part 1 of the frame: views as in the part before, want them left out",
		},
		{
			"two units", func(f *frame) { f.Metas[0].Seconds = 1 },
			"wire: frame: window length of 1 min, 1 s and 0 ms, want one of them, in the longest unit and 63 bits",
		},
		{
			"seconds", func(f *frame) { f.Metas[0].Minutes, f.Metas[0].Seconds = 0, 60 },
			"wire: frame: window length of 0 min, 60 s and 0 ms, want one of them, in the longest unit and 63 bits",
		},
		{
			"milliseconds", func(f *frame) { f.Metas[0].Minutes, f.Metas[0].Millis = 0, 60_000 },
			"wire: frame: window length of 0 min, 0 s and 60000 ms, want one of them, in the longest unit and 63 bits",
		},
		{
			"length beyond 63 bits", func(f *frame) { f.Metas[0].Minutes = 1 << 50 },
			"wire: frame: window length of 1125899906842624 min, 0 s and 0 ms, want one of them, in the longest unit and 63 bits",
		},
		{
			"carry twice", func(f *frame) { f.Metas[0].CarryMillis = 1 },
			"wire: frame: 1 windows and 1 ms, want one of them, windows where possible, in 63 bits",
		},
		{
			"carry in milliseconds", func(f *frame) { f.Metas[0].CarryWindows, f.Metas[0].CarryMillis = 0, 60_000 },
			"wire: frame: 0 windows and 60000 ms, want one of them, windows where possible, in 63 bits",
		},
		{
			"carry below 0", func(f *frame) { f.Metas[0].CarryWindows, f.Metas[0].CarryMillis = 0, 1<<63+1 },
			"wire: frame: 0 windows and -9223372036854775807 ms, want one of them, windows where possible, in 63 bits",
		},
		{
			"window beyond 63 bits", func(f *frame) { f.Metas[0].Window, f.Metas[0].WindowMillis = -1<<50, 0 },
			"wire: frame: -1125899906842624 windows and 0 ms, want one of them, windows where possible, in 63 bits",
		},
		{
			"regions", func(f *frame) { slices.Reverse(f.Incarnations) },
			"wire: part 0 of the frame: regions are not ascending at 1",
		},
		{
			"incarnations", func(f *frame) { slices.Reverse(part(f).Views.Regions) },
			"wire: part 0 of the frame: incarnation 3 is named before incarnation 2 or does not exist",
		},
		{
			"ages", func(f *frame) { part(f).Views.AgesMs = []uint64{1, 2, 3} },
			"wire: part 0 of the frame: field 3 does not hold the numbers of the rows, as short as can be",
		},
		{
			"bucket", func(f *frame) { part(f).Buckets = []uint32{65535, 0} },
			"wire: part 0 of the frame: bucket beyond 65535",
		},
		{
			"kind", func(f *frame) { own(f).Kind = 5 },
			"wire: part 0 of the frame: cells of kind 5, want at most 4",
		},
		{
			"incarnation number", func(f *frame) { own(f).Incarnation = 4 },
			"wire: part 0 of the frame: incarnation 4 is named before incarnation 4 or does not exist",
		},
		{
			"incarnations of cells", func(f *frame) { slices.Reverse(part(f).Cells) },
			"wire: part 0 of the frame: incarnations of cells are not ascending at 0000000000000001",
		},
		{
			"keys cut", func(f *frame) { own(f).Keys = own(f).Keys[:15] },
			"wire: part 0 of the frame: field 3 of 15 bytes, want a multiple of 8",
		},
		{
			"no keys", func(f *frame) { own(f).Keys = nil },
			"wire: part 0 of the frame: 0 keys of 3 cells, want at least one each",
		},
		{
			"same key", func(f *frame) { copy(own(f).Keys, own(f).Keys[8:]) },
			"wire: part 0 of the frame: keys of incarnation 0000000000000001 are not ascending at 1",
		},
		{
			"more cells", func(f *frame) { own(f).More = []uint32{3, 1} },
			"wire: part 0 of the frame: more cells of the keys of incarnation 0000000000000001 than its 3",
		},
		{
			"fewer cells", func(f *frame) { own(f).More = nil },
			"wire: part 0 of the frame: fewer cells of the keys of incarnation 0000000000000001 than its 3",
		},
		{
			"meta number", func(f *frame) { own(f).Metas[1] = 2 },
			"wire: part 0 of the frame: meta 2 is named before meta 1 or does not exist",
		},
		{
			"first window", func(f *frame) { own(f).Windows[0] = 1 },
			"wire: part 0 of the frame: first window of meta 0 is not that of the meta",
		},
		{
			"same window", func(f *frame) { own(f).Windows[2] = 0 },
			"wire: part 0 of the frame: windows of a key are not ascending at 1799999999000",
		},
		{
			"refund", func(f *frame) { own(f).Refunded[1] = 2 },
			"wire: part 0 of the frame: cell 0000000000000002@1799999999000 daemon 0000000000000001: 1-2: " +
				"a daemon refunded more than it admitted",
		},
		{
			"zeros", func(f *frame) { own(f).Rates = []uint32{0, 0, 0} },
			"wire: part 0 of the frame: field 9 is all 0, want it left out",
		},
		{
			"reason", func(f *frame) { refused(f).Reasons[1] = 3 },
			"wire: part 0 of the frame: refusal for reason 4, want 1 to 3",
		},
		{
			"refusals", func(f *frame) { refused(f).Keys[7] = 9 },
			"wire: part 0 of the frame: refusals of incarnation 0000000000000002 are not ascending at 1",
		},
		{
			"nothing refused", func(f *frame) { refused(f).Keys = nil },
			"wire: part 0 of the frame: refusals of incarnation 0000000000000002 without keys",
		},
	} {
		var f frame
		if err := readPB(mustEncode(t, example())[sealSize:], &f); err != nil {
			t.Fatal(err)
		}
		test.change(&f)
		msgs, err := new(Decoder).Decode(1, 2, sealFrame(1, 2, appendPB(nil, &f)))
		wantError(t, test.name, err, test.want)
		if msgs != nil {
			t.Errorf("%s: beside the error there are messages: %v", test.name, msgs)
		}
	}
}

// TestDecodeBounds exceeds each bound by one.
func TestDecodeBounds(t *testing.T) {
	words := func(n int) []byte { return make([]byte, keySize*n) }
	for _, test := range []struct {
		part *peerPart
		want string
	}{
		{
			&peerPart{Cells: []*peerCells{{Keys: words(1), Admitted: make([]uint64, MaxFrameCells+1)}}},
			"wire: frame of 65537 cells, want at most 65536",
		},
		{
			&peerPart{Refused: []*peerRefusals{{Keys: words(MaxFrameCells + 1)}}},
			"wire: frame of 65537 refusals, want at most 65536",
		},
		{
			&peerPart{Views: &peerViews{Regions: make([]uint32, MaxViews+1)}},
			"wire: frame of 4097 regions, want at most 4096",
		},
		{
			&peerPart{Digests: make([]uint64, math.MaxUint16+2)},
			"wire: frame of 65537 digests, want at most 65536",
		},
		{
			&peerPart{Repair: make([]uint32, math.MaxUint16+2)},
			"wire: frame of 65537 buckets, want at most 65536",
		},
	} {
		_, err := new(Decoder).Decode(1, 2, sealFrame(1, 2, appendPB(nil, &peerFrame{Parts: []*peerPart{test.part}})))
		wantError(t, "bound", err, test.want)
	}
}

// TestOtherForms: bytes that other readers of protobuf would take for the
// same are refused.
func TestOtherForms(t *testing.T) {
	const emptyPart = "\x32\x00"
	if _, err := new(Decoder).Decode(1, 2, sealFrame(1, 2, []byte(emptyPart))); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, payload, want string }{
		{"nothing", "", "it has no parts, want at least one"},
		{"zero", "\x08\x00" + emptyPart, "field 1 is 0 or no number, want it left out"},
		{"long number", "\x08\x81\x00" + emptyPart, "number is cut, too large or longer than it must be"},
		{
			"large number", "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02" + emptyPart,
			"number is cut, too large or longer than it must be",
		},
		{"flag", "\x10\x02" + emptyPart, "field 2 is 2, want 1"},
		{"order", "\x18\x01\x08\x01" + emptyPart, "field 1 of type 0 is unknown or out of place"},
		{"twice", "\x08\x01\x08\x01" + emptyPart, "field 1 of type 0 is unknown or out of place"},
		{"late", emptyPart + "\x18\x01", "field 3 of type 0 is unknown or out of place"},
		{"unknown", emptyPart + "\x78\x01", "field 15 of type 0 is unknown or out of place"},
		{"length beyond", "\x32\x05", "field 6 of 5 bytes, want at most the 0 that follow"},
		{"no incarnations", emptyPart + "\x3a\x00", "field 7 of 0 bytes, want a multiple of 8"},
		{
			"rule of 0", emptyPart + "\x42\x0b\x11\x00\x00\x00\x00\x00\x00\x00\x00\x28\x01",
			"rule of a meta is 0 or cut, want it left out",
		},
	} {
		_, err := new(Decoder).Decode(1, 2, sealFrame(1, 2, []byte(test.payload)))
		wantError(t, test.name, err, "wire: frame: "+test.want)
	}
	m := example()
	m.Cells[3].Rate = math.MaxUint32
	rate := binary.AppendUvarint(nil, math.MaxUint32)
	larger := bytes.Replace(mustEncode(t, m), rate, binary.AppendUvarint(nil, 1<<32), 1)
	_, err := decodeFrame(reseal(m.From, m.To, larger))
	wantError(t, "rate", err, "wire: part 0 of the frame: rate of 4294967296, want at most 4294967295")
	_, err = new(Decoder).Decode(3, 3, sealFrame(3, 3, []byte(emptyPart)))
	wantError(t, "itself", err, "wire: frame: it is from 0000000000000003 to itself")
}
