package quota

import (
	"cmp"
	"slices"

	"github.com/georld/rld/internal/sat"
)

// Known is a number of hits that were counted in one window. The window starts
// at Window and matters until End, both in Unix milliseconds.
type Known struct {
	Window, End int64
	Hits        uint64
}

// total returns the hits of one window.
func total(known []Known, window int64) uint64 {
	sum := uint64(0)
	for i := range known {
		if known[i].Window == window {
			sum = sat.Add(sum, known[i].Hits)
		}
	}
	return sum
}

// Learn adds all known hits to a cell that counted none of them: one without
// hits, or the copy of an overflow counter. log is the key's log if the fold
// is Stamped. Learn sorts known.
func (f Fold) Learn(c *Cell, log *Log, now int64, known []Known) {
	switch {
	case f.Stamped():
		for _, k := range known {
			f.Merge(c, log, now, k.Window, k.Hits)
		}
	case f.Drains():
		slices.SortFunc(known, func(a, b Known) int { return cmp.Compare(a.Window, b.Window) })
		_, width, carry := f.Shared(c, now)
		for _, k := range known {
			end := k.End - carry
			if end <= k.Window {
				end = k.Window + width
			}
			f.replay(c, now, k.Window, end, k.Hits)
		}
	default:
		f.Roll(c, now)
		c.Count = sat.Add(c.Count, total(known, c.Window))
		c.Prev = sat.Add(c.Prev, total(known, c.Window-f.Window()))
		if f.owes() {
			c.Carry = max(c.Carry, sat.Sub(c.Prev, uint64(f.Requests)))
		}
	}
}

// Relearn raises a cell that may lack known hits to all of them. A bucket
// stays as it is: the times of the hits are not known any more.
func (f Fold) Relearn(c *Cell, log *Log, now int64, known []Known) {
	switch {
	case f.Stamped():
		log.Release()
		*c = Cell{}
		f.Learn(c, log, now, known)
	case f.Windowed():
		c.Count = max(c.Count, total(known, c.Window))
		c.Prev = max(c.Prev, total(known, c.Window-f.Window()))
	}
}
