package hlc

import "time"

// Steps counts the steps of the wall clock: changes against the monotonic clock
// that are too large for jitter or drift. A driver compares it with its last
// value to log an event.
type Steps struct {
	Forward, Backward               uint64
	LargestForward, LargestBackward time.Duration
}

// A change of the wall clock against the monotonic one between two Instants
// counts as a step above stepFloor + elapsed/stepDrift.
//
// The floor is far above the time between the two readings of an Instant and
// far below an offset that matters to a window. The drift part is for systems
// whose monotonic clock is not steered along with the wall clock (on Linux it
// is): NTP steers by at most 500 parts per million, a quartz is off by less
// than 100, and 1/1000 leaves room for both.
const (
	stepFloor = int64(10 * time.Millisecond)
	stepDrift = 1_000
)

// note counts a step if wall is too far from the expected reading after elapsed
// ns. No argument is negative.
func (s *Steps) note(wall, expected, elapsed int64) {
	off := wall - expected
	if off <= stepFloor && off >= -stepFloor {
		return // nearly always, and no division
	}
	tolerance := stepFloor + elapsed/stepDrift
	switch {
	case off > tolerance:
		s.Forward++
		s.LargestForward = max(s.LargestForward, time.Duration(off))
	case off < -tolerance:
		s.Backward++
		s.LargestBackward = max(s.LargestBackward, time.Duration(-off))
	}
}
