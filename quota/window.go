package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// window is a cell read at an instant: its windows moved to that instant, and
// the debt that remains then.
type window struct {
	f           Fold
	start       int64 // of the window the instant is in
	count, prev uint64
	debt        uint64
}

// owes reports whether hits beyond the limit of a window are a debt. A limit of
// 0 pays nothing back and needs no debt: it denies every hit.
func (f Fold) owes() bool { return f.CarryDebt && f.Requests > 0 }

// roll reads c at now without changing it. Windows that were skipped hold
// nothing; each of them pays back a whole limit of the debt.
func (f Fold) roll(c *Cell, now int64) window {
	if now < c.Window+f.Window() {
		return window{f, c.Window, c.Count, c.Prev, c.Carry}
	}
	return f.rollOn(c, now)
}

// rollOn is roll for a cell whose window is over.
func (f Fold) rollOn(c *Cell, now int64) window {
	width := f.Window()
	start := now - now%width
	steps := uint64((start - c.Window) / width)
	w := window{f: f, start: start}
	if steps == 1 {
		w.prev = c.Count
	}
	if !f.owes() {
		return w
	}
	limit := uint64(f.Requests)
	w.debt = sat.Sub(sat.Add(c.Carry, c.Count), limit)
	if w.debt > 0 && steps > 1 {
		paid := sat.MulDiv(steps-1, limit, 1)
		w.debt = sat.Sub(w.debt, paid)
	}
	return w
}

// weighted returns the part of a sliding window's previous window that counts
// at now, rounded up.
func (w window) weighted(now int64) uint64 {
	width := w.f.Window()
	return sat.MulDivUp(w.prev, uint64(w.start+width-now), uint64(width))
}

func (w window) used(now int64) uint64 {
	used := sat.Add(w.count, w.debt)
	if w.f.Algorithm == rules.SlidingWindow && w.prev > 0 {
		used = sat.Add(used, w.weighted(now))
	}
	return used
}

func (f Fold) chargeWindow(c *Cell, now int64, n uint64) {
	if now < c.Window+f.Window() {
		c.Count = sat.Add(c.Count, n)
		return
	}
	w := f.roll(c, now)
	*c = Cell{Window: w.start, Count: sat.Add(w.count, n), Prev: w.prev, Carry: w.debt}
}

func (w window) reset(now int64) int64 {
	if w.f.Algorithm == rules.SlidingWindow && w.count == 0 && w.prev == 0 && w.debt == 0 {
		return 0
	}
	return sat.AddInt(w.start+w.f.Window()-now, w.f.after(w.count, sat.Add(w.debt, w.count)))
}

// after returns the time for which a window's hits matter beyond its end: while
// a sliding window weighs them, and until the debt is paid back.
func (f Fold) after(count, owed uint64) int64 {
	if f.Algorithm == rules.FixedWindow && !f.CarryDebt {
		return 0
	}
	return f.afterLong(count, owed)
}

// afterLong is after for hits that may matter beyond the end.
func (f Fold) afterLong(count, owed uint64) int64 {
	ms := int64(0)
	if f.Algorithm == rules.SlidingWindow && count > 0 {
		ms = f.Window()
	}
	if f.CarryDebt {
		ms = max(ms, f.debtTime(owed))
	}
	return ms
}

// debtTime returns the time beyond its own window in which a total of hits is
// paid back.
func (f Fold) debtTime(hits uint64) int64 {
	limit := uint64(f.Requests)
	if hits <= limit || limit == 0 {
		return 0
	}
	windows := (hits - 1) / limit
	ms := sat.MulDiv(windows, uint64(f.Window()), 1)
	return millis(ms)
}

// retryWindow returns the time until n hits fit, window by window. In this
// window the weight of the previous one may fall far enough. In the next one,
// the count of this window is the previous, less the paid part of the debt.
// After that only debt is left.
func (f Fold) retryWindow(c *Cell, now int64, n uint64) int64 {
	width, limit := f.Window(), uint64(f.Requests)
	w := f.roll(c, now)
	if at, ok := w.fitsAt(n); ok {
		return at - now
	}
	next := Cell{Window: w.start, Count: w.count, Prev: w.prev, Carry: w.debt}
	end := w.start + width
	w = f.roll(&next, end)
	if at, ok := w.fitsAt(n); ok {
		return at - now
	}
	// Only debt is left. It must fall to limit-n, and each window pays one
	// limit.
	excess := sat.Sub(w.debt, limit-n)
	ms := sat.MulDiv(sat.MulDivUp(excess, 1, limit), uint64(width), 1)
	return sat.AddInt(end-now, millis(ms))
}

// fitsAt returns the first instant of the window from which n more hits fit.
func (w window) fitsAt(n uint64) (int64, bool) {
	fixed := sat.Add(sat.Add(w.count, w.debt), n)
	limit := uint64(w.f.Requests)
	if fixed > limit {
		return 0, false
	}
	if w.f.Algorithm != rules.SlidingWindow || w.prev == 0 {
		return w.start, true
	}
	width := uint64(w.f.Window())
	// ceil(prev x left / width) <= room  <=>  left <= floor(room x width /
	// prev).
	left := sat.MulDiv(limit-fixed, width, w.prev)
	return w.start + int64(width-min(left, width)), true
}
