package wire

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/georld/rld/crdt"
)

// raw concatenates the pieces of the content of a frame: bytes and strings as
// they are, an int as a varint, an uint64 in 8 bytes, a key as such.
func raw(pieces ...any) string {
	var b []byte
	for _, piece := range pieces {
		switch v := piece.(type) {
		case byte:
			b = append(b, v)
		case string:
			b = append(b, v...)
		case int:
			b = binary.AppendUvarint(b, uint64(v))
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, v)
		case crdt.Key:
			b = appendKey(b, v)
		}
	}
	return string(b)
}

// The numbers of these tests that are no varints.
const (
	long  = "\x81\x00"                                 // longer than it must be
	large = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02" // beyond 64 bits
	most  = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" // the greatest one
)

// brokenFrame is the content of a frame that Decode rejects.
type brokenFrame struct{ name, content, want string }

// part is the content of a frame of one shard with the flags of its part.
func part(flags byte, rest ...any) string {
	return raw(append([]any{byte(0), 7, flags, 9}, rest...)...)
}

// rare is the same with second flags.
func rare(flags byte, rest ...any) string {
	return raw(append([]any{byte(0), 7, byte(partRare), flags, 9}, rest...)...)
}

// brokenHeads are faults before the parts and in the fields of parts.
func brokenHeads() []brokenFrame {
	two := raw(byte(frameShards), 1, 7) // shards
	return []brokenFrame{
		{"nothing", "", "frame: it is cut"},
		{"unknown flag", raw(byte(0x20), 7, 0, 0), "frame: flags 0x20, want only those of 0x1f"},
		{"shards", raw(byte(frameShards), 64, 7, 0, 0), "frame: it is of one of 65 shards, want at most 64"},
		{"one shard", raw(byte(frameShards), 0, 7, 0, 0), "frame: number of the last shard is 0 or no number, want it left out"},
		{"long nonce", raw(byte(0), long, 0, 0), "frame: number is cut, too large or longer than it must be"},
		{"large nonce", raw(byte(0), large, 0, 0), "frame: number is cut, too large or longer than it must be"},
		{"no echo", raw(byte(frameEcho), 7, 0, 0, 0, 0), "frame: echo and its age are 0, want them left out"},
		{"no rules", raw(byte(frameRules), 7, uint64(0), 0, 0), "frame: hash of rules is 0 or cut, want it left out"},
		{"stamp cut", raw(byte(frameStamp), 7, 0, 0), "frame: stamp of 8 bytes, want at most the 2 that follow"},
		{"no parts", raw(byte(0), 7), "frame: 0 bytes after part -1, want a part of at least 2 bytes, or none after the last shard"},
		{"short part", raw(byte(0), 7, 0), "frame: 1 bytes after part -1, want a part of at least 2 bytes, or none after the last shard"},
		{"more parts than shards", part(0, 0, 0), "frame: 2 bytes after part 0, want a part of at least 2 bytes, or none after the last shard"},
		{"no second flags", rare(0), "part 0 of the frame: second flags 0x0 of a part, want some of 0x3f"},
		{"unknown second flag", rare(0x40), "part 0 of the frame: second flags 0x40 of a part, want some of 0x3f"},
		{"skipped", raw(byte(0), 7, byte(partSkipped), 1, 9), "part 0 of the frame: 1 shards after shard -1 are skipped, and there are only 1"},
		{"nothing skipped", raw(two, byte(partSkipped), 0, 9), "part 0 of the frame: number of skipped shards is 0 or no number, want it left out"},
		{"all skipped", raw(two, 0, 9, byte(partSkipped), 1, 9), "part 1 of the frame: 1 shards after shard 0 are skipped, and there are only 2"},
		{"versions", part(partChanged, 10), "part 0 of the frame: 10 versions up to 9, want at most as many"},
		{"no versions", part(partChanged, 0), "part 0 of the frame: number of versions is 0 or no number, want it left out"},
		{"ack", part(partAnswers, most), "part 0 of the frame: acknowledgement of version 18446744073709551615, which is none"},
		{"not unsent", part(partUnsent, 0), "part 0 of the frame: age of increments is 0 or no number, want it left out"},
		{"unsent", part(partUnsent, most), "part 0 of the frame: duration of 18446744073709551615 ms, want at most 9223372036854"},
		{"no views after none", rare(rareNoViews), "part 0 of the frame: no views, and it has some or the part before has none"},
		{
			"no views and some", raw(two, byte(partViews), 9, 2, byte(partViews|partRare), byte(rareNoViews), 9, 2),
			"part 1 of the frame: no views, and it has some or the part before has none",
		},
		{"views as before", raw(two, byte(partViews), 9, 2, byte(partViews), 9, 2), "part 1 of the frame: views as in the part before, want them left out"},
		{"no regions", part(partViews, 1, 0), "part 0 of the frame: number of regions is 0 or no number, want it left out"},
		{"regions cut", part(partViews, 1, 3, 0, 0, 1), "part 0 of the frame: 3 regions, want at most the 1 that fit the rest"},
		{"too many regions", part(partViews, 1, 4097), "frame of 4097 regions, want at most 4096"},
		{"regions", part(partViews, 1, 2, 1, 0, 0, 0), "part 0 of the frame: regions are not ascending at 1"},
		{"incarnation number", part(partViews, 1, 1, 3, uint64(5), 0), "part 0 of the frame: incarnation 3 is named before incarnation 2"},
		{"incarnation cut", part(partViews, 1, 1, 2, 0), "part 0 of the frame: incarnation of 8 bytes, want at most the 1 that follow"},
		{"incarnation twice", part(partViews, 1, 2, 2, uint64(5), 0, 3, uint64(5), 0), "part 0 of the frame: incarnation 0000000000000005 is there twice"},
		{"receiver twice", part(partViews, 1, 1, 2, uint64(2), 0), "part 0 of the frame: incarnation 0000000000000002 is there twice"},
	}
}

