package node

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Instant is one reading of a process's two clocks.
type Instant = hlc.Instant

// MaxShards is the most Nodes that keys are split over.
const MaxShards = 64

// Config is what a Node is made with.
type Config struct {
	// Shard is the number of this node among Shards nodes that split the
	// keys between them; Shards is a power of two up to MaxShards.
	Shard, Shards int
	// MaxKeys bounds the live keys of this node, at least 1. A key beyond it
	// shares its rule's overflow counter.
	MaxKeys int
	// NearLimit is the share of a limit from which hits count as near it.
	NearLimit rules.PPM
	// Clock bounds and slews the hybrid logical clock.
	Clock hlc.Config

	// Region is the name of the node's region, "" for a node alone: then
	// nothing is replicated and the fields below do not matter.
	Region string
	// Name is the daemon's name, the same across restarts and another on
	// each daemon.
	Name string
	// Gossip is how counts are replicated.
	Gossip gossip.Config
	// Allotments says what the daemon holds of the labels of rules with rights; nil
	// where there are none. Ablation leaves gates out, for comparison.
	Allotments Allotments
	Ablation   Ablation
	// Owners says who is home of strict keys; nil where each node counts them for
	// itself. Strict is how.
	Owners Owners
	Strict OwnersConfig
	// HotThreshold is from how many hits a second on a key is hot: what others do
	// not know of it they are told at once. 0 is never.
	HotThreshold uint64
	// Naive leaves out what others are estimated to have admitted since they
	// were heard: the plain merged count decides. It is for comparison.
	Naive bool
}

// Default returns the configuration of a node that holds every key.
func Default() Config {
	return Config{Shards: 1, MaxKeys: 1_000_000, NearLimit: 80 * rules.Percent}
}

func (c Config) validate() error {
	if c.Shards < 1 || c.Shards > MaxShards || c.Shards&(c.Shards-1) != 0 {
		return fmt.Errorf("%d shards, want a power of two from 1 to %d", c.Shards, MaxShards)
	}
	if c.Shard < 0 || c.Shard >= c.Shards {
		return fmt.Errorf("shard %d of %d", c.Shard, c.Shards)
	}
	if c.MaxKeys < 1 {
		return fmt.Errorf("max keys %d, want at least 1", c.MaxKeys)
	}
	if c.MaxKeys > maxEntries-chunkSize {
		return fmt.Errorf("max keys %d a shard, at most %d; use more shards", c.MaxKeys, maxEntries-chunkSize)
	}
	if err := c.Gossip.Validate(); err != nil {
		return err
	}
	return c.Clock.Validate()
}

// Node is a replica of the keys of one shard. It is not safe for concurrent
// use: the driver owns the loop and the locks.
//
// A node with a region is one of many: Peers, Step and Tick feed it, and after
// each of them, and after Charge, Ready says what to send.
type Node struct {
	// What every decision reads comes first and close together: the nodes of
	// a daemon take turns in its caches.
	at       Instant // the latest, and what the clock made of it
	now      int64
	live     store // bounded by cfg.MaxKeys
	set      *rules.Set
	tallies  []quota.Tally // one a rule, then one for overrides without a rule
	held     []held        // one a rule
	promised int           // new keys that the last Probe found room for

	unsampled int32 // hits until hottest takes the next one
	clock     hlc.Clock
	cfg       Config
	replica   *replica // nil for a node alone

	incarnation crdt.Incarnation
	overflow    store // one entry a rule and grid, bounded by the rules
	spilled     spill // the keys that overflow counted
	extras      extras
	degraded    [degradedKinds]uint64
	refusals    [gates]uint64
	transfers   TransferStats
	hand        int32         // next entry of live to sweep
	swept       time.Duration // when it was swept last
	override    rules.Limit   // scratch of limitOf
	zero        quota.Cell    // of a key that was never charged; never written
	busiest     busiest       // what people are told of
	hottest     hottest       // likewise
	desk        desk          // of strict keys
}

