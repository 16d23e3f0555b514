package node

import (
	"cmp"
	"errors"
	"iter"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
)

// replica is the state of a node that replicates its counts.
type replica struct {
	engine *gossip.Engine
	clocks gossip.Clocks
	alone  bool              // see SetAlone
	view   transferView      // scratch of transferCall
	counts []quota.Known     // scratch of known
	found  []*keytable.Entry // scratch of merge
}

func newReplica(cfg Config, incarnation crdt.Incarnation) *replica {
	self := gossip.Peer{ID: incarnation, Name: cfg.Name, Region: cfg.Region}
	return &replica{
		engine: gossip.New(cfg.Gossip, self, cfg.Shard, cfg.Shards),
		clocks: gossip.NewClocks(cmp.Or(cfg.Clock.MaxOffset, hlc.DefaultMaxOffset)),
	}
}

// Peers sets the live incarnations of all regions. They may contain the node
// itself. A node without a region ignores them.
func (n *Node) Peers(at Instant, peers []gossip.Peer) {
	if n.replica == nil {
		return
	}
	n.millis(at)
	n.replica.engine.Peers(at.Mono, peers)
	n.replica.clocks.Keep(peers)
}

// ErrAlone is returned by Step of a node that replicates nothing.
var ErrAlone = errors.New("node: message for a node without a region")

// Step merges a message of a peer. After an error nothing of it was merged: it
// came from no member, or was addressed to another daemon (see gossip.Receive).
// Otherwise the counts are merged even if the peer's clock is rejected.
func (n *Node) Step(at Instant, m *gossip.Message) error {
	if n.replica == nil {
		return ErrAlone
	}
	now, eng := n.millis(at), n.replica.engine
	changes, err := eng.Receive(at.Mono, now, n.replica.clocks.MaxOffset(), n.rules.set.Hash(), m)
	if err != nil {
		kind := gossip.MessageMisplaced
		if unknown := (*gossip.UnknownSenderError)(nil); errors.As(err, &unknown) {
			kind = gossip.SenderUnknown
		}
		eng.Report(gossip.Event{At: at.Mono, Kind: kind, Peer: m.From, Amount: 1})
		return err
	}
	n.replica.clocks.Observe(at, now, &n.clock, eng, m)
	n.at, n.now = Instant{}, 0 // the clock may have moved
	n.merge(at, changes)
	if n.cfg.Allotments != nil && len(m.RightsMessages) > 0 {
		n.stepRights(m.From, m.RightsMessages, n.millis(at))
	}
	return nil
}

// merge adds the counts of other daemons to the cells of decisions.
func (n *Node) merge(at Instant, changes []gossip.Change) {
	now, found, refunds := n.millis(at), n.replica.found[:0], false
	for i := range changes { // all at once: no search waits for the memory of another
		found = append(found, n.keys.live.Find(changes[i].Key))
	}
	n.replica.found = found
	for i := range changes {
		c := &changes[i]
		if c.Transfer > 0 && n.cfg.Allotments != nil {
			n.received(c, now)
		}
		if c.Transfer > 0 || c.Gain == 0 && c.Less == 0 && !c.Bounded {
			continue
		}
		l, inForce := n.rules.limitOf(c)
		if l == nil || !inForce {
			n.replica.engine.Report(gossip.Event{At: at.Mono, Kind: gossip.RuleUnknown, Amount: 1})
		}
		if l == nil {
			continue
		}
		e := found[i]
		if e == nil || e.Key != c.Key { // an earlier change may have moved it
			e = n.keys.live.Find(c.Key)
		}
		if e != nil && found[i] == nil && !c.Bounded {
			continue // an earlier change made learn count all of them
		}
		if e != nil {
			f := quota.Of(l)
			f.Merge(&e.Cell, n.keys.logOf(e, f), now, c.Window, c.Gain)
			switch {
			case c.Bounded && f.Drains():
				f.Bound(&e.Cell, now, c.Most)
			case c.Less == 0:
			case f.Windowed():
				refunds = true
			default:
				n.keys.withdraw(n.replica.engine, e, l, c.Window, c.Less, now)
			}
			e.KeepUntil(max(f.Expires(&e.Cell), c.Span.End(c.Window)))
			if !inForce {
				n.rules.former[c.Span.Rule].keepUntil(e.Expires())
				continue
			}
			used := uint64(0)
			if !f.Windowed() || !f.Rolled(&e.Cell, c.Window) {
				used = f.Used(&e.Cell, n.keys.logOf(e, f), now)
			}
			if used >= f.Capacity() && n.replica.engine.Own(c.Key, c.Window).P > 0 {
				exhausted(n, &Hit{Key: c.Key, Limit: l, Rule: n.rules.set.FindShared(c.Span.Rule)}, c.Window, 0)
			}
			n.replica.forward(c, l, used)
			n.busiest.charged(n.rules.set, e, l, c.Window, now)
			if n.cfg.Allotments != nil {
				review(n, e, n.rules.set.FindShared(c.Span.Rule), now)
			}
		} else if !inForce {
			continue // a new entry counts all of them when the rule is back
		} else if quota.Of(l).Drains() && n.keys.roomFor(n.rules.indexShared(c.Span.Rule), now) {
			n.keys.settle() // a message may have thousands of such keys
			// The times of the hits are known only now.
			r := n.learn(&Hit{Key: c.Key, Limit: l, Rule: n.rules.set.FindShared(c.Span.Rule)}, now)
			n.replica.forward(c, l, quota.Of(l).Used(&r.entry.Cell, nil, now))
		} else {
			total := n.replica.engine.TotalAfter(c)
			if n.replica.forwards(c) {
				n.replica.inform(c, l, total)
			}
			n.busiest.changed(&n.rules, c, total)
		}
	}
	if refunds {
		withdrawAll(n, changes, now)
	}
}

