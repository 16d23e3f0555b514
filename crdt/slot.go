package crdt

import "fmt"

// Incarnation names the one writer of a cell: an incarnation of a daemon, by a random
// 64-bit id drawn at its start.
type Incarnation uint64

// String returns the 16 hexadecimal digits that logs and tools show.
func (s Incarnation) String() string { return fmt.Sprintf("%016x", uint64(s)) }

// MaxIncarnations is the most slots a counter holds. Two valid counters could
// otherwise be joined into one too large for any frame, and a peer that makes
// up slots could fill the memory. It leaves room for thousands of incarnations
// within the life of one label.
const MaxIncarnations = 4096

// IncarnationsError is the refusal of an addition or a join that would have left a
// counter with more than MaxIncarnations slots. The counter is as it was. What was
// refused stays with its sender; who may not lose it denies instead.
type IncarnationsError struct {
	Held  int // slots of the counter
	Added int // slots that would have been new
}

// Error names both numbers and the bound.
func (e *IncarnationsError) Error() string {
	return fmt.Sprintf("crdt: counter of %d slots cannot take in %d more, at most %d", e.Held, e.Added, MaxIncarnations)
}
