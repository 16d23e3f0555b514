package quota

import (
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/rules"
)

// The home of a key counts what it consumes in a Account with the whole limit as its
// base. What it may have consumed is also known to others, as marks: so that who
// takes over begins with a row that holds all of it.

// Watermark says that up to Amount may have been consumed of a label. It means nothing
// from End on, in Unix milliseconds.
//
// Windows are marked by their labels and logs by steps, both with hits. A bucket is
// marked by the rate it drains at, as its label, with the instant in nanoseconds since the Unix
// epoch at which all that is in use will have drained: that one only grows, which
// what is in use does not.
type Watermark struct {
	Window int64
	Amount uint64
	End    int64
}

// WatermarkStep is the step in milliseconds by which the hits of a log are marked.
func (f Fold) WatermarkStep() int64 { return max(100, f.Window()/24) }

// Full is the base of a home: all of a limit.
func (f Fold) Full() Allotment {
	if f.Algorithm.Bucket() {
		return Allotment{Amount: micro(f.Capacity()), Rate: micro(uint64(f.Requests))}
	}
	return Allotment{Amount: uint64(f.Requests)}
}

// Watermark returns what must be marked before n more hits are consumed at now. Those
// of a log count as if they came at at, which is now or later.
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

// Room returns how many hits may be consumed at now, as of at, while amount is
// marked of the label that Watermark names.
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

// nanos is the nanoseconds of a millisecond.
const nanos = 1_000_000

// drainNanos is the time in which m micro-tokens are minted, rounded up.
func (f Fold) drainNanos(m uint64) uint64 {
	if f.Requests == 0 {
		return 0
	}
	return sat.MulDivUp(m, uint64(f.Window())*nanos, uint64(f.Requests)*microPerToken)
}

// Adopt counts what is marked as consumed: hits of a log at the end of their step,
// those of windows that are over for as long as they are weighed.
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

// SpendAt is Spend for a home, where the hits of a log count from at on, which is
// not before now: they may be used until then.
func (r *Account) SpendAt(l *rules.Limit, now, at int64, n uint64) {
	if l.Algorithm == rules.SlidingLog {
		if n > 0 {
			Of(l).mergeLog(&r.stamps, &r.log, now, at, n)
		}
		return
	}
	r.Spend(l, Of(l).Full(), now, n)
}

// Held returns a bucket's row with at least as much in use as it mints in a time,
// in milliseconds: so that rights which are used that much later, beside what drained
// meanwhile, are still within the bucket.
func (r Account) Held(l *rules.Limit, now, later int64) Account {
	if l.Algorithm.Bucket() && later > 0 {
		r.Used = max(r.meter(l, Of(l).Full(), now), sat.MulDivUp(uint64(l.Requests)*microPerToken, uint64(later), uint64(l.Window())))
	}
	return r
}

// Unspend takes hits back that were spent at a home and are used by nobody: of a
// window those of a label, of a log those of its mark's step, the newest first. What a bucket
// spent it does not take back: nobody knows how much of it has drained.
func (r *Account) Unspend(l *rules.Limit, window int64, n uint64) {
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
	case rules.SlidingLog:
		r.log.remove(&r.stamps, window, window+Of(l).WatermarkStep(), n)
	default:
		r.Return(l, window, n)
	}
}

// Report describes a home's row to a caller that asked for n hits.
func (r *Account) Report(l *rules.Limit, now int64, n uint64) Report {
	b := Of(l).Full()
	out := Report{Remaining: r.Left(l, b, now)}
	var c Cell
	switch l.Algorithm {
	case rules.TokenBucket, rules.LeakyBucket:
		inUse := r.meter(l, b, now)
		out.Reset = Of(l).drainTime(inUse, now)
		if n > out.Remaining && n <= Of(l).Capacity() {
			out.Retry = max(1, Of(l).drainTime(sat.Sub(inUse, micro(Of(l).Capacity()-n)), now))
		}
	case rules.SlidingLog:
		out.Reset = Of(l).resetLog(&r.stamps, now)
		if n > out.Remaining && n <= Of(l).Capacity() {
			out.Retry = max(1, Of(l).retryLog(&r.stamps, &r.log, now, n))
		}
	default:
		r.roll(l, now)
		c = Cell{Window: r.Window, Count: sat.Sub(r.Used, r.Back), Prev: sat.Sub(r.PrevUsed, r.PrevBack)}
		out.Reset = Of(l).roll(&c, now).reset(now)
		if n > out.Remaining && n <= Of(l).Capacity() {
			out.Retry = max(1, Of(l).retryWindow(&c, now, n))
		}
	}
	out.Never = n > Of(l).Capacity()
	return out
}

// between sums up the stamps from an instant until before another.
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

// remove takes up to n hits off the stamps of a span, the newest first.
func (g *Log) remove(c *Cell, from, to int64, n uint64) {
	for i := g.size - 1; i >= 0 && n > 0; i-- {
		s := g.at(i)
		if s.at < from {
			break
		}
		if s.at < to {
			took := min(n, s.n)
			s.n -= took
			n -= took
			c.Count = sat.Sub(c.Count, took)
		}
	}
}