// brokenLists are faults in the lists that few parts have.
func brokenLists() []brokenFrame {
	rights := raw(crdt.Key(1), 4, uint64(3), 0, 0, 0)
	return []brokenFrame{
		{"nothing refused", rare(rareRefused, 0), "part 0 of the frame: number of refusals is 0 or no number, want it left out"},
		{"too many refusals", rare(rareRefused, MaxFrameCells+1), "frame of 65537 refusals, want at most 65536"},
		{"refused kind", rare(rareRefused, 1, byte(5), 1, crdt.Key(1), 0), "part 0 of the frame: refusal of kind 5, want at most 4"},
		{"reason", rare(rareRefused, 1, byte(3<<refusedReason), 1, crdt.Key(1), 0), "part 0 of the frame: refusal for reason 4, want 1 to 3"},
		{
			"refusals", rare(rareRefused, 2, byte(0), 1, crdt.Key(1), 2, byte(0), 1, crdt.Key(1), 0),
			"part 0 of the frame: refusals are not ascending at 1",
		},
		{"too many digests", rare(rareDigests, math.MaxUint16+2), "frame of 65537 digests, want at most 65536"},
		{"digests cut", rare(rareDigests, 1, 0, 0), "part 0 of the frame: 1 digests, want at most the 0 that fit the rest"},
		{"bucket", rare(rareRepair, 2, 65535, 0), "part 0 of the frame: bucket beyond 65535"},
		{"buckets", rare(rareRepair, math.MaxUint16+2), "frame of 65537 buckets, want at most 65536"},
		{"no buckets", rare(rareRepair, 0), "part 0 of the frame: number of buckets is 0 or no number, want it left out"},
		{"rights message", rare(rareRights, 1, byte(6), rights), "part 0 of the frame: rights message of kind 6, want 1 to 5"},
		{"flag of a rights message", rare(rareRights, 1, byte(0x11), rights), "part 0 of the frame: rights message of kind 17, want 1 to 5"},
		{
			"rights message for none", rare(rareRights, 1, byte(1|rightsNamed), rights, 2, uint64(0)),
			"part 0 of the frame: rights message for incarnation 0, want it left out",
		},
		{"too many rights messages", rare(rareRights, 65), "frame of 65 rightsMessages, want at most 64"},
		{"load", rare(rareLoads, 1, 1<<loadBits|loadDoubts, crdt.Key(1), 2), "part 0 of the frame: load 0: more hits than a load may have, or more doubted than offered"},
		{"not doubted", rare(rareLoads, 1, 1<<loadBits|loadDoubts, crdt.Key(1), 0), "part 0 of the frame: doubted hits is 0 or no number, want it left out"},
		{"same window", rare(rareLoads, 1, loadMoved, crdt.Key(1), 0), "part 0 of the frame: window of a load is 0 or no number, want it left out"},
		{"too many loads", rare(rareLoads, 257), "frame of 257 loads, want at most 256"},
	}
}

