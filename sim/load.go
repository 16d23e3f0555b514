package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/node"
)

// load is the clients of a run.
type load struct {
	sources  []source
	pools    []keys // one a workload
	waiting  pool[attempt]
	stopped  bool
	trace    int    // the next entry
	domain   string // of entries that name none
	Answered uint64
	// Unanswered are requests for which no daemon was up, Dropped those that
	// would have tried again when too many did.
	Unanswered, Dropped uint64
	rng                 *rand.Rand
}

// source is the clients of one workload in one region. Its randomness is its
// own, so that what one region does changes nothing for the others.
type source struct {
	work   *Workload
	number int // of the workload
	region int
	rng    *rand.Rand
	on     bool            // of bursts
	turns  time.Duration   // when that changes
	pulse  time.Duration   // when the next pulse begins
	common *rand.Rand      // draws what a pulse has in common in all regions
	at     []time.Duration // requests of the last one to come, latest first
}

// attempt is a request that its client will make again.
type attempt struct {
	source int
	key    int
	left   int
}

// maxWaiting bounds the requests that wait to be made again.
const maxWaiting = 200_000

// traceSource is the source number of the trace.
const traceSource = -1

func (l *load) prepare(w *World) {
	l.rng = rand.New(rand.NewPCG(w.cfg.Seed, streamLoad))
	for i := range w.cfg.Workloads {
		work := &w.cfg.Workloads[i]
		l.pools = append(l.pools, newKeys(work))
		for r := range w.cfg.Regions {
			stream := streamSource + uint64(i)*MaxRegions + uint64(r)
			s := source{work: work, number: i, region: r, rng: rand.New(rand.NewPCG(w.cfg.Seed, stream))}
			if p := work.Pulse; p != nil && (p.Solo || p.Spread > 0) {
				// A stream of its own for each region, and all alike.
				s.common = rand.New(rand.NewPCG(w.cfg.Seed, streamPulse+uint64(i)))
			}
			if b := work.Bursts; b != nil {
				s.on = s.rng.Float64()*float64(b.On+b.Off) < float64(b.On)
			}
			s.turns, s.pulse = work.From, work.From
			l.sources = append(l.sources, s)
			l.schedule(w, len(l.sources)-1, max(work.From, 0))
		}
	}
	if domains := w.cfg.Rules.Domains(); len(domains) > 0 {
		l.domain = domains[0]
	}
	if w.cfg.Trace != nil && len(w.cfg.Trace.Entries) > 0 {
		w.events.push(w.cfg.Trace.Entries[0].At, evArrival, traceSource)
	}
}

// schedule draws when a source's next request after now is made.
func (l *load) schedule(w *World, i int, now time.Duration) {
	s := &l.sources[i]
	at, ok := s.next(now, len(w.regions))
	end := w.cfg.Duration
	if s.work.To > 0 {
		end = min(end, s.work.To)
	}
	if ok && at < end {
		w.events.push(at, evArrival, int32(i))
	}
}

// next draws the time of the next request; false when there is none any more.
func (s *source) next(now time.Duration, regions int) (time.Duration, bool) {
	if s.work.Pulse != nil {
		return s.nextOfPulse(now, regions)
	}
	for range 1_000 {
		if s.work.Bursts != nil {
			now = s.untilOn(now)
		}
		_, most := s.work.rateAt(now, s.region, regions)
		if most <= 0 {
			return 0, false
		}
		wait := s.rng.ExpFloat64() / most
		if wait > MaxDuration.Seconds() {
			return 0, false
		}
		at := now + time.Duration(wait*float64(time.Second))
		if s.work.Bursts != nil && at >= s.turns {
			now = s.turns // off by then: drawn again when it is on
			continue
		}
		now = at
		// Thinning: a rate that changes is the greatest one, some left out.
		if rate, _ := s.work.rateAt(at, s.region, regions); rate >= most || s.rng.Float64()*most < rate {
			return at, true
		}
	}
	return now, true
}

// untilOn brings the turns of bursts up to a time and returns the first one
// from there on at which the load is on.
func (s *source) untilOn(now time.Duration) time.Duration {
	for {
		if s.turns > now && s.on {
			return now
		}
		if s.turns > now {
			now = s.turns
		}
		s.on = !s.on
		mean := s.work.Bursts.Off
		if s.on {
			mean = s.work.Bursts.On
		}
		s.turns += max(1, time.Duration(s.rng.ExpFloat64()*float64(mean)))
	}
}

