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
}

// Generations are store numbers, ascending by voter. No method changes its
// receiver.
type Generations []Generation

// maxGenerations bounds the store numbers that a voter reports: those of its
// region's voters in this layout, the one before and the next.
const maxGenerations = 4 * MaxReplicas

// Of returns the store number of a voter, 0 if unknown.
func (g Generations) Of(voter uint64) uint64 {
	for _, x := range g {
		if x.Voter == voter {
			return x.Generation
		}
	}
	return 0
}

// With returns g with the store number of a voter raised to at least
// generation. It returns g itself when nothing changes.
func (g Generations) With(voter, generation uint64) Generations {
	i, ok := slices.BinarySearchFunc(g, voter, func(x Generation, v uint64) int { return cmp.Compare(x.Voter, v) })
	switch {
	case ok && g[i].Generation >= generation, !ok && generation == 0:
		return g
	case ok:
		g = slices.Clone(g)
		g[i].Generation = generation
		return g
	}
	return slices.Insert(slices.Clone(g), i, Generation{voter, generation})
}

// Full reports whether g is beyond the bound that Validate checks.
func (g Generations) Full() bool { return len(g) > maxGenerations }

// Validate returns an error for store numbers that are out of order or too
// many.
func (g Generations) Validate() error {
	if g.Full() {
		return fmt.Errorf("store numbers of %d voters: want at most %d", len(g), maxGenerations)
	}
	for i := 1; i < len(g); i++ {
		if g[i-1].Voter >= g[i].Voter {
			return fmt.Errorf("store number of voter %016x: want each voter once, ascending", g[i].Voter)
		}
	}
	return nil
}