// brokenGroups are faults in cells.
func brokenGroups() []brokenFrame {
	known := firstKnown + 5 // place 5 of description 1
	key := crdt.Key(1)
	// several is a group of two cells with further flags and columns.
	several := func(flags, columns byte, n int, rest ...any) string {
		return part(partCells, append([]any{flags | groupSeveral | groupColumns, columns, n}, rest...)...)
	}
	return []brokenFrame{
		{"no cells", part(partCells), "part 0 of the frame: it is cut"},
		{"kind", part(partCells, byte(5), key, known, 1), "part 0 of the frame: cells of kind 5, want at most 4"},
		{"usual incarnation", part(partCells, byte(groupNamed), 0, key, known, 1), "part 0 of the frame: incarnation 0000000000000001 of cells is the usual one, want it left out"},
		{
			"incarnations of cells", part(partCells, byte(groupNamed|groupMore), 1, key, known, 1, byte(0), key, 1, 1),
			"part 0 of the frame: incarnations of cells are not ascending at 0000000000000001",
		},
		{"cells after the last group", part(partCells, byte(0), key, known, 1, byte(1), key, 1, 1), "frame: 11 bytes after part 0, want a part of at least 2 bytes, or none after the last shard"},
		{"group cut", part(partCells, byte(groupMore), key, known, 1), "part 0 of the frame: it is cut"},
		{"one of several", part(partCells, byte(groupSeveral), 1<<1, key, known, 1), "part 0 of the frame: group of several cells has 1"},
		{"too many cells", part(partCells, byte(groupSeveral), (MaxFrameCells+1)<<1), "frame of 65537 cells, want at most 65536"},
		{"no columns", part(partCells, byte(groupColumns), byte(0), key, known, 1), "part 0 of the frame: columns 0x0 of a group, want some of 0x3f"},
		{"unknown column", part(partCells, byte(groupColumns), byte(0x40), key, known, 1), "part 0 of the frame: columns 0x40 of a group, want some of 0x3f"},
		{"keys cut", part(partCells, byte(groupSeveral), 2<<1, key, known, 1), "part 0 of the frame: keys of 16 bytes, want at most the 11 that follow"},
		{"no keys", several(0, columnMore|columnWindows, 2<<1, 0), "part 0 of the frame: 0 keys of 2 cells, want fewer, and at least one"},
		{"key for each", several(0, columnMore, 2<<1, 2, key, key+1, 0, 0, known, 1, 1), "part 0 of the frame: 2 keys of 2 cells, want fewer, and at least one"},
		{"no short keys", part(partCells, byte(groupSeveral|groupShort), 2<<1, 0, key, key+1, known, 1, 1), "part 0 of the frame: 0 short keys of 2, want no more, and at least one"},
		{"more short keys", part(partCells, byte(groupSeveral|groupShort), 2<<1, 3, known, 1, 1), "part 0 of the frame: 3 short keys of 2, want no more, and at least one"},
		{"same short key", part(partCells, byte(groupSeveral|groupShort), 2<<1, 2, byte(7), byte(1), byte(7), byte(1), known, 1, 1), "part 0 of the frame: keys of incarnation 0000000000000001 are not ascending at 1"},
		{"short key cut", part(partCells, byte(groupShort), byte(7)), "part 0 of the frame: keys of 2 bytes, want at most the 1 that follow"},
		{"same key", part(partCells, byte(groupSeveral), 2<<1, key, key, known, 1, 1), "part 0 of the frame: keys of incarnation 0000000000000001 are not ascending at 1"},
		{"more cells", several(0, columnMore|columnWindows, 2<<1, 1, key, 2, known, 0, 2, 1, 1), "part 0 of the frame: more cells of the keys of incarnation 0000000000000001 than its 2"},
		{"fewer cells", several(0, columnMore|columnWindows, 3<<1, 1, key, 1, known, 0, 2, 2, 1, 1, 1), "part 0 of the frame: fewer cells of the keys of incarnation 0000000000000001 than its 3"},
		{"same description", part(partCells, byte(groupSeveral), 2<<1|1, key, key+1, known, 1, 1, 1), "part 0 of the frame: descriptions of all cells are the same, want one"},
		{"row", part(partCells, byte(0), key, 1, 1), "part 0 of the frame: row 0 of descriptions is named, and there are only 0"},
		{"known description twice", part(partCells, byte(groupSeveral), 2<<1|1, key, key+1, known, known+1, 1, 1), "part 0 of the frame: description {Rule:0 WindowLength:0 Carry:0 Regional:false} with number 1 is there twice"},
		{
			"description twice", part(partCells, byte(groupSeveral), 2<<1|1, key, key+1, 0, 0, 1, 1, byte(0), 3, 0, byte(0), 3, 2),
			"part 0 of the frame: description {Rule:0 WindowLength:3 Carry:0 Regional:false} with number 0 is there twice",
		},
		{"number of a known description", part(partCells, byte(0), key, firstKnown+1<<38, 1), "part 0 of the frame: number 4294967297 of a description, want 32 bits"},
		{"first window", part(partCells, byte(groupColumns), byte(columnWindows), key, known, 2, 1), "part 0 of the frame: first window of a description is not its own"},
		{"same windows", several(0, columnMore, 2<<1, 1, key, 1, known, 1, 1), "part 0 of the frame: windows of a key are not ascending at 5"},
		{"window beyond a block", several(0, columnWindows, 2<<1, key, key+1, known, 0, 118, 1, 1), "part 0 of the frame: cell 0000000000000002@64 daemon 0000000000000001: 1-0: no window of the block of a known meta"},
		{"windows cut", several(0, columnWindows, 2<<1, key, key+1, known), "part 0 of the frame: windows of 2 cells are cut"},
		{"refund", part(partCells, byte(groupColumns), byte(columnRefunded), key, known, 1, 2), "part 0 of the frame: cell 0000000000000001@5 daemon 0000000000000001: 1-2: a daemon refunded more than it admitted"},
		{"zeros", part(partCells, byte(groupColumns), byte(columnRates), key, known, 1, 0), "part 0 of the frame: rates are all 0, want them left out"},
		{"rate", part(partCells, byte(groupColumns), byte(columnRates), key, known, 1, 1<<32), "part 0 of the frame: rate of 4294967296, want at most 4294967295"},
		{"long count", part(partCells, byte(0), key, known, long), "part 0 of the frame: admitted hits are not as short as can be, or too large"},
		{"large count", part(partCells, byte(0), key, known, large), "part 0 of the frame: admitted hits are not as short as can be, or too large"},
		{"level of a daemon", part(partCells, byte(groupColumns), byte(columnLevels), key, known, 1, 1), "part 0 of the frame: cell 0000000000000001@5 daemon 0000000000000001: 1-0: level of a bucket that it does not describe"},
		{"seen without level", part(partCells, byte(2|groupColumns), byte(columnSeen), key, known, 1, 1), "part 0 of the frame: cell 0000000000000001@5 others than 0000000000000002: 1-0: level of a bucket that it does not describe"},
	}
}