// addLevels adds what is in use of buckets to what other daemons are informed
// of them: these may have learned of the hits late.
func addLevels(n *Node, messages []gossip.Message) {
	for i := range messages {
		for j := range messages[i].Cells {
			c := &messages[i].Cells[j]
			if c.Kind != gossip.Others {
				continue
			}
			c.Level = 0
			if r := n.rules.shares(c.Rule); r != nil && replicated(r.Limit) && quota.Of(r.Limit).Drains() {
				if e := n.keys.live.Find(c.Key); e != nil {
					c.Level = quota.Of(r.Limit).Used(&e.Cell, nil, n.now) + 1
				}
			}
			if c.Level == 0 {
				c.Seen = 0
			}
		}
	}
}

// forward makes a received change of a key known to others at once if that
// matters. used is how much of the limit is known to be used; a key that is not
// decided on here, or was not in the change's window, has 0.
func (r *replica) forward(c *gossip.Change, l *rules.Limit, used uint64) {
	if r.forwards(c) {
		r.inform(c, l, max(used, r.engine.TotalAfter(c)))
	}
}

// forwards reports whether others may have to know a received change.
func (r *replica) forwards(c *gossip.Change) bool {
	return (c.Gain > 0 || c.Less > 0) && gossip.Forwards(r.engine, c)
}

// inform does the work of forward for a change that it may concern.
func (r *replica) inform(c *gossip.Change, l *rules.Limit, used uint64) {
	capacity := quota.Of(l).Capacity()
	r.engine.Forward(c, gossip.Room{Left: sat.Sub(capacity, used), Limit: capacity})
}

// withdrawAll subtracts the refunds of windows. A count of a window falls no
// lower than the total of the engine, which has all changes already: so the
// gains of all changes come first.
func withdrawAll(n *Node, changes []gossip.Change, now int64) {
	for i := range changes {
		c := &changes[i]
		l, _ := n.rules.limitOf(c)
		if e := n.keys.live.Find(c.Key); c.Less > 0 && e != nil && l != nil && quota.Of(l).Windowed() {
			n.keys.withdraw(n.replica.engine, e, l, c.Window, c.Less, now)
		}
	}
}

// elsewhere estimates the hits on a key that other daemons admitted since their
// latest messages, and how many more are left to them at the start of a window.
func (n *Node) elsewhere(h *Hit, c *quota.Cell, at ref) (hits, left uint64) {
	if n.cfg.Naive || at.where != inLive || !replicated(h.Limit) ||
		h.Limit.Consistency == rules.Partition && n.bounded(h) { // rights never exceed the limit
		return 0, 0
	}
	from, to, longest, ok := quota.Of(h.Limit).Estimable(c, n.now)
	if !ok {
		return 0, 0
	}
	length := int64(0)
	if predicted(n, h) {
		length = h.Limit.Window()
	}
	return gossip.Expected(n.replica.engine, at.entry.Hint, n.at.Mono, duration(longest), h.Key, from, to, uint64(h.Limit.Requests), length)
}

