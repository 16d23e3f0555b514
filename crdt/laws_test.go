package crdt

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt/crdttest"
)

var lawKey = Key(12)

func pns() crdttest.Lattice[PN] {
	return crdttest.Lattice[PN]{
		Join: func(into, from *PN) bool {
			was := *into
			*into = into.Join(*from)
			return *into != was
		},
		Covers: func(a, b *PN) bool { return a.P >= b.P && a.N >= b.N },
		Equal:  func(a, b *PN) bool { return *a == *b },
		Clone:  func(v *PN) PN { return *v },
		Show:   func(v *PN) string { return v.String() },
		Digest: func(v *PN) uint64 { return uint64(cellDigest(CellID{Key: lawKey, Window: 3}, *v)) },
	}
}

func sums() crdttest.Lattice[Sum] {
	return crdttest.Lattice[Sum]{
		Join: func(into, from *Sum) bool {
			was := *into
			*into = into.Join(*from)
			return *into != was
		},
		Covers:    func(a, b *Sum) bool { return a.P > b.P || a.P == b.P && a.N >= b.N },
		Equal:     func(a, b *Sum) bool { return *a == *b },
		Clone:     func(s *Sum) Sum { return *s },
		Show:      func(s *Sum) string { return fmt.Sprintf("%d-%d", s.P, s.N) },
		Selective: true,
	}
}

// cells is the state of a replica that keeps one PN per incarnation, as gossip
// does.
type cells map[Incarnation]PN

func replicas() crdttest.Lattice[cells] {
	return crdttest.Lattice[cells]{
		Join: func(into, from *cells) (changed bool) {
			if *into == nil {
				*into = cells{}
			}
			for i, v := range *from {
				was := (*into)[i]
				(*into)[i] = was.Join(v)
				changed = changed || (*into)[i] != was
			}
			return changed
		},
		Covers: func(a, b *cells) bool { return len(*missing(b, a)) == 0 },
		Equal:  func(a, b *cells) bool { return maps.Equal(*a, *b) },
		Clone:  func(c *cells) cells { return maps.Clone(*c) },
		Show:   func(c *cells) string { return fmt.Sprint(map[Incarnation]PN(*c)) },
		Delta:  func(have, since *cells) cells { return *missing(have, since) },
		Digest: func(c *cells) uint64 {
			d := Digest(0)
			for i, v := range *c {
				d = d.Replace(CellID{Key: lawKey, Window: 3, Incarnation: i}, PN{}, v)
			}
			return uint64(d)
		},
	}
}

// missing returns the cells of have that are greater than those of since.
func missing(have, since *cells) *cells {
	d := cells{}
	for i, v := range *have {
		if had := (*since)[i]; v.P > had.P || v.N > had.N {
			d[i] = v
		}
	}
	return &d
}

// The generators draw from few incarnations and small numbers, so that values
// collide.

func genIncarnation() *rapid.Generator[Incarnation] {
	return rapid.Custom(func(t *rapid.T) Incarnation {
		return Incarnation(rapid.Uint64Range(0, 4).Draw(t, "incarnation"))
	})
}

func genPN(limit uint64) *rapid.Generator[PN] {
	return rapid.Custom(func(t *rapid.T) PN {
		p := rapid.Uint64Range(0, limit).Draw(t, "p")
		return PN{P: p, N: rapid.Uint64Range(0, p).Draw(t, "n")}
	})
}

func genCells() *rapid.Generator[cells] {
	return rapid.Custom(func(t *rapid.T) cells {
		c := cells{}
		for range rapid.IntRange(0, 5).Draw(t, "cells") {
			if v := genPN(3).Draw(t, "cell"); v != (PN{}) {
				c[genIncarnation().Draw(t, "incarnation")] = v
			}
		}
		return c
	})
}

func TestLawsPN(t *testing.T)    { crdttest.Laws(t, pns(), genPN(3)) }
func TestLawsCells(t *testing.T) { crdttest.Laws(t, replicas(), genCells()) }

func TestLawsSum(t *testing.T) {
	crdttest.Laws(t, sums(), rapid.Custom(func(t *rapid.T) Sum { return Sum(genPN(3).Draw(t, "sum")) }))
}
