package crdt

import "testing"

// region is the counter of a key that every daemon of a region has touched.
func region(daemons int) GCounter {
	var g GCounter
	for i := range daemons {
		check(g.Add(Incarnation(i)*0x9e3779b97f4a7c15, uint64(i)+1))
	}
	return g
}

func TestNoAllocations(t *testing.T) {
	g, other, d := region(10), region(10), Digest(0)
	own := Incarnation(3 * 0x9e3779b97f4a7c15 & (1<<64 - 1))
	n := uint64(0)
	tests := []struct {
		name string
		call func()
	}{
		{"Add", func() { check(g.Add(own, 1)) }},
		{"Value", func() { n += g.Value() }},
		{"Get", func() { n += g.Get(own) }},
		{"Join", func() { check(other.Add(own, 2)); must(g.Join(&other)) }},
		{"JoinCell", func() { n++; must(g.JoinCell(own, n)) }},
		{"Covers", func() { g.Covers(&other) }},
		{"Delta of nothing", func() { other.Delta(&g) }},
		{"All", func() {
			for _, c := range g.All() {
				n += c
			}
		}},
		{"Digest", func() { d = d.Plus(g.Digest(lawKey, 1)) }},
	}
	for _, tt := range tests {
		if n := testing.AllocsPerRun(100, tt.call); n != 0 {
			t.Errorf("%s: %v allocations a call", tt.name, n)
		}
	}
}

func BenchmarkGCounter(b *testing.B) {
	g, other := region(10), region(10)
	own := Incarnation(5)
	check(g.Add(own, 1))
	cases := []struct {
		name string
		call func()
	}{
		{"Add", func() { check(g.Add(own, 1)) }},
		{"Value", func() { g.Value() }},
		{"JoinCell", func() { must(g.JoinCell(own, 1)) }},
		{"Join", func() { must(g.Join(&other)) }},
	}
	for _, bc := range cases {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bc.call()
			}
		})
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
