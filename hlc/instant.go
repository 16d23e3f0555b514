package hlc

import "time"

// Instant is one reading of a process's two clocks. The driver takes it once
// per input and passes it down; no code below reads a clock. The two readings
// are separate so that a simulator can shift them against each other.
type Instant struct {
	// Mono is the time since the process started. It never decreases. Use it
	// for intervals.
	Mono time.Duration
	// Wall is the wall clock in Unix nanoseconds. It may jump in either
	// direction. Only Clock reads it.
	Wall int64
}
