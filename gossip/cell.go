package gossip

import (
	"fmt"

	"github.com/georld/rld/internal/rendezvous"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
)

// Kind says whose count a cell is.
type Kind uint8

const (
	// Daemon is a slot of one incarnation of one daemon. Its cells stay in
	// their region.
	Daemon Kind = iota
	// RegionSum is the slot of a whole region: the sum of its daemons' slots
	// as one of its aggregators knew it.
	RegionSum
	// Given is the rights that the daemon which tells it gave to the slot's, in
	// all, in P. It is told to that one alone, in whatever region.
	Given
	// Transferred is the rights that the slot's daemon was given and gave (P), and
	// of these what it gave (N). It stays in its region.
	Transferred
	// Received is a Given as its receiver keeps it: under the slot of who gave
	// it. It is told to nobody.
	Received
)

// Counts reports whether cells of the kind hold hits.
func (k Kind) Counts() bool { return k <= RegionSum }

// MaxKind is the greatest kind that is told to anybody.
const MaxKind = Transferred

// String names the kind for people.
func (k Kind) String() string {
	names := [...]string{"daemon", "region", "given to", "traded by", "received from"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// CellID names one cell of the replicated state. Kind is part of the name, so
// that no daemon's slot can be taken for a region's.
type CellID struct {
	Key         crdt.Key
	Window      int64 // start of the label, Unix milliseconds
	Kind        Kind
	Incarnation crdt.Incarnation
}

// Compare orders cells as frames and states list them: by kind, slot, key and
// label.
func (a CellID) Compare(b CellID) int {
	switch {
	case a.Kind != b.Kind:
		return order(uint64(a.Kind), uint64(b.Kind))
	case a.Incarnation != b.Incarnation:
		return order(uint64(a.Incarnation), uint64(b.Incarnation))
	}
	return compareInIncarnation(&a, &b)
}

// compareInIncarnation orders the cells of one slot.
func compareInIncarnation(a, b *CellID) int {
	switch {
	case a.Key.Hi != b.Key.Hi:
		return order(a.Key.Hi, b.Key.Hi)
	case a.Key.Lo != b.Key.Lo:
		return order(a.Key.Lo, b.Key.Lo)
	case a.Window < b.Window:
		return -1
	case a.Window > b.Window:
		return 1
	}
	return 0
}

func order(a, b uint64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

// CellMeta is what of a cell's meaning the engine has to know: how long it
// matters. It is the same for all cells of a key's label, but for Carry, of
// which the longest counts.
type CellMeta struct {
	// Rule names the rule that counts here and the grid it counts on, for
	// those who must fold the cell. 0 for an override without a rule.
	Rule uint64
	// WindowLength is the length of the label in milliseconds, at least 1.
	WindowLength int64
	// Carry is for how many milliseconds beyond the end of the label the
	// cell still matters (sliding windows, debt, buckets).
	Carry int64
	// Regional cells never leave their region (scope: region).
	Regional bool
}

// End is the instant in Unix milliseconds from which a cell of the label can
// no longer matter to a correct clock.
func (s CellMeta) End(window int64) int64 {
	return sat.AddInt(sat.AddInt(window, s.WindowLength), s.Carry)
}

// Cell is one cell on its way or at rest. P and N only grow.
type Cell struct {
	Value crdt.PN
	// Rate is, for a RegionSum handed on inside a region, the hits a second by
	// which the region's count was seen to grow, 0 for unknown or none. It
	// is a measurement and no part of the lattice.
	Rate uint32
	CellMeta
	CellID
}

// String describes the cell for people.
func (c Cell) String() string {
	return fmt.Sprintf("%016x%016x@%d %s %v: %v", c.Key.Hi, c.Key.Lo, c.Window, c.Kind, c.Incarnation, c.Value)
}

// RegionIncarnation returns the slot under which the sums of a region travel.
func RegionIncarnation(region string) crdt.Incarnation {
	return crdt.Incarnation(rendezvous.Hash("region", region))
}

// LostIncarnation returns the slot under which a region keeps what others remember of
// its incarnations that all of its daemons have forgotten.
func LostIncarnation(region string) crdt.Incarnation {
	return crdt.Incarnation(rendezvous.Hash("lost", region))
}
