package gossip

import (
	"cmp"
	"fmt"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/enum"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/internal/sat"
)

// Kind is the kind of a cell's count.
type Kind uint8

const (
	// Daemon is the count of one incarnation of a daemon. It stays in its
	// region.
	Daemon Kind = iota
	// RegionSum is the count of a region: the sum over its daemons, as known to
	// one of its aggregators.
	RegionSum
	// Others is the count of all daemons but the cell's incarnation, in all
	// regions, as known to the aggregator of the key. Only that daemon receives
	// it.
	Others
	// Given is the total of rights that the sender transferred to the cell's
	// incarnation, in P. Only that daemon receives it, in any region.
	Given
	// Transferred is the total of rights that the cell's incarnation received
	// and gave (P), and the part that it gave (N). It stays in its region.
	Transferred
	// Received is a Given as its receiver keeps it, under the incarnation of
	// the donor. It is never sent.
	Received
)

// Counts reports whether cells of the kind hold hits.
func (k Kind) Counts() bool { return k <= Others }

// MaxKind is the greatest kind that is sent.
const MaxKind = Transferred

// String returns the kind for status pages.
func (k Kind) String() string {
	return enum.Name(k, "daemon", "region", "others than", "given to", "traded by", "received from")
}

// CellID identifies one cell of the replicated state. Kind is part of it, so
// that an incarnation of a daemon is never confused with that of a region.
type CellID struct {
	Key         crdt.Key
	Window      int64 // start of the window, Unix milliseconds
	Kind        Kind
	Incarnation crdt.Incarnation
}

// Before reports whether a comes before b in frames. Mostly the key decides.
func (a *CellID) Before(b *CellID) bool {
	return a.Key < b.Key && a.Incarnation == b.Incarnation && a.Kind == b.Kind || compare(a, b) < 0
}

// Compare orders cells as in frames: by kind, incarnation, key and window.
func (a CellID) Compare(b CellID) int { return compare(&a, &b) }

func compare(a, b *CellID) int {
	switch {
	case a.Kind != b.Kind:
		return cmp.Compare(a.Kind, b.Kind)
	case a.Incarnation != b.Incarnation:
		return cmp.Compare(a.Incarnation, b.Incarnation)
	}
	return compareInIncarnation(a, b)
}

// compareInIncarnation orders the cells of one incarnation.
func compareInIncarnation(a, b *CellID) int {
	if a.Key != b.Key {
		return a.Key.Compare(b.Key)
	}
	return cmp.Compare(a.Window, b.Window)
}

// CellMeta describes a cell for the engine: how long it counts. It is the same
// for all cells of a key and window except for Carry and Rule: see join.
type CellMeta struct {
	// Rule identifies the rule and the grid it counts on, for folding the cell.
	// 0 for hits under an override alone.
	Rule uint64
	// WindowLength is in milliseconds, at least 1.
	WindowLength int64
	// Carry is for how many milliseconds after the end of the window the cell
	// still counts (sliding windows, debt, buckets).
	Carry int64
	// Regional cells never leave their region (scope: region).
	Regional bool
}

// End returns the instant in Unix milliseconds from which a cell of the window
// no longer counts by a correct clock.
func (s CellMeta) End(window int64) int64 {
	return sat.AddInt(sat.AddInt(window, s.WindowLength), s.Carry)
}

// join returns the description of a cell that has two: the longest Carry
// counts, and a rule before none. Of two rules the first stays.
func (s CellMeta) join(o *CellMeta) CellMeta {
	s.Carry = max(s.Carry, o.Carry)
	if s.Rule == 0 {
		s.Rule = o.Rule
	}
	return s
}

// Cell is one cell as in messages. P and N only grow.
type Cell struct {
	CellMeta
	// MetaRef names the description. A cell from a frame whose description is
	// known has the place of the window in its block in place of the window,
	// and no description, until the engine receives it.
	MetaRef
	// Rate is the observed growth of a forwarded RegionSum in hits per second,
	// 0 for unknown or none. It is a measurement and no part of the lattice.
	Rate uint32
	// Short reports that the receiver knows the key: a frame has its first two
	// bytes alone. The key of a cell from a frame has these, and then zeros,
	// until the engine receives it.
	Short bool
	Value crdt.PN
	CellID
	// Level is, of Others of a bucket, one more than the hits that are in use
	// of it at the sender, 0 for unknown: hits that are late do not tell when
	// they came. Seen are the receiver's own hits of the window that the sender
	// has, net. No part of the lattice either.
	Level, Seen uint64
}

// join returns the value that covers two of one cell: the lexicographically
// greater one of sums, and the maximum of each number otherwise.
func (k Kind) join(a, b crdt.PN) crdt.PN {
	if k == RegionSum || k == Others {
		return crdt.PN(crdt.Sum(a).Join(crdt.Sum(b)))
	}
	return a.Join(b)
}

// String describes the cell for status pages.
func (c Cell) String() string {
	return fmt.Sprintf("%016x@%d %s %v: %v", uint64(c.Key), c.Window, c.Kind, c.Incarnation, c.Value)
}

// nameBits is the part of an incarnation that its daemon's name determines.
const nameBits = 32

// DaemonIncarnation returns the incarnation of a start of a daemon: one half is
// the hash of its region and name, so that no daemon of another name can count
// under it, the other half is random.
func DaemonIncarnation(region, name string, random uint32) crdt.Incarnation {
	h := rendezvous.Hash("daemon", region, name)
	return crdt.Incarnation(h>>nameBits<<nameBits | uint64(random))
}

// IncarnationOf reports whether an incarnation is one of a daemon, see
// DaemonIncarnation.
func IncarnationOf(id crdt.Incarnation, region, name string) bool {
	return id == DaemonIncarnation(region, name, uint32(id))
}

// DaemonOf returns the half of an incarnation that is the same for all starts
// of a daemon.
func DaemonOf(id crdt.Incarnation) uint32 { return uint32(id >> nameBits) }

// RegionIncarnation returns the incarnation of the sums of a region.
func RegionIncarnation(region string) crdt.Incarnation {
	return crdt.Incarnation(rendezvous.Hash("region", region))
}

// LostIncarnation returns the incarnation under which a region keeps the counts
// that only other regions still know.
func LostIncarnation(region string) crdt.Incarnation {
	return crdt.Incarnation(rendezvous.Hash("lost", region))
}
