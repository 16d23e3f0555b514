package connlimit

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	needs := []Need{{16, 16}, {16, 1_016}, {32, 3_032}}
	for _, tt := range []struct {
		limit uint64
		want  []int // nil for an error
	}{
		{163, nil},
		{164, []int{16, 16, 32}},
		{168, []int{16, 17, 35}},
		{2_164, []int{16, 516, 1_532}},
		{4_164, []int{16, 1_016, 3_032}},
		{4_165, []int{16, 1_016, 3_032}},
		{math.MaxUint64, []int{16, 1_016, 3_032}},
	} {
		got, err := Plan(tt.limit, 100, needs...)
		if !slices.Equal(got, tt.want) {
			t.Errorf("limit %d: %v, error %v, want %v", tt.limit, got, err, tt.want)
		}
		if tt.want == nil && (err == nil || !strings.Contains(err.Error(), "163, want at least 164")) {
			t.Errorf("limit %d: error %v, want both numbers", tt.limit, err)
		}
	}
	for limit := uint64(164); limit < 5_000; limit++ {
		got, err := Plan(limit, 100, needs...)
		if err != nil || uint64(100+got[0]+got[1]+got[2]) > limit {
			t.Fatalf("limit %d: %v, error %v", limit, got, err)
		}
	}
}

// TestBounds divides the files of a listener.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		files, established int
		want               Bounds
	}{
		{NeedOf(16, 4_096).Most, 4_096, Bounds{Established: 4_096, Unfinished: 256}},
		{NeedOf(16, 10).Most, 10, Bounds{Established: 10, Unfinished: 66}},
		{16, 4_096, Bounds{Established: 12, Unfinished: 4}},
		{400, 4_096, Bounds{Established: 300, Unfinished: 100}},
	} {
		if got := BoundsOf(tt.files, tt.established); got != tt.want {
			t.Errorf("%d files for %d connections: %+v, want %+v", tt.files, tt.established, got, tt.want)
		}
	}
}
