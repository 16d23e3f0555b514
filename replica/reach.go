package replica

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
)

const (
	// measureEvery is the time between two measurements of the round trips. It
	// grows to measureIdle while none changes and all breakers are closed, as a
	// part of the time since the latest change.
	measureEvery = 500 * time.Millisecond
	measureIdle  = 10 * time.Second
	measurePart  = 16
	// unknownTrip replaces a round trip to another region until it is measured.
	unknownTrip = 300 * time.Millisecond
	// maxWait bounds the wait for an owner in another region, unless the margin
	// is longer. An echo that waited in a queue, for example during a network
	// partition, looks like a long round trip.
	maxWait = time.Second
	// probeFor is how long the probe of a half-open breaker may take. Its call
	// may have ended without an outcome.
	probeFor = 5 * time.Second
	// goneKept is how long the path to a daemon that left is kept: after a
	// network partition the breaker must be as it was before.
	goneKept = 10 * time.Minute
	// intervalLength is the length of an interval.
	intervalLength = 20 * time.Millisecond
	// maxPaths bounds the paths.
	maxPaths = 4_096
)

// breakerStates is the number of states of a breaker.
const breakerStates = 3

// Reach is the table of the paths to the daemons that may own keys: how long to
// wait for each, and whether to ask it.
type Reach struct {
	cfg         Config
	paths       map[crdt.Incarnation]*path
	met         bool // the peers are known
	routes      *Routes
	changes     []PathChange
	transitions [breakerStates]uint64
	due         time.Duration // when tick measures the round trips
	moved       time.Duration // when they or a path changed
	ticked      time.Duration // when they were measured
}

// path leads to one incarnation of a daemon.
type path struct {
	name, region string
	wait         time.Duration
	gone         time.Duration // since when the daemon is not live, 0: it is
	breaker      *breaker.Breaker
	opens        time.Duration // of breaker, as Routes has it
	// seen is the number of the latest interval that had an outcome of a kind.
	// Numbers begin at 1.
	seen map[bool]time.Duration
}

// first reports whether an outcome is the first of its kind in its interval. A
// closed breaker counts at most one success and one failure of an interval: one
// stall that a thousand calls of a hot key wait for is one failure.
func (p *path) first(at time.Duration, ok bool) bool {
	number := 1 + at/intervalLength
	first := p.seen[ok] != number
	p.seen[ok] = number
	return first
}

// PathChange is a state transition of the breaker of an owner.
type PathChange struct {
	Region, Name string
	breaker.Transition
}

func newReach(c *Config) *Reach {
	r := &Reach{cfg: *c, paths: map[crdt.Incarnation]*path{}}
	r.cfg.Breaker.Probe = probeFor
	return r
}

// newPath returns the path to a daemon of a region that no call has asked.
func (r *Reach) newPath(region string) *path {
	p := &path{wait: r.cfg.ForwardTimeout, breaker: breaker.New(r.cfg.Breaker), seen: map[bool]time.Duration{}}
	if region != r.cfg.Region {
		p.wait = unknownTrip + r.margin()
	}
	return p
}

// Peers sets the daemons that are live, in all regions.
func (r *Reach) Peers(at time.Duration, live []gossip.Peer) {
	for _, p := range r.paths {
		if p.gone == 0 {
			p.gone = max(1, at)
		}
	}
	for _, l := range live {
		p := r.paths[l.ID]
		if p == nil {
			p = r.newPath(l.Region)
			r.paths[l.ID] = p
		}
		p.name, p.region, p.gone = l.Name, l.Region, 0
	}
	maps.DeleteFunc(r.paths, func(_ crdt.Incarnation, p *path) bool { return p.gone != 0 && at-p.gone > goneKept })
	if len(r.paths) > maxPaths {
		maps.DeleteFunc(r.paths, func(_ crdt.Incarnation, p *path) bool { return p.gone != 0 })
	}
	r.met, r.routes = true, nil
	r.measureSoon(at)
}

// measureSoon lets tick measure again within measureEvery.
func (r *Reach) measureSoon(at time.Duration) {
	r.moved, r.due = at, min(r.due, at+measureEvery)
}

// Measure sets how far the peers in other regions are away.
func (r *Reach) Measure(links []node.Link) {
	for i := range links {
		l := &links[i]
		p := r.paths[l.Peer.ID]
		wait := min(l.RTT+r.margin(), max(maxWait, r.margin()))
		if p == nil || l.Peer.Region == r.cfg.Region || l.RTT < 0 || p.wait == wait {
			continue
		}
		p.wait, r.routes, r.moved = wait, nil, r.ticked
	}
}

// margin is how much longer than the round trip a call waits: its time may be
// up by wakeGrain before, and with the least margin that is all of it.
func (r *Reach) margin() time.Duration { return r.cfg.ForwardMargin + wakeGrain }