// predicted reports whether the load of a hit's key is predicted at the start
// of a window: where a window starts with the whole limit, and no rights bound
// what each daemon admits. Overrides may have other windows for the same key.
func predicted(n *Node, h *Hit) bool {
	return h.Rule != nil && h.Limit == h.Rule.Limit && quota.Of(h.Limit).Resets() && !n.bounded(h) && !n.homed(h) && replicated(h.Limit)
}

// exhausted counts n denied hits of a hit's key for its prior, which needs only
// keys whose limit is used up.
func exhausted(n *Node, h *Hit, window int64, hits uint64) {
	if predicted(n, h) {
		gossip.Exhausted(n.replica.engine, n.at.Mono, h.Key, window, h.Limit.Window(), hits)
	}
}

// offered counts a hit for the prior of its key, which has no room here: its
// load is needed when it has.
func offered(n *Node, h *Hit, now int64) {
	if length := h.Limit.Window(); predicted(n, h) {
		gossip.Offered(n.replica.engine, n.at.Mono, h.Key, now-now%length, length, h.N)
	}
}

// share replicates a charged hit.
func (n *Node) share(h *Hit, now int64, st *Status) {
	if !replicated(h.Limit) || st.probed.ref.where != inLive {
		return
	}
	e := st.probed.ref.entry
	window, length, carry := lasting(h).Shared(&e.Cell, now)
	span := gossip.CellMeta{WindowLength: length, Carry: carry, Regional: h.Limit.Scope == rules.Region}
	if h.Rule != nil && h.Limit == h.Rule.Limit {
		span.Rule = h.Rule.Shared()
	}
	// A replicated cell that was folded must not be folded into a new entry
	// again.
	e.KeepUntil(span.End(window))
	if !gossip.AddAt(n.replica.engine, &e.Hint, n.at.Mono, h.Key, window, span, h.N, gossip.Room{Left: st.probed.room, Limit: quota.Of(h.Limit).Capacity()}) {
		e.Inherit() // the replicated cells lack a part of the used rights
		if st.Degraded == NotDegraded {
			st.Degraded = CellsFull
		}
	}
}

// sweepEvery is the time between two sweeps. Each checks one entry in 64, and
// at least sweepAtLeast. So a node that is ticked visits all its keys in some
// seconds and drops at most 5,000 per second.
const (
	sweepEvery   = 100 * time.Millisecond
	sweepAtLeast = 64
)

// Tick runs the timers of replication and leases, and drops a bounded number of
// expired cells.
func (n *Node) Tick(at Instant) {
	now := n.millis(at)
	n.keys.settle()
	if r := n.replica; r != nil {
		r.engine.Tick(at.Mono, now)
		n.merge(at, r.engine.Restored())
		r.clocks.Tick(at.Mono, &n.clock, r.engine)
	}
	wakeKeys(n, now)
	if at.Mono-n.swept >= sweepEvery {
		n.swept = at.Mono
		n.keys.sweep(now, max(n.keys.live.Used()/64, sweepAtLeast))
	}
	if n.leases != nil {
		n.leases.Tick(n.leaseNow())
	}
	if n.keys.former != nil {
		n.keys.former.forget(now)
	}
	n.keys.sweepOverflow(now)
}

// Ready is the output of a replica.
type Ready struct {
	// Messages are to be sent, best effort and in any order. They are valid
	// until the next call.
	Messages []gossip.Message
	// Events happened since the last call. At most 1,024 are kept between two
	// calls.
	Events []gossip.Event
	// Wake is the monotonic time at which Tick has work. It is later than the
	// latest Instant seen.
	Wake time.Duration
}

// Ready returns the output since the last call, as of the latest Instant seen.
func (n *Node) Ready() Ready {
	if n.replica == nil {
		return Ready{Wake: n.at.Mono + sweepEvery}
	}
	eng, at := n.replica.engine, n.at
	var out Ready
	due := eng.Due()
	if due <= at.Mono {
		out.Messages = eng.Messages(at.Mono, n.clock.Now(at), n.rules.set.Hash())
		addLevels(n, out.Messages)
		due = eng.Due()
	}
	out.Events, out.Wake = eng.Events(), eng.Wake(at.Mono, due)
	if sweeps(n) {
		out.Wake = min(out.Wake, at.Mono+time.Second)
	}
	if at, ok := n.wakes.next(); ok {
		out.Wake = min(out.Wake, max(at, n.at.Mono+time.Millisecond))
	}
	if n.leases != nil && n.leases.Active() {
		out.Wake = min(out.Wake, at.Mono+lease.TickEvery)
	}
	return out
}

