package crdt

import "github.com/georld/rld/internal/sat"

// Max is the greatest count: additions stop there. It is far above any real
// count and far below the end of the numbers, so a greater value in a message
// is a protocol error.
const Max = 1 << 62

// AddSat returns a + b, or Max if the sum is greater.
func AddSat(a, b uint64) uint64 { return min(sat.Add(a, b), Max) }
