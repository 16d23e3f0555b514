package gossip

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip/prior"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/internal/sat"
)

// Loads are what daemons were offered of a key in windows that are over: see
// package prior. Each daemon reports the load of a key that was exhausted to
// the key's aggregator, once a window. The aggregator sends the load of the
// region to the aggregators of other regions, and that of all others to each
// daemon that reported. Reports are sent once and may be lost: the next one
// replaces them.

// LoadReport is the load of a key in a window that is over.
type LoadReport struct {
	Key    crdt.Key
	Window int64 // start of the window, Unix milliseconds
	// Others is set if the load is that of all daemons but the receiver, from
	// the aggregator of the key. Otherwise it is the sender's own, or that of
	// its region in a message to another region.
	Others bool
	prior.Load
}

// MaxLoads bounds the loads of a message, maxQueuedLoads those that wait for a
// peer. More are dropped.
const (
	MaxLoads       = 256
	maxQueuedLoads = 4_096
)

// load is the load of one key.
type load struct {
	own     prior.Own
	others  prior.Report  // of the aggregator
	sources prior.Sources // at the aggregator, with the own report
	// reported is the window that was aggregated last, and queued is set until
	// that is sent.
	reported int64
	queued   bool
}

// loads are the loads of an engine: the keys to aggregate, the oldest first,
// and the lag of the views of peers.
type loads struct {
	queue   []queuedLoad
	lag     time.Duration
	meanLag time.Duration // over meanLagOver
	lagAt   time.Duration // when lag was measured, 0 for never
}

// queuedLoad is a key to aggregate at a time.
type queuedLoad struct {
	key crdt.Key
	at  time.Duration
}

// loadOf returns the load of a key, nil if it has none.
func (s *state) loadOf(key int32) *load {
	if n := s.keys.at(key).load; n > 0 {
		return s.loads.at(n - 1)
	}
	return nil
}

// addLoad returns the load of a key, a new one if it has none.
func (s *state) addLoad(key int32) *load {
	if k := s.keys.at(key); k.load == 0 {
		k.load = s.loads.add(load{}) + 1
	}
	return s.loadOf(key)
}

// dropLoad drops the load of a key.
func (s *state) dropLoad(k *keyEntry) {
	if k.load > 0 {
		s.loads.remove(k.load - 1)
	}
}

// Exhausted notes that the limit of a key is used up in a window of a length,
// and counts n denied hits. The load of the key is reported from then on:
// without that no prior is needed. A daemon that loses all peers counts on, as
// its own load is compared with theirs when they are back.
func Exhausted(e *Engine, now time.Duration, k crdt.Key, window, length int64, n uint64) {
	key := e.state.keyOf(k)
	if key == none {
		return
	}
	if e.state.loadOf(key) == nil {
		if len(e.links) == 0 {
			return
		}
		l := e.state.addLoad(key)
		l.own.Roll(now, window, length)
		l.own.Offered = e.Own(k, window).Net()
	}
	offered(e, now, key, window, length, n)
	if l := e.state.loadOf(key); window == l.own.Window {
		l.own.Exhausted = true
	}
}

// Offered counts hits of a key that has no room for a cell of theirs, or none
// for the key itself at the daemon.
func Offered(e *Engine, now time.Duration, k crdt.Key, window, length int64, n uint64) {
	if key := e.state.keyOf(k); key != none && e.state.loadOf(key) != nil {
		offered(e, now, key, window, length, n)
	}
}

// offered counts hits that the daemon was offered, and reports the load of the
// window before with the first ones of a window.
func offered(e *Engine, now time.Duration, key int32, window, length int64, n uint64) {
	l := e.state.loadOf(key)
	report, ok := l.own.Roll(now, window, length)
	if window == l.own.Window {
		l.own.Offered = sat.Add(l.own.Offered, n)
	}
	if !ok {
		return
	}
	k := e.state.keys.at(key)
	switch aggregator := e.roles.cached(k); aggregator {
	case e.self.ID:
		aggregate(e, now, key, e.self.ID, true, report)
	default:
		if to := linkOf(e, aggregator); to != nil {
			to.report(now, LoadReport{Key: k.key, Window: report.Window, Load: report.Load})
		}
	}
}

