package node

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// replica is what makes a node one of many.
type replica struct {
	engine  *gossip.Engine
	rules   uint64 // hash of the rules in force
	shared  map[uint64]*rules.Rule
	clocks  map[crdt.Incarnation]peerClock
	outlier bool
	held    bool

	view transferView // scratch of transferCall
}

func newReplica(cfg Config, incarnation crdt.Incarnation) *replica {
	self := gossip.Peer{ID: incarnation, Name: cfg.Name, Region: cfg.Region}
	return &replica{
		engine: gossip.New(cfg.Gossip, self, cfg.Shard, cfg.Shards),
		clocks: map[crdt.Incarnation]peerClock{},
	}
}

// setRules puts other rules in force.
func (r *replica) setRules(set *rules.Set) {
	r.rules, r.shared = set.Hash(), map[uint64]*rules.Rule{}
	for _, rule := range set.Rules() {
		if rule.Limit != nil && !rule.Limit.Unlimited {
			r.shared[SharedRule(rule)] = rule
		}
	}
}

// SharedRule is how a rule is named to others: with the grid it counts on, so
// that nobody folds what was counted on another.
func SharedRule(r *rules.Rule) uint64 { return uint64(r.ID) ^ r.Limit.Grid()*0x9e3779b97f4a7c15 }

// Peers tells the node which incarnations are live, of all regions. It may
// contain the node itself. A node alone does not care.
func (n *Node) Peers(at Instant, peers []gossip.Peer) {
	if n.replica == nil {
		return
	}
	n.millis(at)
	n.replica.engine.Peers(at.Mono, peers)
	maps.DeleteFunc(n.replica.clocks, func(id crdt.Incarnation, _ peerClock) bool {
		return !slices.ContainsFunc(peers, func(p gossip.Peer) bool { return p.ID == id })
	})
}

// ErrAlone is returned by Step of a node that replicates nothing.
var ErrAlone = errors.New("node: message for a node alone")

// Step takes in a message of a peer. After an error nothing of it was taken:
// it came from no member, or was for somebody else (see gossip.Receive).
// Otherwise the counts are merged even where the peer's clock is refused.
func (n *Node) Step(at Instant, m *gossip.Message) error {
	if n.replica == nil {
		return ErrAlone
	}
	now := n.millis(at)
	changes, err := n.replica.engine.Receive(at.Mono, now, n.cfg.maxOffset(), n.replica.rules, m)
	if err != nil {
		n.refused(at, m, err)
		return err
	}
	n.observe(at, now, m)
	n.at, n.now = Instant{}, 0 // the clock may have moved
	n.absorb(at, changes)
	if n.cfg.Allotments != nil && len(m.RightsMessages) > 0 {
		n.stepRights(m.From, m.RightsMessages, n.millis(at))
	}
	return nil
}

func (n *Node) refused(at Instant, m *gossip.Message, err error) {
	kind := gossip.MessageMisplaced
	if unknown := (*gossip.UnknownSenderError)(nil); errors.As(err, &unknown) {
		kind = gossip.SenderUnknown
	}
	n.replica.engine.Report(gossip.Event{At: at.Mono, Kind: kind, Peer: m.From, Amount: 1})
}

func (c *Config) maxOffset() int64 {
	if c.Clock.MaxOffset == 0 {
		return hlc.DefaultMaxOffset.Milliseconds()
	}
	return c.Clock.MaxOffset.Milliseconds()
}

// absorb adds what others counted to the cells that decisions are made by.
func (n *Node) absorb(at Instant, changes []gossip.Change) {
	now := n.millis(at)
	for i := range changes {
		c := &changes[i]
		if c.Transfer > 0 {
			if n.cfg.Allotments != nil {
				n.received(c, now)
			}
			continue
		}
		if c.Gain == 0 && c.Less == 0 {
			continue
		}
		l := n.limitOf(c)
		if l == nil {
			n.replica.engine.Report(gossip.Event{At: at.Mono, Kind: gossip.RuleUnknown, Amount: 1})
			continue
		}
		if at := n.live.find(c.Key); at >= 0 {
			e := n.live.at(at)
			n.absorbOne(e, l, c, now)
			if n.cfg.Allotments != nil {
				n.review(e, n.replica.shared[c.Span.Rule], now)
			}
		} else if quota.Of(l).Drains() && n.roomFor(now) {
			// Only now is it known when the hits came.
			n.learn(&Hit{Key: c.Key, Limit: l, Rule: n.replica.shared[c.Span.Rule]}, now)
		} else {
			n.busyElsewhere(c)
		}
	}
}

func (n *Node) absorbOne(e *entry, l *rules.Limit, c *gossip.Change, now int64) {
	if quota.Of(l).Stamped() && e.extra < 0 {
		e.extra = n.extras.take()
	}
	quota.Of(l).Merge(&e.cell, n.extras.log(e.extra), now, c.Window, c.Gain)
	if c.Less > 0 {
		n.withdraw(e, l, c.Window, c.Less, now)
	}
	e.keepUntil(max(quota.Of(l).Expires(&e.cell), c.Span.End(c.Window)))
	n.busy(e, l, c.Window, now)
}

