package quota

import (
	"math"

	"github.com/georld/rld/internal/sat"
)

// microPerToken is the fixed point of buckets. Slow limits refill far less than
// one token per step, and rounding down to whole tokens would starve them.
const microPerToken = 1_000_000

// maxMicro bounds a meter. Debt beyond it (about 4.6 x 10^12 tokens) is
// dropped, so that hostile amounts cannot overflow.
const maxMicro = math.MaxInt64 / 2

// minStep is the shortest step of a bucket's grid, in milliseconds.
const minStep = 50

// Step returns the step of a bucket's grid in milliseconds: the time in which
// it refills a sixteenth of its burst, and at least 50.
func (f Fold) Step() int64 {
	if f.Requests == 0 {
		return f.Window()
	}
	fill := millis(sat.MulDivUp(uint64(f.Burst), uint64(f.Window()), 16*uint64(f.Requests)))
	return max(minStep, fill)
}

// micro converts hits to micro-tokens.
func micro(hits uint64) uint64 {
	if hits > maxMicro/microPerToken {
		return maxMicro
	}
	return hits * microPerToken
}

// tokensUp converts micro-tokens to hits, rounded up.
func tokensUp(m uint64) uint64 { return (m + microPerToken - 1) / microPerToken }

// minted returns the micro-tokens that a bucket refills between two instants at
// a rate of requests per window: floor(rate x to) - floor(rate x from) since
// the Unix epoch. So folding in pieces refills as much as folding at once, and
// a whole token is there in the millisecond in which it is due.
func (f Fold) minted(requests uint64, from, to int64) uint64 {
	return mintedAt(requests*microPerToken, f.Window(), from, to)
}

// mintedAt is minted for a rate in micro-tokens per window of a length.
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

// meter returns the micro-tokens in use at now. A full bucket has none.
func (f Fold) meter(c *Cell, now int64) uint64 {
	return sat.Sub(min(sat.Add(c.Carry, micro(c.Count)), maxMicro), f.minted(c.Prev, c.Window, now))
}

// roomOf returns the hits that a bucket holds now.
func (f Fold) roomOf(c *Cell, now int64) uint64 {
	return sat.Sub(f.Capacity(), tokensUp(f.meter(c, now)))
}

// drainTime returns the shortest time in milliseconds in which m micro-tokens
// are refilled, from an instant on. It is 0 for a limit that refills none,
// since that admits nothing either.
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

// chargeBucket moves the cell to the step of now, folds older steps into the
// opening level, and adds n hits. Without carry_debt a bucket cannot go below
// empty, and hits beyond that are forgiven. If the bucket was full in this
// step, the refill that did not fit is added to the opening level: it is lost
// when it happens, to the millisecond, and not rounded to the step. So a bucket
// follows the ideal one to within a micro-token.
func (f Fold) chargeBucket(c *Cell, now int64, n uint64) {
	f.advanceBucket(c, now)
	if !f.CarryDebt {
		n = min(n, f.roomOf(c, now))
	}
	c.Count = min(sat.Add(c.Count, n), maxMicro/microPerToken)
}

// advanceBucket moves the cell to the rate of the limit and the step of now,
// and removes the refill of this step that did not fit a full bucket.
func (f Fold) advanceBucket(c *Cell, now int64) {
	f.Adopt(c, now)
	if step := f.Step(); now >= c.Window+step {
		window := now - now%step
		if window > c.Window { // a reload may have made the grid coarser
			*c = Cell{Window: window, Prev: uint64(f.Requests), Carry: f.meter(c, window)}
		}
	}
	mint := f.minted(c.Prev, c.Window, now)
	if inUse := sat.Add(c.Carry, micro(c.Count)); inUse < mint {
		c.Carry += mint - inUse
	}
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
