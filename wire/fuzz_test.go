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
// same bytes, and the generated code reads and writes them alike.
func FuzzDecode(f *testing.F) {
	two := shards(2, inRegion(busy(3, 2)))
	for _, msgs := range [][]gossip.Message{
		shards(1, idle()), shards(MaxShards, inRegion(idle())),
		{example()},
		shards(1, logged(5)), two, two[1:],
		shards(1, busy(40, 30)),
	} {
		f.Add(mustEncode(f, msgs...))
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
	if fault := protoFault(frame[sealSize:]); fault != "" {
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
	parts := bytes.Repeat([]byte{byte(frameParts), 0}, MaxShards)
	var incarnations, metas []byte
	for i := range uint64(50_000) {
		incarnations = binary.LittleEndian.AppendUint64(incarnations, i+3)
		metas = append(metas, byte(frameMetas), 11, byte(metaRule))
		metas = binary.LittleEndian.AppendUint64(metas, i+1)
		metas = append(metas, byte(metaMillis), 1)
	}
	incarnations = append(binary.AppendUvarint([]byte{byte(frameParts), 0, byte(frameIncarnations)}, uint64(len(incarnations))), incarnations...)
	for _, test := range []struct {
		name  string
		frame []byte
		taken bool
	}{
		{"cells of one key", mustEncode(t, logged(MaxFrameCells)), true},
		{"cells of many metas", mustEncode(t, busy(1000, 1000)), true},
		{"views that all shards repeat", mustEncode(t, shards(MaxShards, regions(MaxViews))...), true},
		{"empty parts", sealFrame(idle().From, idle().To, append([]byte{byte(frameLastShard), MaxShards - 1}, parts...)), true},
		{"incarnations without use", sealFrame(idle().From, idle().To, incarnations), false},
		{"metas without use", sealFrame(idle().From, idle().To, append(parts[:2:2], metas...)), false},
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
