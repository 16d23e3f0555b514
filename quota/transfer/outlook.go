package transfer

import (
	"math"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
)

// outlook is what an aggregator expects of the next window, where transfers do
// not arrive in time: see Policy.Open. There, a region announces the shortage
// that it forecasts for the next window, and the others transfer the rights as
// soon as that begins. Such a transfer is like any other one: a wrong forecast
// moves rights away from donors, for one window and down to their reserves.
type outlook struct {
	forecast
	offers   uint64 // hits offered to this daemon since it was rolled
	expected []expectedShortage
	waking   int64 // when Review will be called, monotonic milliseconds
}

// forecast predicts how many rights the own region will lack in the next
// window.
type forecast struct {
	window    int64  // the current one
	offered   uint64 // hits offered to this daemon in it
	peers     uint64 // hits offered to the other daemons of the region, about
	early     uint64 // those of the region before a transfer can arrive
	allotment uint64 // of the region

	need, next uint64 // the shortages of the current and the next window, 0 for none
	made       bool   // next was forecast

	// seen counts the forecasts of a shortage, and met those that came true, in
	// units of forecastUnit. Each one counts a sixteenth less with the next.
	seen, met uint32
}

const (
	forecastUnit = 1 << 12
	// forecastLeast is how many forecasts are compared with the load before one
	// is announced: three.
	forecastLeast = 2*forecastUnit + forecastUnit/2
)

// expectedShortage is a shortage that another region announced for a window
// before it began. Rights are what the region starts that window with.
type expectedShortage struct {
	from   Sender
	window int64
	Request
}

// roll moves the forecast to a window and compares those for windows that are
// over with the load.
func (f *forecast) roll(window, length int64) {
	if window <= f.window {
		return
	}
	f.compare(f.need, sat.Sub(sat.Add(f.offered, f.peers), max(f.allotment, f.early)))
	f.need = f.next
	if window-f.window != length { // nothing was offered in the next window
		f.compare(f.next, 0)
		f.need = 0
	}
	f.window, f.offered, f.peers, f.early, f.next, f.made = window, 0, 0, 0, 0, false
}

// compare counts a forecast. It came true if at least half of the rights that
// it is about were lacking after they could have arrived.
func (f *forecast) compare(need, lacked uint64) {
	if need == 0 {
		return
	}
	f.seen, f.met = f.seen-f.seen/16+forecastUnit, f.met-f.met/16
	if lacked >= need/2 {
		f.met += forecastUnit
	}
}

// reliable reports whether forecasts came true more often than not. Loads that
// nothing announces keep them unreliable.
func (f *forecast) reliable() bool { return f.seen >= forecastLeast && 2*f.met > f.seen }

// sinceStart returns the rate offered to this daemon since the start of a
// window, in hits per second, 0 for a few hits.
func (f *forecast) sinceStart(in *Input) uint64 {
	if f.window != in.Window || f.offered < burstHits {
		return 0
	}
	return sat.MulDiv(f.offered, 1000, span(max(in.ElapsedMS, burstMS)))
}

// outlooked returns the outlook in the window of in, with the hits offered
// since the last call; a new one if there is none.
func (k *Key) outlooked(in *Input) *outlook {
	if k.outlook == nil {
		k.outlook = &outlook{forecast: forecast{window: in.Window}}
	}
	o := k.outlook
	o.roll(in.Window, in.Policy.WindowMS)
	o.offered, o.offers = sat.Add(o.offered, o.offers), 0
	return o
}

