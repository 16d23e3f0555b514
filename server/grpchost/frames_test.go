package grpchost

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// call is the frames of a call with a message of 100 bytes.
func call(id byte) []byte {
	b := append([]byte{0, 0, 60, frameHeaders, 4, 0, 0, 0, id}, make([]byte, 60)...)
	b = append(b, 0, 0, 100, frameData, flagEndStream, 0, 0, 0, id)
	return append(b, make([]byte, 100)...)
}

// TestFrames reads frames in pieces of every size.
func TestFrames(t *testing.T) {
	in := slices.Concat([]byte(preface), []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, call(1),
		call(3)[:69],                           // without its message
		call(5)[:69], make([]byte, 0), call(7), // beside another one
		[]byte{0, 0, 4, frameReset, 0, 0, 0, 0, 5, 0, 0, 0, 8},
		[]byte{0, 0, 4, frameReset, 0, 0x80, 0, 0, 7, 0, 0, 0, 8})
	now := time.Now()
	for size := 1; size <= len(in); size++ {
		f := frames{left: len(preface)}
		cancelled := 0
		for piece := range slices.Chunk(in, size) {
			cancelled += f.scan(piece, now)
		}
		if !f.begun || cancelled != 2 || len(f.incomplete) != 1 || f.incomplete[0].id != 3 || f.bytes != 0 {
			t.Fatalf("pieces of %d: %d cancelled, incomplete %v, want 2 and 3", size, cancelled, f.incomplete)
		}
	}
}

// TestYoungCalls cancels calls of several ages, beside others and alone.
func TestYoungCalls(t *testing.T) {
	reset := func(id byte) []byte { return []byte{0, 0, 4, frameReset, 0, 0, 0, 0, id, 0, 0, 0, 8} }
	for _, busy := range []bool{false, true} {
		for age := range 30 {
			now := time.Now()
			var f frames
			f.scan(call(1), now)
			for ms := 1; ms < age; ms++ {
				if busy {
					f.scan(call(byte(1+2*ms)), now.Add(time.Duration(ms)*time.Millisecond))
				}
			}
			got := f.scan(reset(1), now.Add(time.Duration(age)*time.Millisecond))
			if age < 5 && got != 1 || age >= 10 && got != 0 {
				t.Errorf("%d young calls are cancelled after %d ms, busy %v", got, age, busy)
			}
		}
	}
}

// FuzzFrames reads any bytes: incomplete calls stay bounded.
func FuzzFrames(f *testing.F) {
	f.Add(slices.Concat([]byte(preface), call(1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		f := frames{left: len(preface)}
		for range 300 {
			f.scan(b, time.Now())
		}
		held := 0
		for _, o := range f.incomplete {
			held += o.bytes
		}
		if len(f.incomplete) > maxIncompleteEach+1 || f.bytes != held || held < 0 {
			t.Fatalf("%d incomplete calls are known, of %d bytes, and %d in all", len(f.incomplete), held, f.bytes)
		}
	})
}

// data is a DATA frame.
func data(id, flags byte, payload []byte) []byte {
	n := len(payload)
	return append([]byte{byte(n >> 16), byte(n >> 8), byte(n), frameData, flags, 0, 0, 0, id}, payload...)
}

// grpcMessage is a message of gRPC with some bytes.
func grpcMessage(n int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)), make([]byte, n)...)
}

// TestBytes reads messages in pieces of every size: their bytes are held until
// the last one has come, or the call ends.
func TestBytes(t *testing.T) {
	open := []byte{0, 0, 0, frameHeaders, 4, 0, 0, 0, 1}
	two := append(grpcMessage(300), grpcMessage(200)...)
	padded := slices.Concat([]byte{7}, grpcMessage(100), make([]byte, 7))
	for _, tt := range []struct {
		name   string
		in     []byte
		least  int // bytes held at the end
		pieces bool
	}{
		{name: "a message", in: data(1, 0, grpcMessage(300))},
		{name: "two messages", in: data(1, 0, two)},
		{name: "two messages in three frames", in: slices.Concat(data(1, 0, two[:2]), data(1, 0, two[2:400]), data(1, 0, two[400:]))},
		{name: "a part of the second", in: slices.Concat(data(1, 0, two[:2]), data(1, 0, two[2:500])), least: 500 - 305},
		{name: "a part of a message", in: slices.Concat(data(1, 0, two[:2]), data(1, 0, two[2:250])), least: 250},
		{name: "a frame to come", in: data(1, 0, two)[:20], least: 3 * len(two)},
		{name: "padding", in: data(1, flagPadded, padded)},
		{name: "more padding than bytes", in: data(1, flagPadded, []byte{200, 0, 0})},
		{name: "an empty frame", in: slices.Concat(data(1, 0, nil), data(1, 0, grpcMessage(10)))},
		{name: "the end", in: data(1, flagEndStream, two[:250])},
		{name: "an empty end", in: slices.Concat(data(1, 0, two[:250]), data(1, flagEndStream, nil))},
		{name: "a cancellation", in: slices.Concat(data(1, 0, two[:250]), []byte{0, 0, 4, frameReset, 0, 0, 0, 0, 1, 0, 0, 0, 8})},
		{name: "bytes one by one", in: slices.Concat(data(1, 0, two[:1]), data(1, 0, two[1:2]), data(1, 0, two[2:3]), data(1, 0, two[3:4]),
			data(1, 0, two[4:5]), data(1, 0, two[5:6]), data(1, 0, two[6:7])), least: 7, pieces: true},
		{name: "many messages", in: data(1, 0, bytes.Repeat(grpcMessage(1), 100))},
		{name: "an announced message of 4 GiB", in: slices.Concat(data(1, 0, []byte{0, 255, 255, 255, 255, 1}), data(1, 0, two))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := slices.Concat(open, tt.in)
			for size := 1; size <= len(in); size++ {
				var f frames
				for piece := range slices.Chunk(in, size) {
					f.scan(piece, time.Now())
				}
				if f.bytes < tt.least || tt.least == 0 && !tt.pieces && f.bytes > 200 || f.pieces != tt.pieces {
					t.Fatalf("pieces of %d: %d bytes held, too many pieces %v, want at least %d, %v", size, f.bytes, f.pieces, tt.least, tt.pieces)
				}
			}
		})
	}
}

// BenchmarkFrames reads one call.
func BenchmarkFrames(b *testing.B) {
	var f frames
	in := call(1)
	b.ReportAllocs()
	for b.Loop() {
		f.scan(in, time.Now())
	}
}
