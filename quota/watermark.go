package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// The owner of a strict key counts its consumption in an Account with the whole
// limit as its allotment. Others know an upper bound of it, as watermarks, so
// that a new owner starts from an account that holds all of it.

// Watermark is an upper bound of the consumption of one window: Amount. It is
// meaningless from End on, in Unix milliseconds.
//
// Windows have a watermark per window and logs one per step, both in hits. A
// bucket's Window is the rate that it drains at. Its Amount is the time, in
// nanoseconds since the Unix epoch, at which all its usage will have drained:
// that time only grows, which the usage does not.
type Watermark struct {
	Window int64
	Amount uint64
	End    int64
}

// WatermarkStep returns the step in milliseconds of a log's watermarks.
func (f Fold) WatermarkStep() int64 { return max(100, f.Window()/24) }

// Full returns the allotment of an owner: the whole limit.
func (f Fold) Full() Allotment {
	if f.Algorithm.Bucket() {
		return Allotment{Amount: micro(f.Capacity()), Rate: micro(uint64(f.Requests))}
	}
	return Allotment{Amount: uint64(f.Requests)}
}

// Watermark returns the watermark that is needed before n more hits are
// consumed at now. Hits of a log count as if they came at at, which is now or
// later.
func (r *Account) Watermark(l *rules.Limit, now, at int64, n uint64) Watermark {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		inUse := min(sat.Add(r.meter(l, Of(l).Full(), now), micro(n)), maxMicro)
		drained := sat.Add(uint64(now)*nanos, Of(l).drainNanos(inUse))
		return Watermark{Window: int64(l.Requests), Amount: drained, End: sat.AddInt(int64(drained/nanos), 1)}
	case rules.SlidingLog:
		step := Of(l).WatermarkStep()
		window := at - at%step
		return Watermark{window, sat.Add(r.log.between(window, window+step), n), sat.AddInt(window+step, l.Window())}
	}
	r.roll(l, now)
	end := sat.AddInt(r.Window, l.Window())
	if l.Algorithm == rules.SlidingWindow {
		end = sat.AddInt(end, l.Window())
	}
	return Watermark{r.Window, sat.Add(sat.Sub(r.Used, r.Back), n), end}
}

// Room returns the hits that may be consumed at now, as of at, while the
// watermark of the window that Watermark returns is amount.
func (r *Account) Room(l *rules.Limit, now, at int64, amount uint64) uint64 {
	if !l.Algorithm.Bucket() {
		return sat.Sub(amount, r.Watermark(l, now, at, 0).Amount)
	}
	if uint64(now) > amount/nanos {
		return 0
	}
	until := sat.MulDiv(amount-uint64(now)*nanos, uint64(l.Requests)*microPerToken, uint64(l.Window())*nanos)
	return sat.Sub(until, r.meter(l, Of(l).Full(), now)) / microPerToken
}

// nanos is the number of nanoseconds in a millisecond.
const nanos = 1_000_000

// drainNanos returns the time in which m micro-tokens are refilled, rounded up.
func (f Fold) drainNanos(m uint64) uint64 {
	if f.Requests == 0 {
		return 0
	}
	return sat.MulDivUp(m, uint64(f.Window())*nanos, uint64(f.Requests)*microPerToken)
}

// Adopt counts a watermark as consumed: hits of a log at the end of their step,
// those of windows that are over for as long as they are weighted.
func (r *Account) Adopt(l *rules.Limit, now int64, m Watermark) {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		if uint64(now)*nanos >= m.Amount || m.Window <= 0 {
			return
		}
		left := sat.MulDivUp(m.Amount-uint64(now)*nanos, uint64(m.Window)*microPerToken, uint64(l.Window())*nanos)
		r.Used = min(sat.Add(r.meter(l, Of(l).Full(), now), left), maxMicro)
	case rules.SlidingLog:
		r.SpendAt(l, now, m.Window+Of(l).WatermarkStep()-1, m.Amount)
	default:
		switch r.roll(l, now); m.Window {
		case r.Window:
			r.Used = sat.Add(r.Used, m.Amount)
		case r.Window - l.Window():
			r.PrevUsed = sat.Add(r.PrevUsed, m.Amount)
		}
	}
}

