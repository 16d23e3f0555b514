package control

import (
	"reflect"
	"testing"

	"github.com/georld/rld/sticky/route"
)

// TestMergeReserves: of two numbers of reserves for the same windows the larger
// one counts, and no region has a reserve that is new to either.
func TestMergeReserves(t *testing.T) {
	is := []route.Reserves{{Regions: 2}, {From: 100, Regions: 3, New: []string{"b"}}}
	more := []route.Reserves{{Regions: 3}, {From: 50, Regions: 1}, {From: 100, Regions: 2, New: []string{"a", "b"}}}
	want := []route.Reserves{{Regions: 3}, {From: 50, Regions: 1}, {From: 100, Regions: 3, New: []string{"a", "b"}}}
	if got := mergeReserves(is, more); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if is[0].Regions != 2 {
		t.Error("the reserves of the layout were changed in place")
	}
}