// report queues a report for the next message, at the next multiple of the
// interval.
func (l *link) report(now time.Duration, r LoadReport) {
	if len(l.loads) < maxQueuedLoads {
		l.loads = append(l.loads, r)
		l.owe(l.next(now))
	}
}

// takeLoads returns the reports for a message.
func (l *link) takeLoads() []LoadReport {
	n := min(len(l.loads), MaxLoads)
	out := l.loads[:n:n]
	if l.loads = l.loads[n:]; len(l.loads) == 0 {
		l.loads = nil
	}
	return out
}

// aggregate adds the report of a daemon of the region or of another region, at
// the aggregator of its key. The first one of a window in the region makes it
// report the sum, after the others had time to arrive.
func aggregate(e *Engine, now time.Duration, key int32, of crdt.Incarnation, local bool, r prior.Report) {
	l, length := e.state.addLoad(key), e.state.lengthOf(key)
	l.sources.Add(of, local, r, 2*prior.Oldest(length, loadLag(e, now)), MaxPeers)
	k := e.state.keys.at(key)
	if !local || r.Window <= l.reported || l.queued || e.roles.cached(k) != e.self.ID {
		return
	}
	l.reported = r.Window
	if len(e.roles.regions[0].ids) <= 1 {
		reportLoad(e, now, key)
		return
	}
	l.queued = true
	e.loads.queue = append(e.loads.queue, queuedLoad{k.key, now + 2*e.cfg.Interval})
}

// lengthOf returns the window length of the latest cell of a key.
func (s *state) lengthOf(key int32) int64 {
	return s.meta(s.cells.at(s.keys.at(key).chain.first)).WindowLength
}

// dueLoads reports the loads of the keys whose time has come.
func dueLoads(e *Engine, now time.Duration) {
	n := 0
	for ; n < len(e.loads.queue) && e.loads.queue[n].at <= now; n++ {
		if key := e.state.keyOf(e.loads.queue[n].key); key != none && e.state.loadOf(key) != nil {
			reportLoad(e, now, key)
		}
	}
	if e.loads.queue = e.loads.queue[n:]; len(e.loads.queue) == 0 {
		e.loads.queue = nil
	}
}

// reportLoad reports the load of a key, as its aggregator: of the region to the
// aggregators of other regions, and of all others to the daemons that reported.
func reportLoad(e *Engine, now time.Duration, key int32) {
	k, l := e.state.keys.at(key), e.state.loadOf(key)
	l.queued = false
	if e.roles.cached(k) != e.self.ID {
		return
	}
	length := e.state.lengthOf(key)
	if !e.state.meta(e.state.cells.at(k.chain.first)).Regional {
		sum := l.sources.Region(l.reported - length)
		for r := range e.roles.regions[1:] {
			if to := linkOf(e, e.roles.regions[1+r].aggregator(k.key)); to != nil {
				to.report(now, LoadReport{Key: k.key, Window: l.reported, Load: sum.Load})
			}
		}
	}
	l.sources.Daemons(func(of crdt.Incarnation) {
		if to := linkOf(e, of); to != nil {
			sum := l.sources.Others(l.reported-2*length, of)
			to.report(now, LoadReport{Key: k.key, Window: l.reported, Others: true, Load: sum.Load})
		}
	})
}

// receiveLoads takes the reports of a message. Those of keys without cells here
// are ignored, and those of windows that have not begun. newest is the latest
// time that a correct clock may have.
func receiveLoads(e *Engine, now time.Duration, newest int64, l *link, all []LoadReport) {
	for i := range all {
		r := &all[i]
		key := e.state.keyOf(r.Key)
		if key == none || r.Window > newest {
			continue
		}
		report := prior.Report{Window: r.Window, Load: r.Bounded()}
		switch {
		case !r.Others && l.local:
			aggregate(e, now, key, l.peer.ID, true, report)
		case !r.Others:
			aggregate(e, now, key, l.incarnation, false, report)
		case l.local && e.state.loadOf(key) != nil:
			if own := e.state.loadOf(key); report.Window >= own.others.Window {
				own.others = report
			}
		}
	}
}

