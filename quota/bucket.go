package quota

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// microPerToken is the fixed point of buckets: slow limits mint far less than
// one token a step, and a floor to whole tokens would starve them.
const microPerToken = 1_000_000

// maxMicro bounds a meter: debt beyond it (about 4.6 x 10^12 tokens) is not
// remembered, so that hostile amounts cannot overflow.
const maxMicro = math.MaxInt64 / 2

// minStep is the shortest step of a bucket's grid in milliseconds.
const minStep = 50

// Step returns the step of a bucket's label grid in milliseconds: the time in
// which it mints a sixteenth of its burst, and at least 50.
func (f Fold) Step() int64 {
	if f.Requests == 0 {
		return f.Window()
	}
	fill := millis(sat.MulDivUp(uint64(f.Burst), uint64(f.Window()), 16*uint64(f.Requests)))
	return max(minStep, fill)
}

// micro turns hits into micro-tokens.
func micro(hits uint64) uint64 {
	if hits > maxMicro/microPerToken {
		return maxMicro
	}
	return hits * microPerToken
}

// tokensUp turns micro-tokens into hits, rounded up.
func tokensUp(m uint64) uint64 { return (m + microPerToken - 1) / microPerToken }

// minted is the micro-tokens a bucket mints from one instant to a later one at
// a rate of requests a window:
// floor(rate x to) - floor(rate x from) since the Unix epoch, so that folding
// in pieces mints what folding at once does, and a whole token is there at
// the very millisecond that it is due.
func (f Fold) minted(requests uint64, from, to int64) uint64 {
	return mintedAt(requests*microPerToken, f.Window(), from, to)
}

// mintedAt is minted for a rate in micro-tokens a window of a width.
func mintedAt(perWindow uint64, width, from, to int64) uint64 {
	if perWindow > 0 && uint64((to-from)/width) >= maxMicro/perWindow {
		return maxMicro
	}
	// The sums may wrap around; their difference does not.
	return mintedSinceEpoch(perWindow, to, width) - mintedSinceEpoch(perWindow, from, width)
}

func mintedSinceEpoch(perWindow uint64, t, width int64) uint64 {
	part := sat.MulDiv(perWindow, uint64(t%width), uint64(width))
	return uint64(t/width)*perWindow + part
}

// meter is the micro-tokens in use at now: a full bucket has none.
func (f Fold) meter(c *Cell, now int64) uint64 {
	return sat.Sub(min(sat.Add(c.Carry, micro(c.Count)), maxMicro), f.minted(c.Prev, c.Window, now))
}

// drainTime is the shortest time in milliseconds in which m micro-tokens are
// minted from an instant on; 0 for a limit that mints none, since it passes
// nothing either.
func (f Fold) drainTime(m uint64, from int64) int64 {
	if f.Requests == 0 || m == 0 {
		return 0
	}
	// Counted from the start of from's window, where the sum is whole.
	perWindow, width := uint64(f.Requests)*microPerToken, f.Window()
	into := from % width
	already := sat.MulDiv(perWindow, uint64(into), uint64(width))
	due := sat.MulDivUp(sat.Add(m, already), uint64(width), perWindow)
	return millis(due) - into
}

// chargeBucket moves the cell to the step of now, folding older steps into
// the opening level, and adds n under it. Where the bucket stood full in this
// step, what it could not mint is added to the opening level: refill is lost
// when it happens, to the millisecond, and not rounded to the step. A bucket
// so follows the ideal one to within a micro-token.
func (f Fold) chargeBucket(c *Cell, now int64, n uint64) {
	f.Adopt(c, now)
	f.stepBucket(c, now)
	if room := f.limitDebt(c, now); n > room {
		n = room
	}
	f.fillUp(c, now)
	c.Count = min(sat.Add(c.Count, n), maxMicro/microPerToken)
}

// stepBucket moves the cell to the step of now.
func (f Fold) stepBucket(c *Cell, now int64) {
	if step := f.Step(); now >= c.Window+step {
		window := now - now%step
		if window > c.Window { // a reload may have made the grid coarser
			*c = Cell{Window: window, Prev: uint64(f.Requests), Carry: f.meter(c, window)}
		}
	}
}

// fillUp loses what a bucket that stood full in this step could not mint.
func (f Fold) fillUp(c *Cell, now int64) {
	mint := f.minted(c.Prev, c.Window, now)
	if inUse := sat.Add(c.Carry, micro(c.Count)); inUse < mint {
		c.Carry += mint - inUse
	}
}

// limitDebt returns how many of the hits charged at now are remembered: all
// with carry_debt; without it a bucket cannot go below empty, and hits that
// were passed or charged beyond it are forgiven.
func (f Fold) limitDebt(c *Cell, now int64) uint64 {
	if f.CarryDebt {
		return math.MaxUint64
	}
	return sat.Sub(f.Capacity(), tokensUp(f.meter(c, now)))
}

// retryBucket is the time until n hits fit, for n up to the burst.
func (f Fold) retryBucket(c *Cell, now int64, n uint64) int64 {
	return f.drainTime(sat.Sub(f.meter(c, now), micro(f.Capacity()-n)), now)
}

// Adopt moves a bucket to the rate of the limit, which may differ from the rate
// that it was charged under, and reports whether it did: usage at now stays and
// drains at the new rate. Cells of windows and logs mean the same under every
// limit of their grid.
func (f Fold) Adopt(c *Cell, now int64) (changed bool) {
	rate := uint64(f.Requests)
	if !f.Drains() || c.Prev == rate {
		return false
	}
	if inUse := f.meter(c, now); inUse > 0 {
		c.Carry, c.Count = sat.Add(inUse, f.minted(rate, c.Window, now)), 0
	} else {
		*c = Cell{}
	}
	c.Prev = rate
	return true
}
