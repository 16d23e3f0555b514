package crdt

import "fmt"

// Incarnation identifies the single writer of a cell: one run of a daemon. It
// is a random 64-bit number that the daemon draws when it starts.
type Incarnation uint64

// String returns the 16 hexadecimal digits that logs and tools print.
func (i Incarnation) String() string { return fmt.Sprintf("%016x", uint64(i)) }
