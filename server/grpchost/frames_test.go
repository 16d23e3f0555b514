package grpchost

import (
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
		if !f.begun || cancelled != 2 || !slices.Equal(f.incomplete, []uint32{3}) {
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
		if len(f.incomplete) > maxIncompleteEach+1 {
			t.Fatalf("%d incomplete calls are known", len(f.incomplete))
		}
	})
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
