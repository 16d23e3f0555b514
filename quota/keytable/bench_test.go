package keytable

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/georld/rld/crdt"
)

// BenchmarkLookup compares a table with a map of the standard library over the
// same entries: a random key of a million, found and read. The metric B/key is
// the memory beside the entry.
func BenchmarkLookup(b *testing.B) {
	const n = 1_000_000
	key := func(i int) crdt.Key {
		r := rand.NewPCG(uint64(i), 7)
		return crdt.Key(r.Uint64())
	}
	s := New(nil)
	for i := range n {
		s.Settle()
		s.Insert(key(i))
	}
	var sum int64
	b.Run("table", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			sum += s.Find(key(i * 7919 % n)).Cell.Window
		}
		b.ReportMetric(float64(64*(len(s.chunks)*ChunkSize-n))/n, "B/key")
	})
	before := heap()
	m := make(map[crdt.Key]*Entry)
	for i := range n {
		m[key(i)] = s.Find(key(i))
	}
	perKey := float64(heap()-before) / n
	b.Run("map", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			sum += m[key(i*7919%n)].Cell.Window
		}
		b.ReportMetric(perKey, "B/key")
	})
	if sum != 0 {
		b.Fatal("an entry was changed")
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