// nextOfPulse takes the next request of a pulse; the pulse after it is drawn
// when it is used up.
func (s *source) nextOfPulse(now time.Duration, regions int) (time.Duration, bool) {
	if len(s.at) == 0 && !s.nextPulse(regions) {
		return 0, false
	}
	at := s.at[len(s.at)-1]
	s.at = s.at[:len(s.at)-1]
	return max(at, now), true
}

// nextPulse draws the requests of the next pulse that comes in the region;
// false when none ever does.
func (s *source) nextPulse(regions int) bool {
	p := s.work.Pulse
	share := s.work.weight(s.region, regions) * float64(regions)
	n := min(int(math.Round(float64(p.Requests)*share)), maxPulse)
	if n <= 0 {
		return false
	}
	for range maxMissed {
		begin, mine := s.pulse, true
		if s.common != nil {
			region, late := s.common.IntN(regions), s.common.Float64()
			begin += time.Duration(late * float64(p.Spread))
			mine = !p.Solo || region == s.region
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

// arrive makes the request that is due at a source.
func (l *load) arrive(w *World, i int) {
	if i == traceSource {
		l.play(w)
		return
	}
	if l.stopped {
		return
	}
	s := &l.sources[i]
	attempts := 0
	if s.work.Retry != nil {
		attempts = s.work.Retry.Attempts
	}
	l.request(w, attempt{source: i, key: l.pools[s.number].draw(s.rng), left: attempts})
	l.schedule(w, i, w.now)
}

// retry makes a request again.
func (l *load) retry(w *World, i int32) {
	a := l.waiting.take(i)
	if !l.stopped {
		l.request(w, a)
	}
}

// request asks a daemon, and lets the client come again when it is refused.
func (l *load) request(w *World, a attempt) {
	s := &l.sources[a.source]
	d := w.pickFor(s.region, s.work, a.key)
	if d == nil {
		l.Unanswered++
		return
	}
	c := w.newCall()
	c.Domain = s.work.Domain
	key := l.pools[s.number].name(a.key)
	c.Descriptors = s.work.descriptors(c.Descriptors[:0], key, max(1, s.work.Hits))
	if err := w.ask(d, c, a); err != nil {
		w.failed = err
	}
}

// answered lets a client come again when it was refused.
func (l *load) answered(w *World, c *node.Call, a attempt) {
	l.Answered++
	if c.Decision.Allowed || a.left == 0 {
		return
	}
	s := &l.sources[a.source]
	a.left--
	wait, ok := s.wait(c.Statuses)
	switch {
	case !ok:
	case l.waiting.len() >= maxWaiting:
		l.Dropped++
	default:
		w.events.push(w.now+wait, evRetry, l.waiting.put(a))
	}
}

// wait is how long a client waits before it comes again; false when that would
// not help it.
func (s *source) wait(statuses []node.Status) (time.Duration, bool) {
	wait := s.work.Retry.Backoff
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
	wait = max(wait, time.Millisecond)
	return wait + time.Duration(s.rng.Float64()*s.work.Retry.Jitter*float64(wait)), true
}

// pickFor returns the daemon of a region that a call of a workload for a key
// comes to, nil when none answers.
func (w *World) pickFor(region int, l *Workload, key int) *Daemon {
	local := w.answering(region, l.Failover)
	if local == nil {
		return nil
	}
	if l.Pinned {
		return w.nth(local, key%answer(local))
	}
	return w.nth(local, w.load.rng.IntN(answer(local)))
}

// pick draws a daemon of a region that answers, nil when none does.
func (w *World) pick(region int, failover bool) *Daemon {
	return w.pickFor(region, &Workload{Failover: failover}, 0)
}

// answering returns the daemons of a region of whom some answer, or those of
// the next such region; nil for none.
func (w *World) answering(region int, failover bool) []*Daemon {
	for i := range w.local {
		local := w.local[(region+i)%len(w.local)]
		if answer(local) > 0 {
			return local
		}
		if !failover {
			break
		}
	}
	return nil
}

// answer counts the daemons that do.
func answer(local []*Daemon) int {
	n := 0
	for _, d := range local {
		if d.Up && !d.Paused {
			n++
		}
	}
	return n
}

// nth returns the n-th daemon that answers.
func (w *World) nth(local []*Daemon, n int) *Daemon {
	if w.cfg.mutation.mapOrder {
		set := make(map[*Daemon]bool)
		for _, d := range local {
			set[d] = d.Up && !d.Paused
		}
		for d, up := range set {
			if up {
				return d
			}
		}
	}
	for _, d := range local {
		if !d.Up || d.Paused {
			continue
		}
		if n == 0 {
			return d
		}
		n--
	}
	return nil
}
