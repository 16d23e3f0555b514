package daemon

import (
	"math/bits"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/rules"
)

// Incarnation returns the incarnation under which the engine counts.
func (e *Engine) Incarnation() crdt.Incarnation { return e.shards[0].node.Incarnation() }

// Shards returns the number of shards.
func (e *Engine) Shards() int { return len(e.shards) }

// expedite makes the replicator send the messages of some shards soon. It
// neither waits nor allocates.
func (e *Engine) expedite(shards uint64) {
	if e.expedited.Or(shards)&shards == shards {
		return // they are expedited already
	}
	notify(e.news)
}

// Peers sets the live incarnations of all regions at all shards.
func (e *Engine) Peers(at node.Instant, peers []gossip.Peer) {
	e.visit(func(_ int, n *node.Node) { n.Peers(at, peers) })
}

// SetAlone sets at all shards whether all peers refuse this daemon.
func (e *Engine) SetAlone(alone bool) {
	e.visit(func(_ int, n *node.Node) { n.SetAlone(alone) })
}

// Step merges the message of a peer's shard. See node.Node.Step. A message for
// a shard that does not exist is rejected as misplaced.
func (e *Engine) Step(at node.Instant, m *gossip.Message) error {
	if m.Shards != len(e.shards) || m.Shard < 0 || m.Shard >= len(e.shards) {
		return &gossip.ShardsError{Theirs: m.Shards, Ours: len(e.shards)}
	}
	s := e.shards[m.Shard]
	s.lock()
	defer s.mu.Unlock()
	err := s.node.Step(at, m)
	if s.node.Expedited() {
		e.expedite(1 << m.Shard)
	}
	return err
}

// turn runs the timers of a shard and returns its messages and events.
func (e *Engine) turn(at node.Instant, shard int) (ready node.Ready) {
	var after afterUnlock
	e.in(shard, func(n *node.Node) {
		n.Tick(at)
		if e.strict != nil {
			after.collect(at, e.strict, shard, n)
		}
		ready = n.Ready()
	})
	e.perform(&after)
	return ready
}

// Synced reports whether all shards do their share of the work of the region.
func (e *Engine) Synced() bool {
	synced := true
	e.visit(func(_ int, n *node.Node) { synced = synced && n.Synced() })
	return synced
}

// Leave makes all shards give up their share of the work and send soon.
func (e *Engine) Leave() {
	at := e.Now()
	var after afterUnlock
	e.visit(func(i int, n *node.Node) {
		n.Leave(at)
		if e.strict != nil {
			after.collect(at, e.strict, i, n)
		}
		after.expedite |= 1 << i
	})
	e.perform(&after)
}

// Links describes the peers, by their IDs: of the views of all shards the
// oldest, with the least acknowledged.
func (e *Engine) Links(at node.Instant) []node.Link {
	all := e.linksOf(at, 0)
	for i := 1; i < len(e.shards); i++ {
		all = worst(all, e.linksOf(at, i))
	}
	return all
}

// Offsets returns the leads of the clocks of peers; see node.Node.Offsets. All
// shards have the same.
func (e *Engine) Offsets() (offsets map[crdt.Incarnation]time.Duration) {
	e.in(0, func(n *node.Node) { offsets = n.Offsets() })
	return offsets
}

// worst joins two descriptions of the peers. It drops a peer that only one has.
func worst(a, b []node.Link) []node.Link {
	out := a[:0]
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch x, y := &a[i], &b[j]; {
		case x.Peer.ID < y.Peer.ID:
			i++
		case x.Peer.ID > y.Peer.ID:
			j++
		default:
			l := *x
			l.Age, l.Unsent, l.Lag = older(x.Age, y.Age), older(x.Unsent, y.Unsent), older(x.Lag, y.Lag)
			if x.RTT < 0 || y.RTT >= 0 && y.RTT < x.RTT {
				l.RTT = y.RTT
			}
			if y.Head-min(y.Head, y.Acked) > x.Head-min(x.Head, x.Acked) {
				l.Acked, l.Head, l.Contiguous = y.Acked, y.Head, y.Contiguous
			}
			l.Silent, l.Unused, l.Differs = x.Silent || y.Silent, x.Unused || y.Unused, x.Differs || y.Differs
			out = append(out, l)
			i, j = i+1, j+1
		}
	}
	return out
}

// older returns the greater of two ages, where -1 means never.
func older(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

func (e *Engine) linksOf(at node.Instant, shard int) (links []node.Link) {
	e.in(shard, func(n *node.Node) { links = slices.Collect(n.Links(at)) })
	return links
}

// departure is the replica.Departure of an engine that has left.
type departure struct {
	replica.Departure
	engine *Engine
	began  time.Duration
}

// depart begins the departure of an engine that decides no call any more, with
// its rights agent, nil for none. It transfers unused rights to other daemons.
func (e *Engine) depart(rights replica.Rights) *departure {
	at, most := e.Now(), node.MaxLastTransfers
	var after afterUnlock
	e.visit(func(i int, n *node.Node) {
		if keys := n.TransferAll(at, most); keys > 0 {
			most -= keys
			after.expedite |= 1 << i
		}
	})
	e.perform(&after)
	return &departure{
		engine: e, began: at.Mono,
		Departure: replica.Depart(at.Mono, len(e.shards), func(shard int) []node.Link { return e.linksOf(at, shard) }, rights),
	}
}

// over reports whether the process may end now, and whether its peers have
// acknowledged its counts.
func (d *departure) over() (over, acknowledged bool) {
	at := d.engine.Now()
	return d.Over(at.Mono, func(shard int) []node.Link { return d.engine.linksOf(at, shard) })
}

// each visits the shards of a bit set in ascending order.
func each(set uint64, visit func(shard int)) {
	for ; set != 0; set &= set - 1 {
		visit(bits.TrailingZeros64(set))
	}
}

// BusyKeys adds the busiest keys of the rules of set, with the admitted hits of
// each region. It adds none if another set is in force.
func (e *Engine) BusyKeys(at node.Instant, set *rules.Set, to *overage.BusyKeys) {
	e.reload.Lock()
	defer e.reload.Unlock()
	if e.Rules() != set {
		return
	}
	e.visit(func(i int, n *node.Node) {
		n.Busiest(at, func(k *node.Busy) { to.Add(k, i) })
	})
	to.Admitted(func(hits []node.RegionHits, k *overage.BusyKey) []node.RegionHits {
		e.in(k.Shard, func(n *node.Node) { hits = n.Admitted(hits, &k.Busy) })
		return hits
	})
}