// brokenDescriptions are faults in the description of a cell.
func brokenDescriptions() []brokenFrame {
	cell := func(form byte, rest ...any) string {
		return part(partCells, append([]any{byte(0), crdt.Key(1), 0, 1, form}, rest...)...)
	}
	return []brokenFrame{
		{"description cut", part(partCells, byte(0), crdt.Key(1), 0, 1), "part 0 of the frame: it is cut"},
		{"rule of 0", cell(formRule, uint64(0), 3, 0), "part 0 of the frame: rule of a description is 0 or cut, want it left out"},
		{"no length", cell(0, 0, 0), "part 0 of the frame: window length of 0 in unit 0, want the longest unit and 63 bits"},
		{"seconds", cell(1, 60, 0), "part 0 of the frame: window length of 60 in unit 1, want the longest unit and 63 bits"},
		{"milliseconds", cell(0, 2000, 0), "part 0 of the frame: window length of 2000 in unit 0, want the longest unit and 63 bits"},
		{"unit", cell(3, 1, 0), "part 0 of the frame: window length of 1 in unit 3, want the longest unit and 63 bits"},
		{"length beyond 63 bits", cell(2, 1<<50, 0), "part 0 of the frame: window length of 1125899906842624 in unit 2, want the longest unit and 63 bits"},
		{"no carry", cell(formCarry, 3, 0, 0), "part 0 of the frame: carry is 0 or no number, want it left out"},
		{"carry twice", cell(formCarry|formCarryMillis, 3, 1, 0), "part 0 of the frame: carry of 1 in form 0xc, want one form and 63 bits"},
		{"carry in milliseconds", cell(formCarryMillis, 3, 6, 0), "part 0 of the frame: 6 of windows of 3 ms (in ms: true), want windows where possible, and 63 bits"},
		{"carry below 0", cell(formCarryMillis, 3, most, 0), "part 0 of the frame: carry of -1 in form 0x8, want one form and 63 bits"},
		{"window in milliseconds", cell(formWindowMillis, 3, 12), "part 0 of the frame: 6 of windows of 3 ms (in ms: true), want windows where possible, and 63 bits"},
		{"window beyond 63 bits", cell(2, 1, most), "part 0 of the frame: -9223372036854775808 of windows of 60000 ms (in ms: false), want windows where possible, and 63 bits"},
		{"no number", cell(formNumber, 3, 0, 0), "part 0 of the frame: number of a description is 0 or no number, want it left out"},
		{"number", cell(formNumber, 3, 0, 1<<32), "part 0 of the frame: number 4294967296 of a description, want 32 bits"},
	}
}