// limitOf returns the limit that a change is folded by: that of its rule, or
// the window of an override. Nil when the rule is not in force here or counts
// on another grid by now.
func (n *Node) limitOf(c *gossip.Change) *rules.Limit {
	if c.Span.Rule != 0 {
		if r := n.replica.shared[c.Span.Rule]; r != nil {
			return r.Limit
		}
		return nil
	}
	n.override = rules.Limit{Unit: rules.Second, Multiplier: 1}
	if c.Span.WindowLength%1000 != 0 || c.Span.WindowLength/1000 > 1<<31 {
		return nil
	}
	n.override.Multiplier = uint32(c.Span.WindowLength / 1000)
	return &n.override
}

// judge sets what a status owes to others: what they are estimated to have
// been granted, and whether this daemon lives in their time.
func (n *Node) judge(h *Hit, c *quota.Cell, st *Status) {
	st.elsewhere = n.elsewhere(h, c, st.ref)
	if n.replica.outlier && st.Degraded == NotDegraded && h.Limit.Scope != rules.NodeLocal {
		st.Degraded = ClockOff
	}
}

// elsewhere estimates what others were granted on a key since they were heard.
func (n *Node) elsewhere(h *Hit, c *quota.Cell, at ref) uint64 {
	if n.cfg.Naive || at.where != inLive {
		return 0
	}
	from, longest := c.Window, duration(max(0, n.now-c.Window))
	switch {
	case quota.Of(h.Limit).Stamped(), h.Limit.Scope == rules.NodeLocal,
		h.Limit.Consistency == rules.Partition && n.bounded(h): // rights never sum to more than the limit
		return 0
	case quota.Of(h.Limit).Drains():
		from, _, _ = quota.Of(h.Limit).Shared(c, n.now)
		longest = math.MaxInt64
	}
	return n.replica.engine.Extrapolated(n.at.Mono, longest, h.Key, from, uint64(h.Limit.Requests))
}

// share tells others of a charged hit.
func (n *Node) share(h *Hit, now int64, st *Status) {
	if n.replica == nil || h.Limit.Scope == rules.NodeLocal || st.ref.where != inLive {
		return
	}
	e := n.live.at(st.ref.index)
	window, width, carry := quota.Of(h.Limit).Shared(&e.cell, now)
	span := gossip.CellMeta{WindowLength: width, Carry: carry, Regional: h.Limit.Scope == rules.Region}
	if h.Rule != nil && h.Limit == h.Rule.Limit {
		span.Rule = SharedRule(h.Rule)
	}
	// A cell that was folded must not be folded again into a new entry.
	e.keepUntil(span.End(window))
	if !n.replica.engine.Add(n.at.Mono, h.Key, window, span, h.N, st.room) {
		e.due |= 1 // its cells do not hold all that was used of its rights
		if st.Degraded == NotDegraded {
			st.Degraded = CellsFull
		}
	}
}

// tickReplica does what time calls for in replication.
func (n *Node) tickReplica(at Instant, now int64) {
	r := n.replica
	r.engine.Tick(at.Mono, now)
	n.absorb(at, r.engine.Restored())
	n.watchClock(at.Mono)
}

// Ready returns what the node wants done, as of the latest Instant it was
// handed.
func (n *Node) Ready() Ready {
	if n.replica == nil {
		return Ready{Wake: n.at.Mono + time.Second}
	}
	r := n.replica
	at := n.at
	var out Ready
	if r.engine.Due(at.Mono) {
		out.Messages = r.engine.Messages(at.Mono, n.clock.Now(at), r.rules)
	}
	out.Events = r.engine.Events()
	out.Wake = r.engine.Wake(at.Mono)
	if len(n.desk.active) > 0 {
		out.Wake = min(out.Wake, at.Mono+deskEvery)
	}
	return out
}

// Synced reports whether the node takes its share of work: it heard each live
// peer of its region once, or waited long enough.
func (n *Node) Synced() bool { return n.replica == nil || n.replica.engine.Synced() }

// Expedited reports whether what was counted since the last Ready is worth calling
// it for at once.
func (n *Node) Expedited() bool { return n.replica != nil && n.replica.engine.Expedited() }

// Leave makes the node take no share of its region's work any more: it is about
// to stop. It goes on telling what it counts.
func (n *Node) Leave(at Instant) {
	if n.replica != nil {
		n.replica.engine.Leave(at.Mono)
	}
	if n.cfg.Owners != nil {
		n.desk.leaving = true
		n.giveAllBack(n.millis(at))
	}
}

// Link is what a node knows of a peer.
type Link = gossip.Link

// Links describes the peers, by their IDs.
func (n *Node) Links(at Instant) []Link {
	if n.replica == nil {
		return nil
	}
	return n.replica.engine.Links(at.Mono)
}

// Cells returns the replicated cells of labels that are not over at an
// Instant, in their order.
func (n *Node) Cells(at Instant) []gossip.Cell {
	if n.replica == nil {
		return nil
	}
	return n.replica.engine.Cells(n.millis(at))
}