// Expected returns how many hits others are expected to have counted for a key
// since their cells were received, as Extrapolated does, and how many more the
// loads of the windows before leave to them at the start of a window. length is
// that of the window in milliseconds, which starts at from; 0 stands for no
// prior. The hint is that of AddAt.
func Expected(
	e *Engine, hint int32, now, longest time.Duration, k crdt.Key, from, to int64, limit uint64, length int64,
) (n, left uint64) {
	key := none
	if at := hinted(&e.state, hint, k); at != none {
		key = e.state.cells.at(at).key
	} else if key = e.state.keyOf(k); key == none {
		return 0, 0
	}
	n = extrapolateKey(e, now, longest, key, from, to, limit)
	if length <= 0 {
		return n, 0
	}
	if e.state.keys.at(key).expectsFull(now, from) {
		return n, sat.Sub(limit, n)
	}
	if l := e.state.loadOf(key); l != nil {
		left = sat.Sub(leftToOthers(e, now, key, l, from, length, limit), n)
	}
	return n, left
}

// Observe calls a function that may call Expected, and leaves the measured lag
// as it was: an observer changes no later answer.
func Observe(e *Engine, f func()) {
	l := &e.loads
	lag, mean, at := l.lag, l.meanLag, l.lagAt
	f()
	l.lag, l.meanLag, l.lagAt = lag, mean, at
}

// leftToOthers returns how many hits of a window the prior of a key leaves to
// others, beyond those that they are known to have counted.
func leftToOthers(e *Engine, now time.Duration, key int32, l *load, window, length int64, limit uint64) uint64 {
	k := e.state.keys.at(key)
	q := prior.Question{
		Now: now, Window: window, Length: length, Limit: limit, Lag: loadLag(e, now),
		Draw: rendezvous.Mix(uint64(e.self.ID) ^ rendezvous.Mix(uint64(k.key)^uint64(window))),
	}
	q.MeanLag = e.loads.meanLag // with that lag
	if l.own.Settled(&q) {
		return 0
	}
	others := l.others
	if e.roles.cached(k) == e.self.ID {
		others = l.sources.Others(window-prior.Oldest(length, q.Lag), e.self.ID)
	}
	share, ok := l.own.Share(others, &q)
	if !ok {
		return 0
	}
	known := uint64(0)
	e.state.windows(key, e.self.ID, e.region, func(w *windowHits) {
		if w.window == window {
			known = w.known()
		}
	})
	return sat.Sub(limit-share, known)
}

// lagEvery is how often the lag of views is measured, lagEveryMany that of
// manyLinks peers or more, and mostLate bounds it in intervals: a peer that
// seldom sends does not prolong the use of priors.
const (
	lagEvery     = 10 * time.Millisecond
	lagEveryMany = 100 * time.Millisecond
	mostLate     = 4
)

// meanLagOver is the time over which the mean of the lag is taken. One late
// message of a peer prolongs the lag for about a second.
const meanLagOver = 10 * time.Second

// loadLag returns the greatest lag of the views of peers that are not silent,
// and updates its mean.
func loadLag(e *Engine, now time.Duration) time.Duration {
	every := lagEvery
	if len(e.links) >= manyLinks {
		every = lagEveryMany
	}
	if e.loads.lagAt != 0 && now-e.loads.lagAt < every {
		return e.loads.lag
	}
	since := meanLagOver // the first lag is the mean
	if e.loads.lagAt != 0 {
		since = min(since, now-e.loads.lagAt)
	}
	e.loads.lag, e.loads.lagAt = 0, max(now, 1)
	regional := time.Duration(0)
	for _, l := range e.links {
		if _, ok := l.recent(now); !ok || !l.ready {
			continue
		}
		most := mostLate * l.interval()
		lag := min(l.lag, most) + max(0, l.rtt)/2
		if l.local {
			regional = max(regional, lag)
		} else {
			lag += min(l.ownAge, most) // which the peer claims
		}
		e.loads.lag = max(e.loads.lag, lag)
	}
	if e.roles.two { // counts come through the aggregator
		e.loads.lag += regional
	}
	if e.loads.lag > 0 { // else all peers are silent
		e.loads.meanLag += (e.loads.lag - e.loads.meanLag) / (meanLagOver / since)
	}
	return e.loads.lag
}
