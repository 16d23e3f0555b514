package hlc

import (
	"time"

	"github.com/georld/rld/internal/sat"
)

// HoldJumps sets whether a jump of the wall clock ahead of the monotonic one by
// more than MaxOffset is adopted at once (false, the default, for a daemon
// without peers), or held back until AdoptJump (true). One clock that runs away
// must not end the windows of all daemons, and windows skipped because of it
// would repeat when it is set back.
func (c *Clock) HoldJumps(hold bool) { c.hold = hold }

// Held returns the size of the jump that is held back, 0 for none.
func (c *Clock) Held() time.Duration { return time.Duration(c.held) }

// AdoptJump adopts the jump that is held back. The next Instant moves the
// reading.
func (c *Clock) AdoptJump() { c.adopt = c.held > 0 }

// withhold returns the wall part of an Instant without the jump that is held
// back.
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
		if c.held = max(0, wall-expected); c.held <= limit {
			c.held = 0 // the rest is below the limit of a jump
		}
		return wall - c.held
	}
	return seen
}
