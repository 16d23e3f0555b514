package quota

import "math"

// never is an instant after all others, and the longest time, in milliseconds.
const never = math.MaxInt64

// millis converts a time in milliseconds, with never as the maximum.
func millis(ms uint64) int64 { return int64(min(ms, never)) }
