package quota

import "github.com/georld/rld/rules"

// window is a cell read at an instant: what its labels hold after the roll
// that the instant calls for, and what of the debt is still to be paid.
type window struct {
	start       int64 // of the window the instant is in
	count, prev uint64
	debt        uint64
}

// roll reads c at now without changing it. The labels of skipped windows
// hold nothing; each of them pays back a whole limit of the debt.
func roll(l *rules.Limit, c *Cell, now int64) window {
	width := l.Window()
	if now < c.Window+width {
		return window{c.Window, c.Count, c.Prev, c.Carry}
	}
	start := now - now%width
	steps := uint64((start - c.Window) / width)
	w := window{start: start}
	if steps == 1 {
		w.prev = c.Count
	}
	if !l.CarryDebt {
		return w
	}
	limit := uint64(l.Requests)
	w.debt = subFloor(addSat(c.Carry, c.Count), limit)
	if w.debt > 0 && steps > 1 {
		paid, _ := mulDiv(steps-1, limit, 1)
		w.debt = subFloor(w.debt, paid)
	}
	return w
}

// weighted is how much of the previous window still counts at now, rounded up.
func (w window) weighted(l *rules.Limit, now int64) uint64 {
	if l.Algorithm != rules.SlidingWindow || w.prev == 0 {
		return 0
	}
	width := l.Window()
	return mulDivUp(w.prev, uint64(w.start+width-now), uint64(width))
}

func (w window) used(l *rules.Limit, now int64) uint64 {
	return addSat(addSat(w.count, w.debt), w.weighted(l, now))
}

func chargeWindow(l *rules.Limit, c *Cell, now int64, n uint64) {
	if now < c.Window+l.Window() {
		c.Count = addSat(c.Count, n)
		return
	}
	w := roll(l, c, now)
	*c = Cell{Window: w.start, Count: addSat(w.count, n), Prev: w.prev, Carry: w.debt}
}

func (w window) reset(l *rules.Limit, now int64) int64 {
	if l.Algorithm == rules.SlidingWindow && w.count == 0 && w.prev == 0 && w.debt == 0 {
		return 0
	}
	return later(w.start+l.Window()-now, after(l, w.count, addSat(w.debt, w.count)))
}

// after is how long a window's hits matter beyond its end: for as long as a
// sliding window weighs them, and until what went over is paid back.
func after(l *rules.Limit, count, owed uint64) int64 {
	ms := int64(0)
	if l.Algorithm == rules.SlidingWindow && count > 0 {
		ms = l.Window()
	}
	if l.CarryDebt {
		ms = max(ms, debtTime(l, owed))
	}
	return ms
}

// debtTime is how much longer than its own window a total of hits takes to be
// paid back.
func debtTime(l *rules.Limit, hits uint64) int64 {
	limit := uint64(l.Requests)
	if hits <= limit || limit == 0 {
		return 0
	}
	windows := (hits - 1) / limit
	ms, _ := mulDiv(windows, uint64(l.Window()), 1)
	return millis(ms)
}

// retryWindow looks for the first instant at which n fit, window by window:
// in this one the weight of the previous may fall far enough; in the next
// this one's count is the previous, less what is paid of the debt; after that
// only debt is left.
func retryWindow(l *rules.Limit, c *Cell, now int64, n uint64) int64 {
	width, limit := l.Window(), uint64(l.Requests)
	w := roll(l, c, now)
	if at, ok := w.fitsAt(l, n); ok {
		return at - now
	}
	next := Cell{Window: w.start, Count: w.count, Prev: w.prev, Carry: w.debt}
	end := w.start + width
	w = roll(l, &next, end)
	if at, ok := w.fitsAt(l, n); ok {
		return at - now
	}
	// Only a debt is left that must fall to limit-n: each window pays a limit.
	excess := subFloor(w.debt, limit-n)
	ms, _ := mulDiv(mulDivUp(excess, 1, limit), uint64(width), 1)
	return later(end-now, millis(ms))
}

// fitsAt returns the first instant of the window from which n more hits fit.
func (w window) fitsAt(l *rules.Limit, n uint64) (int64, bool) {
	fixed := addSat(addSat(w.count, w.debt), n)
	limit := uint64(l.Requests)
	if fixed > limit {
		return 0, false
	}
	if l.Algorithm != rules.SlidingWindow || w.prev == 0 {
		return w.start, true
	}
	width := uint64(l.Window())
	// ceil(prev x left / width) <= room  <=>  left <= floor(room x width / prev).
	left, _ := mulDiv(limit-fixed, width, w.prev)
	return w.start + int64(width-min(left, width)), true
}

func expiresWindow(l *rules.Limit, c *Cell) int64 {
	return later(later(c.Window, l.Window()), after(l, c.Count, addSat(c.Carry, c.Count)))
}
