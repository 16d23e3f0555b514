package route

import (
	"cmp"
	"fmt"
	"slices"
)

// Generation is the store number of a strict voter: it ascends each time the
// voter loses its disk. Voter is a NameHash.
type Generation struct {
	Voter      uint64 `json:"voter"`
	Generation uint64 `json:"generation"`
	// Writes is the number of a durable write of the voter since then. A disk
	// without it is older than it was.
	Writes uint64 `json:"writes,omitempty"`
}

// Before reports whether g is of an earlier disk or an earlier write than o.
func (g Generation) Before(o Generation) bool {
	return g.Generation < o.Generation || g.Generation == o.Generation && g.Writes < o.Writes
}

// Generations are store numbers, ascending by voter. No method changes its
// receiver.
type Generations []Generation

// maxGenerations bounds the store numbers that a voter reports: those of its
// region's voters in this layout, the one before and the next.
const maxGenerations = 4 * MaxReplicas

// maxGeneration bounds store numbers, so that there is always a greater one.
const maxGeneration = 1 << 62

// Of returns the store number of a voter, 0 if unknown.
func (g Generations) Of(voter uint64) uint64 { return g.Get(voter).Generation }

// Get returns the entry of a voter.
func (g Generations) Get(voter uint64) Generation {
	for _, x := range g {
		if x.Voter == voter {
			return x
		}
	}
	return Generation{Voter: voter}
}

// With returns g with the store number of a voter raised to at least another
// one. It returns g itself when nothing changes.
func (g Generations) With(to Generation) Generations {
	i, ok := slices.BinarySearchFunc(g, to.Voter, func(x Generation, v uint64) int { return cmp.Compare(x.Voter, v) })
	switch {
	case ok && !g[i].Before(to), !ok && to == Generation{Voter: to.Voter}:
		return g
	case ok:
		g = slices.Clone(g)
		g[i] = to
		return g
	}
	return slices.Insert(slices.Clone(g), i, to)
}

// Full reports whether g is beyond the bound that Validate checks.
func (g Generations) Full() bool { return len(g) > maxGenerations }

// Validate returns an error for store numbers that are out of order or too
// many.
func (g Generations) Validate() error {
	if g.Full() {
		return fmt.Errorf("store numbers of %d voters: want at most %d", len(g), maxGenerations)
	}
	for i := range g {
		if g[i].Generation > maxGeneration {
			return fmt.Errorf("store number %d of voter %016x: want at most %d", g[i].Generation, g[i].Voter, uint64(maxGeneration))
		}
		if i > 0 && g[i-1].Voter >= g[i].Voter {
			return fmt.Errorf("store number of voter %016x: want each voter once, ascending", g[i].Voter)
		}
	}
	return nil
}
