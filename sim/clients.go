package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/sim/load"
)

// clients is the load of a run.
type clients struct {
	sources  []*load.Source
	waiting  pool[attempt]
	stopped  bool
	trace    int    // the next entry
	domain   string // of entries that name none
	Answered uint64
	// Unanswered are requests for which no daemon was up, Dropped those that
	// would have been retried when too many were.
	Unanswered, Dropped uint64
	rng                 *rand.Rand
	// pick returns the n-th daemon of a region that answers.
	pick func(local []*Daemon, n int) *Daemon
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

func (l *clients) prepare(w *World) {
	l.rng = rand.New(rand.NewPCG(w.cfg.Seed, streamLoad))
	for i := range w.cfg.Workloads {
		work := &w.cfg.Workloads[i]
		for _, s := range work.Sources(i, len(w.cfg.Regions), w.cfg.Seed) {
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
func (l *clients) schedule(w *World, i int, now time.Duration) {
	s := l.sources[i]
	at, ok := s.Next(now)
	end := w.cfg.Duration
	if s.Work.To > 0 {
		end = min(end, s.Work.To)
	}
	if ok && at < end {
		w.events.push(at, evArrival, int32(i))
	}
}

// arrive makes the request that is due at a source.
func (l *clients) arrive(w *World, i int) {
	if i == traceSource {
		l.play(w)
		return
	}
	if l.stopped {
		return
	}
	s := l.sources[i]
	attempts := 0
	if s.Work.Retry != nil {
		attempts = s.Work.Retry.Attempts
	}
	l.request(w, attempt{source: i, key: s.Draw(), left: attempts})
	l.schedule(w, i, w.now)
}

// retry makes a request again.
func (l *clients) retry(w *World, i int32) {
	a := l.waiting.take(i)
	if !l.stopped {
		l.request(w, a)
	}
}

// request asks a daemon, and lets the client try again when it is denied.
func (l *clients) request(w *World, a attempt) {
	s := l.sources[a.source]
	d := w.pickFor(s.Region, s.Work, a.key)
	if d == nil {
		l.Unanswered++
		return
	}
	c := w.newCall()
	c.Domain = s.Work.Domain
	c.Descriptors = s.Descriptors(c.Descriptors[:0], a.key)
	w.fail(w.ask(d, c, a))
}

// answered lets a client try again when it was denied.
func (l *clients) answered(w *World, c *node.Call, a attempt) {
	l.Answered++
	if c.Decision.Allowed || a.left == 0 {
		return
	}
	a.left--
	wait, ok := l.sources[a.source].Wait(c.Statuses)
	switch {
	case !ok:
	case l.waiting.len() >= maxWaiting:
		l.Dropped++
	default:
		w.events.push(w.now+wait, evRetry, l.waiting.put(a))
	}
}

// play makes the recorded calls that are due.
func (l *clients) play(w *World) {
	t := w.cfg.Trace
	for l.trace < len(t.Entries) && t.Entries[l.trace].At <= w.now && w.failed == nil {
		l.recorded(w, &t.Entries[l.trace])
		l.trace++
	}
	if l.trace < len(t.Entries) && !l.stopped {
		w.events.push(t.Entries[l.trace].At, evArrival, traceSource)
	}
}

func (l *clients) recorded(w *World, e *load.TraceEntry) {
	region := slices.Index(w.regions, w.cfg.Trace.Regions[e.Region])
	if region < 0 {
		region = int(e.Region) % len(w.regions)
	}
	d := w.pick(region, true)
	if d == nil {
		l.Unanswered++
		return
	}
	k := &w.cfg.Trace.Keys[e.Key]
	c := w.newCall()
	c.Domain = k.Domain
	if c.Domain == "" {
		c.Domain = l.domain
	}
	work := load.Workload{Descriptors: k.Descriptors}
	c.Descriptors = work.Call(c.Descriptors[:0], load.Drawn, e.Hits)
	if err := w.ask(d, c, attempt{source: traceSource}); err != nil {
		w.failed = fmt.Errorf("sim: trace entry %d: %w", l.trace, err)
	}
}

// pickFor returns the daemon of a region that a call of a workload for a key
// comes to, nil when none answers.
func (w *World) pickFor(region int, l *load.Workload, key int) *Daemon {
	local := w.answering(region, l.Failover)
	if local == nil {
		return nil
	}
	if l.Pinned {
		return w.load.pick(local, key%answer(local))
	}
	return w.load.pick(local, w.load.rng.IntN(answer(local)))
}

// pick draws a daemon of a region that answers, nil when none does.
func (w *World) pick(region int, failover bool) *Daemon {
	return w.pickFor(region, &load.Workload{Failover: failover}, 0)
}

// answering returns the daemons of a region if some of them answer, else those
// of the next such region; nil for none.
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

// nthAnswering returns the n-th daemon that answers.
func nthAnswering(local []*Daemon, n int) *Daemon {
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