// New returns a node without rules or keys. Its slot, the incarnation that
// owns what it counts, is drawn from rng.
func New(cfg Config, rng *rand.Rand) (*Node, error) {
	err := cfg.validate()
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{
		cfg: cfg, incarnation: crdt.Incarnation(rng.Uint64()), clock: *hlc.NewClock(cfg.Clock),
		live: newStore(cfg.Shard * chunkSize / cfg.Shards), overflow: newStore(0),
	}
	if n.set, err = rules.NewSet(nil); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n.tallies = make([]quota.Tally, 1)
	if cfg.Region != "" {
		n.cfg.Gossip.HashSeed = rng.Uint64()
		n.replica = newReplica(n.cfg, n.incarnation)
		n.clock.HoldJumps(true)
	}
	return n, nil
}

// Incarnation returns the incarnation under which this node counts: a restart has
// another one.
func (n *Node) Incarnation() crdt.Incarnation { return n.incarnation }

// Take probes, decides and charges hits that this node owns all of.
func (n *Node) Take(at Instant, h []Hit, out []Status) Decision {
	n.Probe(at, h, out)
	d := Decide(out, Policy{})
	n.Charge(at, h, out)
	return d
}

// Probe answers whether each hit that this node owns would pass, counting the
// hits of the call before it, and charges nothing. It writes the verdict into
// out, which is as long as h and belongs to the caller. What it found stays
// good until the next Probe or Tick.
func (n *Node) Probe(at Instant, h []Hit, out []Status) {
	now := n.millis(at)
	n.promised = 0
	for i := range h {
		if h[i].Limit == nil || !n.owns(h[i].Key) {
			continue
		}
		n.locate(h, out, i, now)
		st := &out[i]
		st.ahead = n.ahead(h[:i], out, h[i].Key, st.ref)
		cell, log := n.cell(st.ref)
		if n.replica != nil {
			n.judge(&h[i], cell, st)
		}
		if st.homed = n.homed(&h[i]); st.homed {
			n.judgeHomed(&h[i], st, now)
		} else {
			n.pass(&h[i], cell, log, st, now)
		}
		st.Delay = 0
		if !st.Over {
			st.Delay = duration(quota.Of(h[i].Limit).Delay(cell, now, st.ahead))
		}
	}
}

// pass puts a hit through the gates.
func (n *Node) pass(h *Hit, c *quota.Cell, log *quota.Log, st *Status, now int64) {
	used := quota.Of(h.Limit).Used(c, log, now)
	taken := sat.Add(sat.Add(sat.Add(used, st.elsewhere), st.ahead), h.N)
	st.Gate, st.account, st.led, st.bounded = NoGate, nil, nil, n.bounded(h)
	if taken > quota.Of(h.Limit).Capacity() && !(st.bounded && n.cfg.Ablation.NoEstimate) {
		st.Gate = EstimateGate
	}
	if st.bounded && !n.allow(h, st, used, now) {
		st.Gate |= RightsGate
		if st.Degraded == NotDegraded && h.Limit.Total() > 0 && n.base(h.Rule, now).Amount == 0 {
			st.Degraded = NoRights
		}
	}
	st.Over = st.Gate != NoGate
}

// Charge charges the hits that Decide marked and reports on every hit that
// this node owns, in their order. It must follow a Probe of the same hits at
// the same instant.
func (n *Node) Charge(at Instant, h []Hit, out []Status) {
	now := n.millis(at)
	for i := range h {
		if h[i].Limit == nil || !n.owns(h[i].Key) {
			continue
		}
		st := &out[i]
		if st.charge && h[i].N > 0 {
			n.charge(&h[i], now, st)
		}
		n.report(&h[i], now, st)
		if n.unsampled--; n.unsampled <= 0 && !st.peek {
			n.watchHot(&h[i], st)
		}
		if st.charge && h[i].N > 0 {
			n.share(&h[i], now, st)
		}
		if st.account != nil && !st.peek {
			cell, log := n.cell(st.ref)
			used := quota.Of(h[i].Limit).Used(cell, log, now)
			n.offer(&h[i], st.account, now, sat.Add(used, st.elsewhere))
		}
		if !st.peek {
			n.count(&h[i], st)
			if st.Over {
				n.busyRefused(&h[i], st)
			}
		}
	}
}

