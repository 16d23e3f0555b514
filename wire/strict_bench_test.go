package wire

import (
	"runtime"
	"testing"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

func strictCases() map[string]*sticky.Message {
	batch := exampleRequest()
	for i := range 63 {
		a := batch.Requests[0]
		a.Key += crdt.Key(i + 1)
		batch.Requests = append(batch.Requests, a)
	}
	accept := &sticky.Message{From: 1 << 60, To: 1 << 61, Stamp: 1_800_000_000_000 << 16, Number: 3}
	for i := range 16 {
		watermarks := sticky.Watermarks{{Window: 1_800_000_000_000, Amount: 100, End: 1_800_000_120_000}}
		accept.Accepts = append(accept.Accepts, sticky.Accept{
			Key: crdt.Key(1<<60 | i), Ballot: sticky.Ballot{Round: 2, Owner: 1 << 60},
			Seq: 7, Known: watermarks, Watermarks: watermarks,
		})
	}
	return map[string]*sticky.Message{"request": exampleRequest(), "grant": exampleGrant(), "64 requests": batch, "16 accepts": accept}
}

func BenchmarkEncodeStrict(b *testing.B) {
	for name, m := range strictCases() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var frame []byte
			for b.Loop() {
				var err error
				if frame, err = EncodeStrict(frame[:0], m); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(frame)), "bytes")
		})
	}
}

func BenchmarkDecodeStrict(b *testing.B) {
	for name, m := range strictCases() {
		b.Run(name, func(b *testing.B) {
			frame := mustStrict(b, m)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeStrict(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestStrictAllocations bounds the allocations for the request and the grant of
// one forwarded call.
func TestStrictAllocations(t *testing.T) {
	buffer := make([]byte, 0, 1024)
	for _, m := range []*sticky.Message{exampleRequest(), exampleGrant()} {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := EncodeStrict(buffer[:0], m); err != nil {
				t.Fatal(err)
			}
		}); n > 3 {
			t.Errorf("encoding allocates %v times, want at most 3", n)
		}
		frame := mustStrict(t, m)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := DecodeStrict(frame); err != nil {
				t.Fatal(err)
			}
		}); n > 5 {
			t.Errorf("decoding allocates %v times, want at most 5", n)
		}
	}
}

// TestStrictAllocationBounded decodes the frames that need most memory for
// their length.
func TestStrictAllocationBounded(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    sticky.Message
	}{
		{"empty grants", sticky.Message{Grants: make([]sticky.LeaseGrant, sticky.MaxItems)}},
		{"empty answers", sticky.Message{Accepted: make([]sticky.Accepted, sticky.MaxItems)}},
		{"empty watermarks, rejected", sticky.Message{Accepts: []sticky.Accept{{Watermarks: make(sticky.Watermarks, 100_000)}}}},
		{"empty regions, rejected", sticky.Message{Layouts: []route.Layout{{Regions: make([]route.Region, 100_000)}}}},
		{"empty requests, rejected", sticky.Message{Requests: make([]sticky.LeaseRequest, 100_000)}},
	} {
		frame := sealedStrict(marshal(t, strictFrame(&tt.m)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = DecodeStrict(frame)
		runtime.ReadMemStats(&after)
		got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(frame))
		if got > 200 {
			t.Errorf("%s: %d bytes allocated for each of the frame, want at most 200", tt.name, got)
		}
	}
}
