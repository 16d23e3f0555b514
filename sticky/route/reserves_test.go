package route

import (
	"reflect"
	"testing"
)

// TestWithReserves: a region that gets owners has no reserve in windows that
// began before, also where another region lost its own.
func TestWithReserves(t *testing.T) {
	a, b, c := Region{Name: "a", Weight: 1}, Region{Name: "b", Weight: 1}, Region{Name: "c", Weight: 1}
	first := Layout{Number: 1, Regions: []Region{a, c}}.WithReserves(0, nil)
	second := Layout{Number: 2, Regions: []Region{a, b}, Reserves: first.Reserves}.WithReserves(100, &first)
	third := Layout{Number: 3, Regions: []Region{a, b}, Reserves: second.Reserves}.WithReserves(200, &second)
	want := []Reserves{{Regions: 2}, {From: 100, Regions: 2, New: []string{"b"}}}
	if !reflect.DeepEqual(third.Reserves, want) {
		t.Fatalf("reserves %+v, want %+v", third.Reserves, want)
	}
	for _, tc := range []struct {
		region string
		start  int64
		want   bool
	}{{"a", 0, true}, {"a", 100, true}, {"b", 99, false}, {"b", 100, true}} {
		if got := New(&third, tc.region, "", 0, nil).Reserved(tc.start); got != tc.want {
			t.Errorf("region %s, window %d: reserved %t, want %t", tc.region, tc.start, got, tc.want)
		}
	}
}