// sweeps reports whether Tick has work every second: more keys than a sweep
// checks at once, leases, or a jump of the clock to decide on.
func sweeps(n *Node) bool {
	return n.keys.live.Used() > sweepAtLeast || n.keys.overflow.Len() > 0 || n.clock.Held() > 0 ||
		n.leases != nil && n.leases.Len() > 0
}

// Synced reports whether the node takes its share of the region's work: it
// received all cells of each live peer of its region once, or waited long
// enough.
func (n *Node) Synced() bool { return n.replica == nil || n.replica.engine.Synced() }

// Expedited reports whether Ready has counts that should be sent at once.
func (n *Node) Expedited() bool { return n.replica != nil && n.replica.engine.Expedited() }

// Leave ends the node's share of the region's work, before it stops. Counts are
// still replicated, and leases are returned.
func (n *Node) Leave(at Instant) {
	n.millis(at) // the messages that follow are of this time
	if n.replica != nil {
		n.replica.engine.Leave(at.Mono)
	}
	if n.leases != nil {
		n.leases.Leave(n.leaseNow())
	}
}

// SetAlone sets whether all peers refuse this node, so that it decides without
// their counts.
func (n *Node) SetAlone(alone bool) {
	if n.replica != nil {
		n.replica.alone = alone
	}
}

// ClockContradicted reports whether more than half of the peers of a node have
// another time.
func ClockContradicted(n *Node) bool { return n.replica != nil && n.replica.clocks.Outlier() }

// degraded returns why the counts of other daemons may be missing here.
func (r *replica) degraded() Degraded {
	switch {
	case r.clocks.Outlier():
		return ClockOff
	case r.alone:
		return Alone
	}
	return NotDegraded
}

// Link is the state of the stream to a peer.
type Link = gossip.Link

// Offsets returns the known leads of the peers' clocks over this one, to within
// half a round trip.
func (n *Node) Offsets() map[crdt.Incarnation]time.Duration {
	if n.replica == nil {
		return nil
	}
	return n.replica.clocks.Offsets()
}

// Stamps returns the latest stamp received from each peer.
func (n *Node) Stamps() map[crdt.Incarnation]hlc.Timestamp {
	if n.replica == nil {
		return nil
	}
	return n.replica.clocks.Stamps()
}

// Links describes the peers, by their IDs. The node must not change while they
// are read.
func (n *Node) Links(at Instant) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		if n.replica != nil {
			n.replica.engine.Links(at.Mono)(yield)
		}
	}
}

// Cells returns the replicated cells of windows that are not over, in their
// order. It uses the memory of room, which may be nil. It does not move the
// clock, so whoever looks changes nothing.
func (n *Node) Cells(at Instant, room []gossip.Cell) []gossip.Cell {
	if n.replica == nil {
		return nil
	}
	clock := n.clock
	return n.replica.engine.Cells(clock.Millis(at), room)
}

// Keeps reports whether a node keeps a cell: see gossip.Keeps.
func Keeps(n *Node, c gossip.CellID) bool {
	return n.replica != nil && gossip.Keeps(n.replica.engine, c)
}

// Withholds reports whether a node does not send a sum to other regions yet:
// see gossip.Withholds.
func Withholds(n *Node, k crdt.Key, window int64) (sent uint64, ok bool) {
	if n.replica == nil {
		return 0, false
	}
	return gossip.Withholds(n.replica.engine, k, window)
}

// KeptBy reports whether a peer keeps a cell, in the view of a node: see
// gossip.KeptBy.
func KeptBy(n *Node, c gossip.CellID, peer crdt.Incarnation) bool {
	return n.replica != nil && gossip.KeptBy(n.replica.engine, c, peer)
}

// FullKeys returns the keys of which the node refuses more replicated cells, in
// no order. The node must not change while they are read.
func FullKeys(n *Node) iter.Seq[crdt.Key] {
	return func(yield func(crdt.Key) bool) {
		if n.replica != nil {
			gossip.FullKeys(n.replica.engine)(yield)
		}
	}
}
