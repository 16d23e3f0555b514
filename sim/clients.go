package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/georld/rld/replica"
	"github.com/georld/rld/sim/load"
)

// clients is the load of a run.
type clients struct {
	sources    []*load.Source
	waiting    pool[attempt]
	refunds    pool[refund]
	tokens     uint64 // issued so far
	refunded   uint64 // hits
	stopped    bool
	trace      int    // the next entry
	domain     string // of entries that name none
	Unanswered uint64 // requests for which no daemon was up
	rng        *rand.Rand
	answering  []*Daemon // where the latest request could go
}

// attempt is a request that its client will make again.
type attempt struct {
	source int
	key    int
	left   int
}

// refund is a refund token that its client will send.
type refund struct {
	source int
	daemon *Daemon
	token  string
	hits   uint64
	again  bool // it was sent before
}

// maxWaiting bounds the requests that wait to be made again; others are not.
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
	d := l.pick(w, s.Region, s.Work, a.key)
	if d == nil {
		l.Unanswered++
		if w.traced(nil) {
			w.lines.add(nil, "unanswered", "region=%s", w.regions[s.Region])
		}
		return
	}
	c := w.newCall()
	s.Ask(c, a.key)
	w.fail(w.ask(d, c, a))
}

// waits lets the client of a call that waits leave after its patience.
func (l *clients) waits(w *World, p *pendingCall) {
	if p.from.source < 0 {
		return
	}
	if patience := l.sources[p.from.source].Work.Patience; patience > 0 {
		w.events.push(w.now+patience, evGiveUp, w.woken.put(p))
	}
}

// answered lets a client try again when it was denied, and refund hits when it
// was not. Calls of a trace have neither attempts left nor tokens.
func (l *clients) answered(w *World, p *pendingCall) {
	c, a := p.call, p.from
	if a.source == probeSource {
		w.recovery.answered(a.key, c)
		return
	}
	if c.Decision.Allowed {
		l.keepTokens(w, p)
		return
	}
	if a.left == 0 {
		return
	}
	a.left--
	if wait, ok := l.sources[a.source].Wait(c.Statuses); ok && l.waiting.len() < maxWaiting {
		w.events.push(w.now+wait, evRetry, l.waiting.put(a))
	}
}

// keepTokens keeps the tokens of an answer that its client will send.
func (l *clients) keepTokens(w *World, p *pendingCall) {
	for i := range p.call.Receipts {
		r := &p.call.Receipts[i]
		if r.Hits == 0 {
			continue
		}
		hits, after, ok := l.sources[p.from.source].Refund(r.Hits)
		if !ok || l.refunds.len() >= maxWaiting {
			continue
		}
		token := replica.RefundToken{Incarnation: p.daemon.incarnations[0], Receipt: *r}
		token.Receipt.Number = p.token(i) // the auditors distinguish tokens of all daemons
		text := string(p.daemon.sealer.Append(nil, &token))
		w.events.push(w.now+after, evRefund, l.refunds.put(refund{p.from.source, p.daemon, text, hits, false}))
	}
}

// refund sends a token, as a caller of the native edge does.
func (l *clients) refund(w *World, i int32) {
	if l.stopped {
		return
	}
	r := l.refunds.take(i)
	s, d := l.sources[r.source], r.daemon
	if s.Elsewhere() {
		d = w.daemons[l.rng.IntN(len(w.daemons))]
	}
	if !d.Up || d.Paused { // the client gives up
		return
	}
	w.refund(d, r.token, r.hits)
	if after, ok := s.Again(); ok && !r.again {
		r.again = true
		w.events.push(w.now+after, evRefund, l.refunds.put(r))
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
	d := l.pick(w, region, &load.Workload{Failover: true}, 0)
	if d == nil {
		l.Unanswered++
		return
	}
	k := &w.cfg.Trace.Keys[e.Key]
	c := w.newCall()
	c.Domain, c.Peek, c.Refundable = k.Domain, false, false
	if c.Domain == "" {
		c.Domain = l.domain
	}
	work := load.Workload{Descriptors: k.Descriptors}
	c.Descriptors = work.Call(c.Descriptors[:0], load.Drawn, e.Hits)
	if err := w.ask(d, c, attempt{source: traceSource}); err != nil {
		w.failed = fmt.Errorf("sim: trace entry %d: %w", l.trace, err)
	}
}

// pick returns the daemon of a region that a call of a workload for a key comes
// to, nil when none answers.
func (l *clients) pick(w *World, region int, work *load.Workload, key int) *Daemon {
	for i := range w.local {
		l.answering = l.answering[:0]
		for _, d := range w.local[(region+i)%len(w.local)] {
			if d.Up && !d.Paused && d.leaving.accepts(w.now) {
				l.answering = append(l.answering, d)
			}
		}
		if len(l.answering) > 0 || !work.Failover {
			break
		}
	}
	switch n := len(l.answering); {
	case n == 0:
		return nil
	case work.Pinned:
		return l.answering[key%n]
	default:
		return l.answering[l.rng.IntN(n)]
	}
}