// SpendAt is Spend for an owner. Hits of a log count from at on, which is not
// before now, because they may be used until then.
func (r *Account) SpendAt(l *rules.Limit, now, at int64, n uint64) {
	if l.Algorithm == rules.SlidingLog {
		Of(l).mergeLog(&r.stamps, &r.log, now, at, n)
		return
	}
	r.Spend(l, Of(l).Full(), now, n)
}

// Held returns a copy of a bucket's account with at least the usage that it
// refills in a time, in milliseconds. So rights that are used that much later,
// beside the usage that drained meanwhile, still fit the bucket.
func (r Account) Held(l *rules.Limit, now, later int64) Account {
	if l.Algorithm.Bucket() && later > 0 {
		r.Used = max(r.meter(l, Of(l).Full(), now), sat.MulDivUp(uint64(l.Requests)*microPerToken, uint64(later), uint64(l.Window())))
	}
	return r
}

// Unspend returns hits that were spent at an owner and remain unused: of one
// window, or of the step of a log's watermark, newest first. The usage of a
// bucket stays, since the part of it that has drained is not known.
func (r *Account) Unspend(l *rules.Limit, window int64, n uint64) {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
	case rules.SlidingLog:
		r.log.remove(&r.stamps, window, window+Of(l).WatermarkStep(), n)
	default:
		r.Return(l, window, n)
	}
}

// Refund gives back hits that were used at an owner: of one window, or of a
// stamp of a log. Those that an earlier owner counted have the last stamp of
// their step. Where the hits of several stamps may be meant, the earliest are
// gone, so that none ends too early. The usage of a bucket stays.
func (r *Account) Refund(l *rules.Limit, window int64, n uint64) {
	if l.Algorithm != rules.SlidingLog {
		r.Unspend(l, window, n)
		return
	}
	step := Of(l).WatermarkStep()
	r.log.refund(&r.stamps, window, window-window%step+step, n)
}

// Report describes an owner's account to a caller that asked for n hits: as a
// cell with the same usage, but for returned hits, which add to the remaining.
func (r *Account) Report(l *rules.Limit, now int64, n uint64) Report {
	f, left := Of(l), r.Left(l, Of(l).Full(), now)
	c := r.stamps
	switch {
	case f.Drains():
		c = Cell{Window: now, Prev: uint64(l.Requests), Carry: r.Used}
	case f.Windowed():
		c = Cell{Window: r.Window, Count: sat.Sub(r.Used, r.Back), Prev: sat.Sub(r.PrevUsed, r.PrevBack)}
	}
	out := f.Describe(&c, &r.log, now, 0, n)
	if out.Remaining = left; n <= left {
		out.Retry = 0
	}
	return out
}

// between returns the hits of the stamps from a time until before another one.
func (g *Log) between(from, to int64) uint64 {
	sum := uint64(0)
	for i := g.size - 1; i >= 0; i-- {
		s := g.at(i)
		if s.at < from {
			break
		}
		if s.at < to {
			sum = sat.Add(sum, s.n)
		}
	}
	return sum
}

// remove subtracts up to n hits from the stamps of a span, newest first.
func (g *Log) remove(c *Cell, from, to int64, n uint64) {
	for i := g.size - 1; i >= 0 && n > 0 && g.at(i).at >= from; i-- {
		n -= g.take(c, i, from, to, n)
	}
}

// refund subtracts up to n hits from the stamps of a span, oldest first.
func (g *Log) refund(c *Cell, from, to int64, n uint64) {
	for i := 0; i < g.size && n > 0 && g.at(i).at < to; i++ {
		n -= g.take(c, i, from, to, n)
	}
}

// take subtracts up to n hits from a stamp if it is in a span, and returns how
// many.
func (g *Log) take(c *Cell, i int, from, to int64, n uint64) uint64 {
	s := g.at(i)
	if s.at < from || s.at >= to {
		return 0
	}
	took := min(n, s.n)
	s.n -= took
	c.Count = sat.Sub(c.Count, took)
	return took
}