// foresee forecasts the shortage of the aggregator's region in the next window,
// and announces it if such forecasts are reliable. It does so once in a window,
// as late as a notice arrives before the next one: later loads are the better
// predictions.
func (k *Key) foresee(in *Input, policy Policy, all Region, regions []gossip.RemoteRegion, out *Output) {
	length, delay := policy.WindowMS, policy.delay()
	if length <= 0 {
		return
	}
	f := &k.outlooked(in).forecast
	f.allotment = all.Allotment
	rate, peers := k.rates.Burst(in.Now), uint64(0)
	if rate == 0 {
		rate = f.sinceStart(in)
	}
	for _, p := range in.View.Peers() {
		reported := k.reportedSecond(in, p.ID)
		rate = sat.Add(rate, max(p.Rate, reported))
		peers = sat.Add(peers, max(p.Used, demand(reported, in.ElapsedMS)))
	}
	if f.peers = max(f.peers, peers); in.ElapsedMS < delay {
		f.early = sat.Add(f.offered, f.peers)
	}
	if policy.Open() || f.made || in.Now-k.since < 2*TickMS || // its first hits may have come at any rate
		in.ElapsedMS < max(2*TickMS, length-delay-2*TickMS) || in.ElapsedMS > length-delay {
		return
	}
	f.made, out.Keep = true, true
	load := demand(rate, length)
	f.next = sat.Sub(min(sat.Add(load, load/8), in.Limit), all.Allotment)
	if f.next == 0 || !f.reliable() {
		return
	}
	m := k.message(in, gossip.ShortageNotice)
	m.Window, m.Rights, m.Second, m.Need = in.Window+length, all.Allotment, rate, f.next
	for i := range regions {
		if r := &regions[i]; !r.Silent && r.Aggregator != 0 {
			out.send(r.Aggregator, m)
		}
	}
}

// reportedSecond returns the hits offered in a second to a daemon of the region
// that reported its need in the current window, 0 for another one. The cells of
// a daemon hold only the hits that it admitted.
func (k *Key) reportedSecond(in *Input, id crdt.Incarnation) uint64 {
	for _, n := range k.needs {
		if n.from == id && in.Now-n.at <= in.ElapsedMS {
			return n.second
		}
	}
	return 0
}

// expect remembers a shortage that another region announced for the next
// window.
func (k *Key) expect(in *Input, from Sender, m *gossip.RightsMessage, out *Output) {
	o := k.outlooked(in)
	o.expected = slices.DeleteFunc(o.expected, func(s expectedShortage) bool {
		return s.from.ID == from.ID || s.window < in.Window
	})
	if len(o.expected) < maxNeeds && m.Need > 0 {
		o.expected = append(o.expected, expectedShortage{from, m.Window, requestOf(m)})
		o.wake(in, in.leftMS(), out)
	}
}

// meet transfers rights to the regions whose shortage was expected in the
// current window.
func (k *Key) meet(in *Input, out *Output) {
	o := k.outlooked(in)
	var due []expectedShortage
	wait := int64(math.MaxInt64)
	o.expected = slices.DeleteFunc(o.expected, func(s expectedShortage) bool {
		switch {
		case s.window > in.Window:
			wait = min(wait, in.leftMS())
			return false
		case s.window == in.Window:
			if left := in.policy(s.from.RTT).meetAfter(s.Request) - in.ElapsedMS; left > 0 {
				wait = min(wait, left)
				return false
			}
			due = append(due, s)
		}
		return true
	})
	if wait < math.MaxInt64 {
		o.wake(in, wait, out)
	}
	if in.aggregates() {
		for _, s := range due {
			k.share(in, s.from, s.Request, in.policy(s.from.RTT).SpareToEnd, out)
		}
	}
}

// meetAfter returns how long after the start of a window, in milliseconds, an
// expected shortage is met: at most two ticks, and early enough that the
// transfer arrives before the region has used its own rights. By then a donor
// may notice that it needs its rights itself.
func (t Policy) meetAfter(q Request) int64 {
	lasts := sat.MulDiv(q.Rights, 1000, max(1, q.Second))
	return min(int64(min(lasts, math.MaxInt64))-t.delay()-t.delay()/8, 2*TickMS)
}

// wake asks for a call of Review after a time in milliseconds, unless there
// will be one before.
func (o *outlook) wake(in *Input, after int64, out *Output) {
	if at := sat.AddInt(in.Now, max(after, 1)); o.waking <= in.Now || at < o.waking {
		o.waking, out.Wake = at, at
	}
}
