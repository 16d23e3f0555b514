package load

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/node"
)

// The streams that sources draw from. Each has one of its own, so that a draw
// more in one region changes nothing in the others.
const (
	streamSource = uint64(1) << 20
	streamPulse  = uint64(1) << 40
	streamCalls  = uint64(1) << 41
)

// Source is the clients of one workload in one region.
type Source struct {
	Work   *Workload
	Region int // index in the regions of the run

	regions int
	share   float64 // of the rate that the region has on average
	keys    *keys   // shared by the sources of a workload
	rng     *rand.Rand
	calls   *rand.Rand      // draws what calls ask for, and refunds
	on      bool            // of bursts
	turns   time.Duration   // when that changes
	pulse   time.Duration   // when the next pulse begins
	common  *rand.Rand      // draws the properties that a pulse shares in all regions
	at      []time.Duration // requests of the pulse under way, latest first
}

// Sources returns the sources of a workload in each of some regions. number is
// the workload's in its run.
func (l *Workload) Sources(number, regions int, seed uint64) []*Source {
	shared := newKeys(l)
	var out []*Source
	for r := range regions {
		s := &Source{
			Work: l, Region: r, regions: regions, share: l.weight(r, regions), keys: &shared,
			rng:   rand.New(rand.NewPCG(seed, streamSource+uint64(number)*MaxRegions+uint64(r))),
			calls: rand.New(rand.NewPCG(seed, streamCalls+uint64(number)*MaxRegions+uint64(r))),
		}
		if p := l.Pulse; p != nil && (p.Solo || p.Spread > 0) {
			// A stream for each region, and all alike.
			s.common = rand.New(rand.NewPCG(seed, streamPulse+uint64(number)))
		}
		if b := l.Bursts; b != nil {
			s.on = s.rng.Float64()*float64(b.On+b.Off) < float64(b.On)
		}
		s.turns, s.pulse = l.From, l.From
		out = append(out, s)
	}
	return out
}

// Draw returns the number of the key that the next call is for.
func (s *Source) Draw() int { return s.keys.draw(s.rng) }

// Ask makes a call for a key. It draws what varies from call to call.
func (s *Source) Ask(c *node.Call, key int) {
	l := s.Work
	hits := l.Hits
	if s.chance(l.Heavy) {
		hits = l.HeavyHits
	}
	c.Domain, c.Peek, c.Refundable = l.Domain, s.chance(l.Peek), l.Refund.Share > 0
	c.Descriptors = l.Call(c.Descriptors[:0], s.keys.name(key), hits)
	if s.chance(l.Override.Share) {
		c.Descriptors[l.Override.Descriptor].Override = l.Override.Override
	}
}

// chance is true with a probability. It draws nothing for 0.
func (s *Source) chance(p float64) bool { return p > 0 && s.calls.Float64() < p }

// Refund draws whether some hits of a token are refunded, how many, and when.
func (s *Source) Refund(hits uint64) (some uint64, after time.Duration, ok bool) {
	r := &s.Work.Refund
	if !s.chance(r.Share) {
		return 0, 0, false
	}
	some = hits
	if s.chance(r.Part) {
		some = 1 + s.calls.Uint64N(hits)
	}
	return some, s.later(), true
}

// Again draws whether a token that was sent is sent again, and when.
func (s *Source) Again() (after time.Duration, ok bool) {
	if !s.chance(s.Work.Refund.Twice) {
		return 0, false
	}
	return s.later(), true
}

// Elsewhere draws whether a token goes to any daemon.
func (s *Source) Elsewhere() bool { return s.chance(s.Work.Refund.Elsewhere) }

func (s *Source) later() time.Duration {
	return time.Duration(min(s.calls.ExpFloat64()*float64(s.Work.Refund.After), float64(MaxDuration)))
}

