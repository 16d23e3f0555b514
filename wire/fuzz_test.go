package wire

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// FuzzDecode feeds Decode arbitrary bytes, as they are and in a correct
// envelope, without which hardly any input passes the checksum. Decode must not
// panic, must return messages or an error but never both or neither, and must
// return no more than a multiple of its input. Accepted frames encode to the
// same bytes, and the second decoder reads the same messages.
func FuzzDecode(f *testing.F) {
	two := shards(2, inRegion(busy(3, 2)))
	for _, msgs := range [][]gossip.Message{
		shards(1, idle()), shards(MaxShards, inRegion(idle())),
		{example()},
		shards(1, logged(5)), two, two[1:],
		shards(1, busy(40, 30)), shards(1, knownCells(1, gossip.Daemon)), shards(1, knownCells(3, gossip.Others)),
		shards(1, answerOnly()),
	} {
		f.Add(mustEncode(f, msgs...))
	}
	f.Add([]byte{})
	for _, broken := range brokenFrames() {
		f.Add(sealFrame(idle().From, idle().To, []byte(broken.content)))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		given := bytes.Clone(frame)
		from, to := idle().From, idle().To
		decodeAny(t, from, to, frame)
		if len(frame) >= sealSize {
			decodeAny(t, from, to, reseal(from, to, bytes.Clone(frame)))
		}
		if !bytes.Equal(frame, given) {
			t.Fatal("Decode changed the frame")
		}
	})
}

// fataler is a test of either kind.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func decodeAny(t fataler, from, to crdt.Incarnation, frame []byte) {
	msgs, err := new(Decoder).Decode(from, to, frame)
	if (msgs == nil) == (err == nil) || err == nil && len(msgs) == 0 {
		t.Fatalf("%d messages beside the error %v", len(msgs), err)
	}
	if err != nil {
		return
	}
	if held := heldBytes(msgs); held > maxPerByte*len(frame) {
		t.Fatalf("messages of %d bytes from %d", held, len(frame))
	}
	again, err := Encode(nil, msgs)
	if err != nil {
		t.Fatalf("what was decoded is not encoded: %v", err)
	}
	if !bytes.Equal(frame, again) {
		t.Fatalf("encoded again\n is %x\nwas %x", again, frame)
	}
	if fault := layoutFault(msgs, frame[sealSize:]); fault != "" {
		t.Fatal(fault)
	}
}

// TestEdits changes a few bytes of frames where they have a meaning, and
// applies the same rules to the result. Most edits are rejected.
func TestEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msgs := genMessages().Draw(t, "messages")
		frame, err := Encode(nil, msgs)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "edits") {
			at := rapid.IntRange(sealSize, len(frame)).Draw(t, "at")
			b := rapid.OneOf(rapid.SampledFrom([]byte{0, 1, 2, 0x7f, 0x80, 0xff}), rapid.Byte()).Draw(t, "byte")
			switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
			case kind == 0 || at == len(frame):
				frame = slices.Insert(frame, at, b)
			case kind == 1:
				frame[at] = b
			case len(frame) > sealSize:
				frame = slices.Delete(frame, at, at+1)
			}
		}
		decodeAny(t, msgs[0].From, msgs[0].To, reseal(msgs[0].From, msgs[0].To, frame))
	})
}

// maxPerByte is what Decode may allocate for each byte of a frame.
const maxPerByte = 250

// heldBytes is the memory that messages take up.
func heldBytes(msgs []gossip.Message) int {
	n := cap(msgs) * int(unsafe.Sizeof(gossip.Message{}))
	for i := range msgs {
		m := &msgs[i]
		n += cap(m.Cells)*int(unsafe.Sizeof(gossip.Cell{})) +
			cap(m.Refused)*int(unsafe.Sizeof(gossip.Refusal{})) +
			cap(m.Staleness)*int(unsafe.Sizeof(gossip.Staleness{})) +
			cap(m.Digests)*int(unsafe.Sizeof(gossip.BucketDigest{})) +
			cap(m.Repair)*int(unsafe.Sizeof(uint16(0)))
	}
	return n
}

// TestAllocationBounded measures the cost of the most expensive frames for
// their length, accepted or rejected.
func TestAllocationBounded(t *testing.T) {
	parts := bytes.Repeat([]byte{0, 0}, MaxShards)
	var named []byte // cells of one incarnation each
	for i := range uint64(50_000) {
		named = append(named, byte(gossip.Daemon)|groupNamed|groupMore)
		named = binary.AppendUvarint(named, i+2)
		named = binary.LittleEndian.AppendUint64(named, i+1<<32)
		named = append(named, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00"...)
	}
	known := busy(60_000, 1) // cells of one description each
	for i := range known.Cells {
		c := &known.Cells[i]
		c.CellMeta, c.Number, c.Known, c.Window = gossip.CellMeta{}, uint32(i)+1, true, 5
	}
	forms := busy(20_000, 1)
	for i := range forms.Cells {
		forms.Cells[i].Rule = uint64(i) + 1
	}
	// Cells that cost a byte each, until they turn out to be the same.
	oneKey := []byte{0, 0, partCells, 0, groupSeveral | groupColumns, columnMore}
	oneKey = append(binary.AppendUvarint(oneKey, MaxFrameCells<<1), 1)
	oneKey = append(append(oneKey, make([]byte, keySize)...), 0xff, 0xff, 3, 0)
	oneKey = append(append(oneKey, make([]byte, MaxFrameCells)...), 0, 1, 0)
	for _, test := range []struct {
		name  string
		frame []byte
		taken bool
	}{
		{"cells of one key", mustEncode(t, logged(MaxFrameCells)), true},
		{"cells of many metas", mustEncode(t, busy(1000, 1000)), true},
		{"views that all shards repeat", mustEncode(t, shards(MaxShards, regions(MaxViews))...), true},
		{"empty parts", sealFrame(idle().From, idle().To, append([]byte{frameShards, MaxShards - 1, 0}, parts...)), true},
		{"incarnations", sealFrame(idle().From, idle().To, append([]byte{0, 0, partCells, 0}, named...)), false},
		{"known descriptions", mustEncode(t, known), true},
		{"descriptions", mustEncode(t, forms), true},
		{"number of cells", sealFrame(idle().From, idle().To, append([]byte{0, 0, partCells, 0, groupSeveral}, 0xfe, 0xff, 0x07)), false},
		{"one key", sealFrame(idle().From, idle().To, oneKey), false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeFrame(test.frame)
		runtime.ReadMemStats(&after)
		if test.taken != (err == nil) {
			t.Errorf("%s: error %v", test.name, err)
		}
		got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(test.frame))
		if got > maxPerByte {
			t.Errorf("%s: %d bytes allocated for each of the frame, want at most %d", test.name, got, maxPerByte)
		}
	}
}
