package daemon

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/georld/rld/internal/breaker"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
)

// owners is the way to the daemons that may be homes: how long to wait for each,
// and whether to ask it. It is safe for concurrent use. Shards ask it while they
// are locked, so it never waits for one.
type owners struct {
	near, margin time.Duration
	breaker      breaker.Config
	log          *slog.Logger
	now          func() time.Duration // monotonic
	region       string
	self         crdt.Incarnation // it is not asked over the network, and has no circuit

	ways atomic.Pointer[map[crdt.Incarnation]*way]
	mu   sync.Mutex // one change of ways at a time

	// transitions counts those of all breakers, by the state that they went to.
	transitions [breakerStates]atomic.Uint64
}

// breakerStates is how many states a breaker has.
const breakerStates = 3

// way is that to one incarnation of a daemon.
type way struct {
	wait atomic.Int64 // nanoseconds
	// gone is since when it is not live any more, monotonic; 0: it is. homes.mu
	// guards it.
	gone time.Duration
	// shut says that the breaker is not closed: only then need it be asked.
	shut atomic.Bool

	mu           sync.Mutex
	name, region string
	breaker      *breaker.Breaker
	told         momentTold
}

// momentTold is what a breaker was told of one moment.
type momentTold struct {
	moment  time.Duration
	ok, bad bool
}

const (
	// unknownTrip stands in for a round trip to another region that was not
	// measured yet.
	unknownTrip = 300 * time.Millisecond
	// goneKept is for how long the way to a daemon that is gone is remembered: a
	// cut that heals must find the breaker as it was.
	goneKept = 10 * time.Minute
	// moment is the time of which a closed breaker is told at most one success and one
	// failure: one stall that a thousand calls of a hot key wait for is one.
	moment = 20 * time.Millisecond
	// maxWays bounds them.
	maxWays = 4_096
)

func newOwners(c strictConfig, region string, log *slog.Logger) *owners {
	h := &owners{near: c.forwardTimeout, margin: c.forwardMargin, breaker: c.breaker, log: log, region: region}
	h.ways.Store(&map[crdt.Incarnation]*way{})
	return h
}

