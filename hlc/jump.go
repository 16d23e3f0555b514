package hlc

import (
	"time"

	"github.com/georld/rld/internal/sat"
)

// HoldJumps sets whether a wall clock that leaps ahead of the monotonic one by
// more than MaxOffset is believed at once (false, the default, for a daemon
// alone), or held back until AdoptJump (true): one clock that runs away must
// not end a window for everybody, and labels that were left behind for it
// would come again when it is set back.
func (c *Clock) HoldJumps(hold bool) { c.hold = hold }

// Held returns by how much the wall clock is held back, 0 for not.
func (c *Clock) Held() time.Duration { return time.Duration(c.held) }

// AdoptJump believes what is held back. The next Instant moves the reading.
func (c *Clock) AdoptJump() { c.adopt = c.held > 0 }

// withhold returns the wall part of an Instant without what is held back.
func (c *Clock) withhold(mono, wall int64) int64 {
	if c.adopt {
		c.adopt, c.held = false, 0
		return wall
	}
	expected := sat.AddInt(c.wall, mono-c.mono)
	seen := wall - min(wall, c.held)
	limit := c.maxOffset * int64(time.Millisecond)
	switch {
	case seen > sat.AddInt(max(expected, sat.AddInt(c.reading, mono-c.mono)), limit) && (c.hold || c.held > 0):
		c.held += seen - expected
		return expected
	case c.held > 0 && sat.AddInt(seen, limit) < expected: // it was set back
		c.held = max(0, wall-expected)
		return wall - c.held
	}
	return seen
}