// claim lets a call through to an owner, or not. The outcome of the call goes
// to done, unless it has none. An owner that left long ago is asked.
func (r *Reach) claim(at time.Duration, owner crdt.Incarnation) bool {
	p := r.paths[owner]
	if p == nil {
		return true
	}
	ok := p.breaker.Allow(at)
	r.follow(p)
	return ok
}

// done reports to an owner's breaker whether the owner answered.
func (r *Reach) done(at time.Duration, owner crdt.Incarnation, ok bool) {
	p := r.paths[owner]
	if p == nil || owner == r.cfg.Self {
		return
	}
	if p.opens != 0 || p.first(at, ok) {
		p.breaker.Done(at, ok)
		if r.follow(p); p.opens != 0 {
			r.measureSoon(at)
		}
	}
}

// tick changes the states of breakers that only time changes, when it is due.
// It reports whether the round trips are to be measured.
func (r *Reach) tick(at time.Duration) bool {
	if at < r.due {
		return false
	}
	before := len(r.changes)
	for _, p := range r.paths {
		if p.opens != 0 {
			p.breaker.State(at)
			r.follow(p)
			r.moved = at
		}
	}
	slices.SortStableFunc(r.changes[before:], func(a, b PathChange) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	r.ticked = at
	r.due = at + min(max(measureEvery, (at-r.moved)/measurePart), measureIdle)
	return true
}

// follow notes what changed about the breaker of a path.
func (r *Reach) follow(p *path) {
	for t, ok := p.breaker.Poll(); ok; t, ok = p.breaker.Poll() {
		r.transitions[t.To]++
		r.changes = append(r.changes, PathChange{p.region, p.name, t})
	}
	if opens := p.breaker.Opens(); opens != p.opens {
		p.opens, r.routes = opens, nil
	}
}

// Changes returns the transitions of breakers since the last call.
func (r *Reach) Changes() []PathChange {
	changes := r.changes
	r.changes = nil
	return changes
}

// Transitions returns how often breakers went to a state.
func (r *Reach) Transitions(to breaker.State) uint64 { return r.transitions[to] }

// Circuit describes the path to one owner.
type Circuit struct {
	Region, Name string
	Owner        crdt.Incarnation
	State        breaker.State
	// Changed reports that the state was another one before, and For how long
	// it is the present one.
	Changed bool
	For     time.Duration
	// Calls and Failed count the calls in the window of the breaker.
	Calls, Failed uint32
	Wait          time.Duration
}

// Circuits describes the paths to the daemons that are live, and to those that
// are gone and whose breaker is not closed, by region and name.
func (r *Reach) Circuits(at time.Duration) []Circuit {
	var out []Circuit
	for owner, p := range r.paths {
		state, since := p.breaker.State(at)
		r.follow(p)
		if p.gone != 0 && state == breaker.Closed {
			continue
		}
		c := Circuit{
			Region: p.region, Name: p.name, Owner: owner, State: state,
			Changed: since != 0, For: at - since, Wait: p.wait,
		}
		c.Calls, c.Failed = p.breaker.Counts(at)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Circuit) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner))
	})
	return out
}

// Routes is an immutable view of a Reach. It is safe for concurrent use.
type Routes struct {
	self crdt.Incarnation
	met  bool
	near time.Duration // to a daemon that is not known
	to   map[crdt.Incarnation]view
}

// view is a path as Routes has it.
type view struct{ wait, opens time.Duration }

// Routes returns the present view: the same pointer until something changes.
func (r *Reach) Routes() *Routes {
	if r.routes == nil {
		to := make(map[crdt.Incarnation]view, len(r.paths))
		for owner, p := range r.paths {
			to[owner] = view{p.wait, p.opens}
		}
		r.routes = &Routes{self: r.cfg.Self, met: r.met, near: r.cfg.ForwardTimeout, to: to}
	}
	return r.routes
}

// Reach returns how long to wait for an owner, and whether it may be asked. It
// reads the clock only where a breaker is not closed.
func (v *Routes) Reach(now func() time.Duration, owner crdt.Incarnation) (wait time.Duration, open bool) {
	r, known := v.to[owner]
	if !known {
		return v.near, true
	}
	return r.wait, r.opens == 0 || r.opens <= now()
}

// ErrOther rejects a message for another incarnation.
var ErrOther = errors.New("message for another incarnation")

// Admit reports whether a message about strict keys may be delivered. It
// returns an error for one that is for another process. Before the peers are
// known every message is dropped: its sender is unknown and sends again.
func (v *Routes) Admit(m *sticky.Message) (bool, error) {
	if m.To != v.self {
		return false, ErrOther
	}
	return v.met, nil
}