// report writes what the caller is told beside the verdict.
func (n *Node) report(h *Hit, now int64, st *Status) {
	if !st.ref.exists() {
		if at := n.live.find(h.Key); at >= 0 { // made for an earlier hit of the call
			st.ref = ref{where: inLive, index: at}
		}
	}
	asked := uint64(0)
	if st.Over {
		asked = sat.Add(h.N, st.ahead)
	}
	if st.homed {
		n.reportHomed(h, st, now)
		return
	}
	cell, log := n.cell(st.ref)
	r := quota.Of(h.Limit).Describe(cell, log, now, st.elsewhere, asked)
	st.Remaining, st.Reset, st.Retry, st.Never = r.Remaining, duration(r.Reset), duration(r.Retry), r.Never
	st.room = st.Remaining
	if st.bounded {
		n.reportRights(h, now, st)
	}
	if !st.passed {
		st.Delay = 0
	}
}

// reportRights makes a report no better than the rights of this daemon.
func (n *Node) reportRights(h *Hit, now int64, st *Status) {
	base := n.base(h.Rule, now)
	if st.account != nil {
		st.rights = st.account.Left(h.Limit, base, now)
	} else if st.charge {
		st.rights -= min(st.rights, h.N)
	}
	st.Remaining = min(st.Remaining, st.rights)
	if st.Gate&RightsGate == 0 || st.Never {
		return
	}
	wait := h.Limit.Window()
	if st.account != nil {
		wait = st.account.Wait(h.Limit, base, now, sat.Add(h.N, st.ahead))
	}
	st.Retry = max(st.Retry, duration(wait))
}

// millis is the instant labels are cut from. Probe and Charge of one call
// share an Instant, so the clock is asked once.
func (n *Node) millis(at Instant) int64 {
	if at != n.at || n.now == 0 {
		n.at, n.now = at, n.clock.Millis(at)
	}
	return n.now
}

// ShardOf returns which of n shards, a power of two, owns a key.
func ShardOf(k crdt.Key, n int) int { return int(k.Hi & uint64(n-1)) }

func (n *Node) owns(k crdt.Key) bool { return ShardOf(k, n.cfg.Shards) == n.cfg.Shard }

// charge adds a hit to its cell, which is made when the key is new.
func (n *Node) charge(h *Hit, now int64, st *Status) {
	st.ref = n.make(h, st.ref)
	e := n.entry(st.ref)
	if st.ref.where == inOverflow {
		n.spilled.add(h.Key)
	}
	if quota.Of(h.Limit).Stamped() && e.extra < 0 {
		e.extra = n.extras.take()
	}
	if !quota.Of(h.Limit).Charge(&e.cell, n.extras.log(e.extra), now, h.N) {
		st.Degraded = CellsFull
	}
	e.keepUntil(quota.Of(h.Limit).Expires(&e.cell))
	if st.homed {
		n.spendHomed(h, st, now)
	} else {
		n.spend(h, now, st)
	}
	if st.bounded && quota.Of(h.Limit).Drains() {
		_, fill := quota.Of(h.Limit).RightsWindow(now)
		e.keepUntil(now + fill)
	}
	e.rule = -1
	// An override may count on another grid than the rule it stands in for.
	if i := n.ruleIndex(h.Rule); i >= 0 && sameGrid(n.set.Rules()[i].Limit, h.Limit) {
		e.rule = i
	}
	if st.ref.where == inLive {
		n.busy(e, h.Limit, now, now)
	}
}

// ahead is how many hits of the same call go first on the counter at: those
// that fit, and those that are charged although they do not.
func (n *Node) ahead(h []Hit, out []Status, k crdt.Key, at ref) uint64 {
	sum := uint64(0)
	for j := range h {
		// A key that was new to the first of its hits may have an entry by now.
		if h[j].Limit == nil || out[j].ref != at && h[j].Key != k || !n.owns(h[j].Key) {
			continue
		}
		if out[j].Over && !h[j].Limit.Shadow && !h[j].Limit.ChargeDenied {
			continue
		}
		sum = sat.Add(sum, h[j].N)
	}
	return sum
}
