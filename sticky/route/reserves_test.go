package route

import (
	"reflect"
	"testing"
)

// TestWithReserves: a region that a former layout lacks has no reserve in
// windows that began before, also where another region lost its own.
func TestWithReserves(t *testing.T) {
	region := func(name string) Region { return Region{Name: name, Weight: 1, Replicas: []string{name + "-0"}} }
	a, b, c := region("a"), region("b"), region("c")
	// after returns a layout that follows others, and has their reserves.
	after := func(number uint64, from int64, regions []Region, formers ...Layout) Layout {
		l := Layout{Number: number, Regions: regions}
		for i := range formers {
			l.Formers, l.Reserves = append(l.Formers, formers[i].Former()), formers[i].Reserves
		}
		return l.WithReserves(from)
	}
	first := after(1, 0, []Region{a, c})
	second := after(2, 100, []Region{a, b}, first)
	third := after(3, 200, []Region{a, b}, second)
	// A recovery dropped the second layout, and the first one was active again.
	recovered := after(4, 300, []Region{a, b, c}, first, second)
	// A recovery dropped that the first layout was active, and with that its
	// reserves. One region is drained, or lost with its voters.
	dropped := first
	dropped.Reserves = nil
	drained := after(2, 100, []Region{a}, dropped)
	lost := Layout{Number: 2, Regions: []Region{a}, Formers: []Former{dropped.Former()}, Lost: []Loss{dropped.LossOf("c", 50)}}
	lost.Formers[0].Regions = lost.Formers[0].Regions[:1]
	lost = lost.WithReserves(100)
	for _, l := range []Layout{drained, lost} {
		if !l.HasReserves(&first) {
			t.Errorf("reserves %+v: want those of the dropped layout, %+v", l.Reserves, first.Reserves)
		}
	}
	for _, tc := range []struct {
		name  string
		is    Layout
		want  []Reserves
		since map[string]int64 // when the reserve of a region begins
	}{
		{"first", first, []Reserves{{Regions: 2}}, map[string]int64{"a": 0, "c": 0}},
		{"region drained after a dropped activation", drained, []Reserves{{Regions: 2}, {From: 100, Regions: 1}}, map[string]int64{"a": 0}},
		{"region lost after a dropped activation", lost, []Reserves{{Regions: 2}, {From: 100, Regions: 1}}, map[string]int64{"a": 0}},
		{"other region", second, []Reserves{{Regions: 2}, {From: 100, Regions: 2, New: []string{"b"}}}, map[string]int64{"a": 0, "b": 100}},
		{"same regions", third, second.Reserves, map[string]int64{"a": 0, "b": 100}},
		{"recovered", recovered, []Reserves{
			{Regions: 2}, {From: 100, Regions: 2, New: []string{"b"}}, {From: 300, Regions: 3, New: []string{"b", "c"}},
		}, map[string]int64{"a": 0, "b": 300, "c": 300}},
	} {
		if !reflect.DeepEqual(tc.is.Reserves, tc.want) {
			t.Errorf("%s: reserves %+v, want %+v", tc.name, tc.is.Reserves, tc.want)
		}
		for name, since := range tc.since {
			v := New(&tc.is, name, "", 0, nil)
			if !v.Reserved(since) || since > 0 && v.Reserved(since-1) {
				t.Errorf("%s: region %s: want a reserve in windows from %d on, and none before", tc.name, name, since)
			}
		}
	}
}