// Reach is part of node.Homes.
func (h *owners) Reach(of crdt.Incarnation) (wait time.Duration, open bool) {
	w := (*h.ways.Load())[of]
	if w == nil {
		return h.near, true
	}
	wait = time.Duration(w.wait.Load())
	if !w.shut.Load() {
		return wait, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return wait, w.breaker.Passes(h.now())
}

// claim lets a call through to a home, or not. What becomes of it must be told to
// done, but for a call that did not find out.
func (h *owners) claim(of crdt.Incarnation, at time.Duration) bool {
	if of == h.self {
		return true
	}
	w := (*h.ways.Load())[of]
	if w == nil {
		w = h.meet(of)
	}
	w.mu.Lock()
	ok := w.breaker.Allow(at)
	h.unlock(w)
	return ok
}

// done tells a home's breaker whether it answered.
func (h *owners) done(of crdt.Incarnation, at time.Duration, ok bool) {
	w := (*h.ways.Load())[of]
	if w == nil || of == h.self {
		return
	}
	w.mu.Lock()
	if w.shut.Load() || w.news(at, ok) {
		w.breaker.Done(at, ok)
	}
	h.unlock(w)
}

// news reports whether an outcome is the first of its kind in its moment. w.mu is held.
func (w *way) news(at time.Duration, ok bool) bool {
	if m := at / moment; m != w.told.moment {
		w.told = momentTold{moment: m}
	}
	was := &w.told.bad
	if ok {
		was = &w.told.ok
	}
	first := !*was
	*was = true
	return first
}

// unlock unlocks a way whose breaker may have changed its state, and says so.
func (h *owners) unlock(w *way) {
	var changes []breaker.Transition
	for t, ok := w.breaker.Poll(); ok; t, ok = w.breaker.Poll() {
		w.shut.Store(t.To != breaker.Closed)
		h.transitions[t.To].Add(1)
		changes = append(changes, t)
	}
	owner := w.region + "/" + w.name
	w.mu.Unlock()
	for _, t := range changes {
		h.say(owner, t)
	}
}

// say logs that a breaker changed its state.
func (h *owners) say(owner string, t breaker.Transition) {
	switch t.To {
	case breaker.Open:
		h.log.Warn("the circuit to a home is open: it is not asked, and on_failure decides",
			"event", "circuit_breaker_open", "owner", owner, "failed", t.Failures, "calls", t.Calls, "was", t.From.String())
	case breaker.HalfOpen:
		h.log.Info("the circuit to a home is half open: one call is let through",
			"event", "circuit_breaker_half_open", "owner", owner)
	default:
		h.log.Info("the circuit to a home is closed: it is asked again", "event", "circuit_breaker_closed", "owner", owner)
	}
}

// look has breakers change their state by the time alone.
func (h *owners) look(at time.Duration) {
	for _, w := range *h.ways.Load() {
		if !w.shut.Load() {
			continue
		}
		w.mu.Lock()
		w.breaker.State(at)
		h.unlock(w)
	}
}

// meet makes the way to an incarnation that no one has told of.
func (h *owners) meet(of crdt.Incarnation) *way {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := *h.ways.Load()
	if w := was[of]; w != nil {
		return w
	}
	is := maps.Clone(was)
	w := h.newWay()
	w.name, w.gone = of.String(), h.now()
	is[of] = w
	h.ways.Store(&is)
	return w
}

func (h *owners) newWay() *way {
	w := &way{breaker: breaker.New(h.breaker)}
	w.wait.Store(int64(h.near))
	return w
}

// peers takes over who lives, this daemon included.
func (h *owners) peers(live []gossip.Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, is := h.now(), maps.Clone(*h.ways.Load())
	for _, w := range is {
		if w.gone == 0 {
			w.gone = max(1, at)
		}
	}
	for _, p := range live {
		w := is[p.ID]
		if w == nil {
			w = h.newWay()
			if p.Region != h.region {
				w.wait.Store(int64(unknownTrip + h.margin))
			}
			is[p.ID] = w
		}
		w.mu.Lock()
		w.name, w.region = p.Name, p.Region
		w.mu.Unlock()
		w.gone = 0
	}
	maps.DeleteFunc(is, func(_ crdt.Incarnation, w *way) bool { return w.gone != 0 && at-w.gone > goneKept })
	if len(is) > maxWays {
		maps.DeleteFunc(is, func(_ crdt.Incarnation, w *way) bool { return w.gone != 0 })
	}
	h.ways.Store(&is)
}

// measure takes over how far the peers are away.
func (h *owners) measure(links []node.Link) {
	ways := *h.ways.Load()
	for i := range links {
		l := &links[i]
		if w := ways[l.Peer.ID]; w != nil && l.Peer.Region != h.region && l.RTT >= 0 {
			w.wait.Store(int64(l.RTT + h.margin))
		}
	}
}

// circuit is what people are told of a breaker.
type circuit struct {
	region, name  string
	slot          crdt.Incarnation
	state         breaker.State
	since         time.Duration // for how long
	changed       bool          // it was in another one before
	failed, calls uint32
	wait          time.Duration
}

// circuits describes the breakers of the daemons that live, and of those that are
// gone and whose circuit is not closed, by region and name.
func (h *owners) circuits() []circuit {
	var out []circuit
	at := h.now()
	h.mu.Lock()
	for incarnation, w := range *h.ways.Load() {
		c := circuit{slot: incarnation, wait: time.Duration(w.wait.Load())}
		w.mu.Lock()
		c.region, c.name = w.region, w.name
		c.state, c.since = w.breaker.State(at)
		c.changed, c.since = c.since != 0, at-c.since
		c.calls, c.failed = w.breaker.Counts(at)
		h.unlock(w)
		if w.gone == 0 || c.state != breaker.Closed {
			out = append(out, c)
		}
	}
	h.mu.Unlock()
	slices.SortFunc(out, func(a, b circuit) int {
		return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.name, b.name), cmp.Compare(a.slot, b.slot))
	})
	return out
}
