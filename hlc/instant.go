package hlc

import "time"

// Instant is one reading of a process's two clocks. The driver takes it once
// per input and hands it down; nothing below reads a clock. Two readings,
// because a simulator must be able to bend them apart.
type Instant struct {
	// Mono is the time since the process started. It never decreases and
	// is the one to use for intervals.
	Mono time.Duration
	// Wall is the wall clock in Unix nanoseconds. It may jump either way;
	// only Clock looks at it.
	Wall int64
}