// brokenFrames are the contents of frames from incarnation 1 to 2 with one
// fault each.
func brokenFrames() []brokenFrame {
	var all []brokenFrame
	for _, some := range [][]brokenFrame{brokenHeads(), brokenLists(), brokenGroups(), brokenDescriptions()} {
		all = append(all, some...)
	}
	return all
}

// TestDecodeErrors: each field is checked, and each bound exceeded by one.
func TestDecodeErrors(t *testing.T) {
	for _, content := range []string{part(0), raw(byte(frameShards), 1, 7, 0, 9, 0, 9)} {
		if _, err := new(Decoder).Decode(1, 2, sealFrame(1, 2, []byte(content))); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range brokenFrames() {
		msgs, err := new(Decoder).Decode(1, 2, sealFrame(1, 2, []byte(test.content)))
		wantError(t, test.name, err, "wire: "+test.want)
		if msgs != nil {
			t.Errorf("%s: beside the error there are messages: %v", test.name, msgs)
		}
	}
	_, err := new(Decoder).Decode(3, 3, sealFrame(3, 3, []byte(part(0))))
	wantError(t, "itself", err, "wire: frame: it is from 0000000000000003 to itself")
}

// TestFormer: a frame in the layout of the version before is rejected for its
// version.
func TestFormer(t *testing.T) {
	frame := sealFrame(1, 2, []byte("\x18\x07\x32\x02\x10\x09"))
	frame[0] = 4
	SetCountsChecksum(1, 2, frame)
	_, err := new(Decoder).Decode(1, 2, frame)
	wantError(t, "version 4", err, "wire: frame of version 4, want 5, the only one known here")
}
