package crdt

import "fmt"

// Slot names the one writer of a cell: an incarnation of a daemon, by a random
// 64-bit id drawn at its start.
type Slot uint64

// String returns the 16 hexadecimal digits that logs and tools show.
func (s Slot) String() string { return fmt.Sprintf("%016x", uint64(s)) }

// MaxSlots is the most slots a counter holds. Two valid counters could
// otherwise be joined into one too large for any frame, and a peer that makes
// up slots could fill the memory. It leaves room for thousands of incarnations
// within the life of one label.
const MaxSlots = 4096

// SlotsError is the refusal of an addition or a join that would have left a
// counter with more than MaxSlots slots. The counter is as it was. What was
// refused stays with its sender; who may not lose it denies instead.
type SlotsError struct {
	Held  int // slots of the counter
	Added int // slots that would have been new
}

// Error names both numbers and the bound.
func (e *SlotsError) Error() string {
	return fmt.Sprintf("crdt: counter of %d slots cannot take in %d more, at most %d", e.Held, e.Added, MaxSlots)
}
