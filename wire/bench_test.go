package wire

import (
	"testing"

	"github.com/georld/rld/gossip"
)

func benchmarkCases() map[string][]gossip.Message {
	return map[string][]gossip.Message{
		"idle":                 shards(1, idle()),
		"idle, 8 shards":       shards(8, inRegion(idle())),
		"1 known cell":         shards(1, knownCells(1, gossip.Daemon)),
		"10 cells, 3 rules":    shards(1, inRegion(busy(10, 3))),
		"4096 cells, 5 rules":  shards(1, busy(4096, 5)),
		"4096 cells, 99 rules": shards(1, busy(4096, 99)),
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, msgs := range benchmarkCases() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var frame []byte
			for b.Loop() {
				var err error
				if frame, err = Encode(frame[:0], msgs); err != nil {
					b.Fatal(err)
				}
			}
			perCell(b, msgs)
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, msgs := range benchmarkCases() {
		b.Run(name, func(b *testing.B) {
			frame := mustEncode(b, msgs...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := new(Decoder).Decode(msgs[0].From, msgs[0].To, frame); err != nil {
					b.Fatal(err)
				}
			}
			perCell(b, msgs)
		})
	}
}

// perCell reports the time that each cell of msgs took.
func perCell(b *testing.B, msgs []gossip.Message) {
	if cells := len(msgs) * len(msgs[0].Cells); cells > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cells), "ns/cell")
	}
}

func TestAllocations(t *testing.T) {
	msgs := shards(1, idle())
	frame := mustEncode(t, msgs...)
	buffer := make([]byte, 0, 1024)
	var e Encoder
	var d Decoder
	for _, test := range []struct {
		name string
		call func() error
	}{
		{"Encode", func() error { _, err := e.Encode(buffer, msgs); return err }},
		{"Decode", func() error { _, err := d.Decode(msgs[0].From, msgs[0].To, frame); return err }},
	} {
		if got := testing.AllocsPerRun(100, func() {
			if err := test.call(); err != nil {
				t.Fatal(err)
			}
		}); got > 0 {
			t.Errorf("%s of an idle frame: %v allocations, want none", test.name, got)
		}
	}
}
