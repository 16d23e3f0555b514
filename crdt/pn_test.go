package crdt

import (
	"math"
	"testing"
)

// TestNet includes the saturated counts, from which nothing is subtracted.
func TestNet(t *testing.T) {
	tests := []struct {
		v    PN
		want uint64
	}{
		{PN{}, 0},
		{PN{P: 5, N: 2}, 3},
		{PN{P: 5, N: 5}, 0},
		{PN{P: 2, N: 3}, 0},
		{PN{P: Max - 1, N: 100}, Max - 101},
		{PN{P: Max, N: 100}, Max},
		{PN{P: math.MaxUint64, N: 100}, math.MaxUint64},
	}
	for _, tt := range tests {
		if got := tt.v.Net(); got != tt.want {
			t.Errorf("net of %v is %d, want %d", tt.v, got, tt.want)
		}
	}
}

func TestAddSat(t *testing.T) {
	for _, tt := range []struct{ a, b, want uint64 }{
		{1, 2, 3},
		{Max - 1, 1, Max},
		{Max - 1, 2, Max},
		{Max, Max, Max},
		{math.MaxUint64, 1, Max},
		{math.MaxUint64, math.MaxUint64, Max},
	} {
		if got := AddSat(tt.a, tt.b); got != tt.want {
			t.Errorf("%d + %d = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestStrings(t *testing.T) {
	if got := (PN{P: 5, N: 2}).String(); got != "5-2" {
		t.Errorf("PN prints as %q", got)
	}
	if got := Incarnation(0xab).String(); got != "00000000000000ab" {
		t.Errorf("incarnation prints as %q", got)
	}
}

// TestAllocations holds the replication path to no allocation.
func TestAllocations(t *testing.T) {
	v, s, d := PN{}, Sum{}, Digest(0)
	id := CellID{Key: lawKey, Window: 1, Incarnation: 2}
	n := testing.AllocsPerRun(100, func() {
		was := v
		v = v.Join(PN{P: v.P + 1})
		s = s.Join(Sum(v))
		d = d.Replace(id, was, v)
	})
	if n != 0 {
		t.Errorf("%v allocations per join, want none", n)
	}
}

func BenchmarkDigestReplace(b *testing.B) {
	var d Digest
	id := CellID{Key: lawKey, Window: 1, Incarnation: 2}
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		d = d.Replace(id, PN{P: n}, PN{P: n + 1})
		n++
	}
}
