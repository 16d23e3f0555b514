package journal

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkAppend measures appends that are on disk, and records, of the size
// of one ledger's.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("%d records", n), func(b *testing.B) {
			j, _ := mustOpen(b, b.TempDir())
			batch := slices.Repeat([][]byte{make([]byte, 64)}, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Append(batch); err != nil {
					b.Fatal(err)
				}
				if j.ShouldCompact() {
					b.StopTimer()
					if err := j.Rewrite(slices.Values(batch)); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkOpen measures the opening of a journal of 100,000 ledgers.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	j, _ := mustOpen(b, dir)
	if err := j.Rewrite(slices.Values(slices.Repeat([][]byte{make([]byte, 64)}, 100_000))); err != nil {
		b.Fatal(err)
	}
	stored(b, j)
	for b.Loop() {
		mustOpenClosed(b, dir)
	}
}
