package crdt

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/crdt/crdttest"
)

var lawKey = Key{Hi: 1, Lo: 2}

func gcounters() crdttest.Lattice[GCounter] {
	return crdttest.Lattice[GCounter]{
		Join:   func(into, from *GCounter) bool { return must(into.Join(from)) },
		Covers: (*GCounter).Covers,
		Equal:  (*GCounter).Equal,
		Clone:  func(g *GCounter) GCounter { return g.Clone() },
		Show:   func(g *GCounter) string { return g.String() },
		Delta:  func(have, since *GCounter) GCounter { return have.Delta(since) },
		Digest: func(g *GCounter) uint64 { return uint64(g.Digest(lawKey, 3)) },
	}
}

func pncounters() crdttest.Lattice[PNCounter] {
	return crdttest.Lattice[PNCounter]{
		Join:   func(into, from *PNCounter) bool { return must(into.Join(from)) },
		Covers: (*PNCounter).Covers,
		Equal:  (*PNCounter).Equal,
		Clone:  func(p *PNCounter) PNCounter { return p.Clone() },
		Show:   func(p *PNCounter) string { return p.String() },
		Delta:  func(have, since *PNCounter) PNCounter { return have.Delta(since) },
		Digest: func(p *PNCounter) uint64 { return uint64(p.Digest(lawKey, 3)) },
	}
}

func sums() crdttest.Lattice[Sum] {
	return crdttest.Lattice[Sum]{
		Join:      func(into, from *Sum) bool { return into.Join(*from) },
		Covers:    func(a, b *Sum) bool { return a.P > b.P || a.P == b.P && a.N >= b.N },
		Equal:     func(a, b *Sum) bool { return *a == *b },
		Clone:     func(s *Sum) Sum { return *s },
		Show:      func(s *Sum) string { return s.String() },
		Selective: true,
	}
}

// must is for joins of the few slots that generators draw from.
func must(changed bool, err error) bool {
	if err != nil {
		panic(err)
	}
	return changed
}

// Generators draw from few slots and small numbers, so that values collide.

func genIncarnation() *rapid.Generator[Incarnation] {
	return rapid.Custom(func(t *rapid.T) Incarnation { return Incarnation(rapid.Uint64Range(0, 4).Draw(t, "slot")) })
}

func genPN(limit uint64) *rapid.Generator[PN] {
	return rapid.Custom(func(t *rapid.T) PN {
		p := rapid.Uint64Range(0, limit).Draw(t, "p")
		return PN{P: p, N: rapid.Uint64Range(0, p).Draw(t, "n")}
	})
}

func genGCounter() *rapid.Generator[GCounter] {
	return rapid.Custom(func(t *rapid.T) GCounter {
		var g GCounter
		for range rapid.IntRange(0, 5).Draw(t, "cells") {
			must(g.JoinCell(genIncarnation().Draw(t, "slot"), rapid.Uint64Range(0, 3).Draw(t, "count")))
		}
		return g
	})
}

func genPNCounter() *rapid.Generator[PNCounter] {
	return rapid.Custom(func(t *rapid.T) PNCounter {
		var p PNCounter
		for range rapid.IntRange(0, 5).Draw(t, "cells") {
			must(p.JoinCell(genIncarnation().Draw(t, "slot"), genPN(3).Draw(t, "cell")))
		}
		return p
	})
}

func TestLawsGCounter(t *testing.T)  { crdttest.Laws(t, gcounters(), genGCounter()) }
func TestLawsPNCounter(t *testing.T) { crdttest.Laws(t, pncounters(), genPNCounter()) }

func TestLawsSum(t *testing.T) {
	crdttest.Laws(t, sums(), rapid.Custom(func(t *rapid.T) Sum { return Sum(genPN(3).Draw(t, "sum")) }))
}

// Replicas number their slots against the order in which they write, so that
// cells are inserted in front as well.

func TestConvergeGCounter(t *testing.T) {
	crdttest.Converge(t, crdttest.Counter[GCounter]{
		Lattice: gcounters(),
		Add:     func(g *GCounter, writer, n uint64) { check(g.Add(^Incarnation(writer), n)) },
		Value:   (*GCounter).Value,
	})
}

func TestConvergePNCounter(t *testing.T) {
	crdttest.Converge(t, crdttest.Counter[PNCounter]{
		Lattice: pncounters(),
		Add:     func(p *PNCounter, writer, n uint64) { check(p.Add(^Incarnation(writer), n)) },
		Refund:  func(p *PNCounter, writer, n uint64) { check(p.Refund(^Incarnation(writer), n)) },
		Value:   (*PNCounter).Value,
	})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
