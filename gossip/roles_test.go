package gossip

import (
	"slices"
	"testing"
)

// Daemons with the same numbers at the ends of their names aggregate the same
// keys in all regions, unless a region has none or one twice.
func TestRanks(t *testing.T) {
	region := func(names ...string) *members {
		m := &members{}
		for _, n := range names {
			m.add(RegionIncarnation(n), namingOf(n))
		}
		m.rank()
		return m
	}
	for _, test := range []struct {
		name string
		a, b []string
		same bool
	}{
		{"numbers", []string{"eu-0", "eu-1", "eu-2"}, []string{"us-east-0", "us-east-1", "us-east-2"}, true},
		{"zeros before", []string{"a01", "a02", "a10"}, []string{"b1", "b2", "b10"}, true},
		{"other numbers", []string{"a1", "a2", "a3"}, []string{"b1", "b2", "b4"}, false},
		{"one more", []string{"a1", "a2"}, []string{"b1", "b2", "b3"}, false},
		{"no number", []string{"a1", "a2", "ax"}, []string{"b1", "b2", "bx"}, false},
		{"a number twice", []string{"a-1-1", "a-2-1"}, []string{"b-1-1", "b-2-1"}, false},
	} {
		if got := region(test.a...).sameRanks(region(test.b...)); got != test.same {
			t.Errorf("%s: same ranks %v, want %v", test.name, got, test.same)
		}
	}
	a, b := region("eu-0", "eu-1", "eu-2"), region("us-2", "us-1", "us-0")
	rank := func(m *members, k int) uint64 { // of the aggregator of a key
		return m.ranks[slices.Index(m.ids, m.pair(testKey(k)).aggregator)]
	}
	for k := range 100 {
		if rank(a, k) != rank(b, k) {
			t.Fatalf("key %d has aggregators of different numbers", k)
		}
	}
}