// Next draws the time of the next request; false when there is none any more.
func (s *Source) Next(now time.Duration) (time.Duration, bool) {
	if s.Work.Pulse != nil {
		return s.nextOfPulse(now)
	}
	for range 1_000 {
		if s.Work.Bursts != nil {
			now = s.untilOn(now)
		}
		_, most := s.rateAt(now)
		if most <= 0 {
			return 0, false
		}
		wait := s.rng.ExpFloat64() / most
		if wait > MaxDuration.Seconds() {
			return 0, false
		}
		at := now + time.Duration(wait*float64(time.Second))
		if s.Work.Bursts != nil && at >= s.turns {
			now = s.turns // off by then: drawn again when it is on
			continue
		}
		now = at
		// Thinning: a rate that changes is the greatest one, some left out.
		if rate, _ := s.rateAt(at); rate >= most || s.rng.Float64()*most < rate {
			return at, true
		}
	}
	return now, true
}

// rateAt is the rate of the region at a time and the most it ever has.
func (s *Source) rateAt(now time.Duration) (rate, most float64) {
	l := s.Work
	if l.Moving == nil || s.regions < 2 {
		return l.Rate * s.share, l.Rate * s.share
	}
	cold := (1 - l.Moving.Share) / float64(s.regions-1)
	most = l.Rate * max(l.Moving.Share, cold)
	if int((now-l.From)/l.Moving.Every)%s.regions == s.Region {
		return l.Rate * l.Moving.Share, most
	}
	return l.Rate * cold, most
}

// untilOn brings the turns of bursts up to a time and returns the first one
// from there on at which the load is on.
func (s *Source) untilOn(now time.Duration) time.Duration {
	for {
		if s.turns > now && s.on {
			return now
		}
		if s.turns > now {
			now = s.turns
		}
		s.on = !s.on
		mean := s.Work.Bursts.Off
		if s.on {
			mean = s.Work.Bursts.On
		}
		s.turns += max(1, time.Duration(s.rng.ExpFloat64()*float64(mean)))
	}
}

// nextOfPulse takes the next request of a pulse; the pulse after it is drawn
// when it is used up.
func (s *Source) nextOfPulse(now time.Duration) (time.Duration, bool) {
	if len(s.at) == 0 && !s.nextPulse() {
		return 0, false
	}
	at := s.at[len(s.at)-1]
	s.at = s.at[:len(s.at)-1]
	return max(at, now), true
}

// nextPulse draws the requests of the next pulse that comes in the region;
// false when none ever does.
func (s *Source) nextPulse() bool {
	p := s.Work.Pulse
	n := min(int(math.Round(float64(p.Requests)*(s.share*float64(s.regions)))), MaxPulse)
	if n <= 0 {
		return false
	}
	for range maxMissed {
		begin, mine := s.pulse, true
		if s.common != nil {
			region, late := s.common.IntN(s.regions), s.common.Float64()
			begin += time.Duration(late * float64(p.Spread))
			mine = !p.Solo || region == s.Region
		}
		s.pulse += p.Every
		if !mine {
			continue
		}
		for range n {
			s.at = append(s.at, begin+time.Duration(s.rng.Float64()*float64(p.Within)))
		}
		slices.SortFunc(s.at, func(a, b time.Duration) int { return cmp.Compare(b, a) })
		return true
	}
	return false
}

// maxMissed bounds the pulses in a row that come in other regions.
const maxMissed = 10_000

// Wait returns how long a client waits before it comes again; false when that
// would not help it, or not in the longest run.
func (s *Source) Wait(statuses []node.Status) (time.Duration, bool) {
	wait := s.Work.Retry.Backoff
	if wait == 0 {
		for i := range statuses {
			st := &statuses[i]
			if st.Limit == nil || !st.Refuses() {
				continue
			}
			if st.Never {
				return 0, false
			}
			wait = max(wait, st.Retry)
		}
	}
	if wait = max(wait, time.Millisecond); wait > MaxDuration {
		return 0, false
	}
	return wait + time.Duration(s.rng.Float64()*s.Work.Retry.Jitter*float64(wait)), true
}
