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
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/lease"
)

// Instant is one reading of a process's two clocks.
type Instant = hlc.Instant

// Node is a replica of the keys of one shard. It is not safe for concurrent
// use: the driver owns the loop and the locks.
//
// A node with a region is one of many. Peers, Step and Tick are its inputs.
// Ready returns its output after each of them and after Charge.
type Node struct {
	// The fields that every decision reads come first and close together: the
	// nodes of a daemon share its caches.
	at    Instant // the latest one
	now   int64   // the clock's milliseconds at at
	keys  keys
	rules ruleset
	gate  rightsGate
	stats outcomes
	top   topKeys

	leases  *lease.Table // of strict keys, nil without Owners
	clock   hlc.Clock
	cfg     Config
	replica *replica // nil for a node without a region

	incarnation crdt.Incarnation
	transfers   TransferStats
	wakes       keyWakes
	swept       time.Duration // monotonic time of the latest sweep
	busiest     busiestKeys
	issued      uint64 // the number of the latest receipt
	used        usedReceipts
}

// New returns a node without rules or keys. It draws its incarnation from rng,
// unless the configuration has one.
func New(cfg Config, rng *rand.Rand) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	set, err := rules.NewSet(nil)
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	n := &Node{
		cfg: cfg, incarnation: crdt.Incarnation(rng.Uint64()), clock: *hlc.NewClock(cfg.Clock),
		keys: keys{
			live: keytable.New(cfg.Chunks), overflow: keytable.New(nil),
			shares: keytable.NewShares(cfg.MaxKeys, cfg.KeyReserve), shard: cfg.Shard, shards: cfg.Shards, accounts: cfg.Allotments != nil,
		},
		rules: ruleset{set: set},
		gate:  rightsGate{source: cfg.Allotments},
		stats: outcomes{tallies: make([]quota.Tally, 1), near: cfg.NearLimit},
		used:  usedReceipts{max: max(1, maxRefunds/cfg.Shards)},
	}
	if cfg.Incarnation != 0 {
		n.incarnation = cfg.Incarnation
	}
	if cfg.Region != "" {
		n.cfg.Gossip.HashSeed = rng.Uint64()
		if cfg.Allotments != nil {
			n.cfg.Gossip.Plausible = func(c *gossip.ClaimedTransfer) bool { return plausible(n, c) }
		}
		n.replica = newReplica(n.cfg, n.incarnation)
		n.clock.HoldJumps(true)
		n.leases = newLeases(&n.cfg, n.replica, &n.keys, n.rules.set, n.incarnation)
	}
	return n, nil
}

// Incarnation returns the incarnation under which this node counts. A restart
// has another one.
func (n *Node) Incarnation() crdt.Incarnation { return n.incarnation }

// Time returns the hybrid logical clock, as messages carry it.
func (n *Node) Time(at Instant) hlc.Timestamp { return n.clock.Now(at) }

// Millis returns the reading of the clock that windows are cut from, in Unix
// milliseconds. It uses up no stamp.
func (n *Node) Millis(at Instant) int64 { return n.millis(at) }

// Take probes, decides and charges hits that all belong to this node.
func (n *Node) Take(at Instant, h []Hit, out []Status) Decision {
	n.Probe(at, h, out)
	d := Decide(out, Policy{})
	n.Charge(at, h, out)
	return d
}

// Probe decides whether each hit of this node would pass, after the hits of the
// call before it, and charges nothing. It writes the verdicts into out, which
// is as long as h and belongs to the caller. The result is valid until the next
// Probe or Tick.
func (n *Node) Probe(at Instant, h []Hit, out []Status) {
	now := n.millis(at)
	n.keys.settle()
	n.keys.promised = 0
	for i := range h {
		if h[i].Limit == nil || !n.keys.owns(h[i].Key) {
			continue
		}
		n.locate(h, out, i, now)
		st := &out[i]
		if i > 0 {
			st.probed.ahead = n.keys.ahead(h[:i], out, h[i].Key, st.probed.ref)
		} else {
			st.probed.ahead = 0
		}
		cell, log := n.keys.cell(st.probed.ref)
		if n.replica != nil {
			st.probed.elsewhere, st.probed.left = n.elsewhere(&h[i], cell, st.probed.ref)
			st.probed.elsewhere += st.probed.left
			if st.Degraded == NotDegraded && replicated(h[i].Limit) {
				st.Degraded = n.replica.degraded()
			}
		}
		if st.probed.homed = n.homed(&h[i]); st.probed.homed {
			x := leaseHit(&h[i], st)
			n.leases.Probe(n.leaseNow(), &x, &st.probed.lease)
			st.adopt(&st.probed.lease)
		} else {
			n.pass(&h[i], cell, log, st, now)
		}
		st.Delay = 0
		if f := quota.Of(h[i].Limit); f.Delays() && !st.Over {
			st.Delay = duration(f.Delay(cell, now, st.probed.ahead))
		}
	}
}

// pass puts a hit through the estimate gate and the rights gate.
func (n *Node) pass(h *Hit, c *quota.Cell, log *quota.Log, st *Status, now int64) {
	f := quota.Of(h.Limit)
	used := f.Used(c, log, now)
	taken := sat.Add(sat.Add(sat.Add(used, st.probed.elsewhere), st.probed.ahead), h.N)
	st.Gate, st.probed.account, st.probed.bounded, st.probed.failed = NoGate, nil, n.bounded(h), false
	if taken > f.Capacity() && !(st.probed.bounded && n.cfg.Ablation.NoEstimate) {
		st.Gate = EstimateGate
	}
	if !st.probed.bounded {
		st.Over = st.Gate != NoGate
		return
	}
	allowed := n.allow(h, st, used, now)
	if allowed && st.Gate == EstimateGate && covered(n, h, st, now) {
		st.Gate = NoGate
	}
	if !allowed {
		uncovered(n, h, st, now)
	}
	st.Over = st.Gate != NoGate
}

// uncovered decides hits that the rights of this daemon do not cover: they are
// denied, unless it has no allotment at all, and on_failure admits them.
func uncovered(n *Node, h *Hit, st *Status, now int64) {
	a, why := n.gate.explained(&n.rules, h.Rule, now)
	if h.Limit.Total() == 0 || a.Amount > 0 {
		st.Gate |= RightsGate
		return
	}
	st.probed.failed = why.Failure() && h.Limit.OnFailure == rules.Allow
	if !st.probed.failed {
		st.Gate |= RightsGate
	}
	if st.Degraded == NotDegraded || st.probed.failed {
		if st.Degraded = NoRights; why == epoch.ReasonNoCluster {
			st.Degraded = NoCluster
		}
	}
}

// Charge charges the hits that Decide marked and completes the status of every
// hit of this node, in their order. It must follow Probe for the same hits and
// Instant.
func (n *Node) Charge(at Instant, h []Hit, out []Status) {
	now := n.millis(at)
	for i := range h {
		if h[i].Limit == nil || !n.keys.owns(h[i].Key) {
			continue
		}
		st, rule := &out[i], n.rules.index(h[i].Rule)
		charged := st.decided.charge && h[i].N > 0
		if charged {
			n.charge(&h[i], now, st, rule)
		}
		n.report(&h[i], now, st)
		if n.top.unsampled--; n.top.unsampled <= 0 && !st.decided.peek &&
			n.top.watch(&h[i], st, n.at.Mono, n.cfg.HotThreshold) && !st.probed.homed {
			st.probed.room = 0 // peers that lack counts of a hot key get them at once
		}
		if charged && n.replica != nil {
			n.share(&h[i], now, st)
		}
		if st.decided.peek {
			continue
		}
		if st.probed.account != nil {
			cell, log := n.keys.cell(st.probed.ref)
			used := quota.Of(h[i].Limit).Used(cell, log, now)
			n.offer(&h[i], st.probed.account, now, sat.Add(used, st.probed.elsewhere))
		}
		if st.Over && n.replica != nil && st.probed.ref.where == inLive && !st.decided.passed {
			cell, _ := n.keys.cell(st.probed.ref)
			uncharged := h[i].N
			if charged { // share has counted them
				uncharged = 0
			}
			exhausted(n, &h[i], cell.Window, uncharged)
		}
		if n.replica != nil && st.probed.ref.where == inOverflow && (charged || st.Over && !st.decided.passed) {
			offered(n, &h[i], now)
		}
		if h[i].Twin {
			continue
		}
		n.stats.count(&h[i], st, rule)
		if st.Over && n.replica != nil {
			n.busiest.refused(n.rules.set, &h[i], st, rule)
		}
	}
}

// charge adds a hit to its cell, which is made for a new key. rule is the index
// of its rule, -1 for none.
func (n *Node) charge(h *Hit, now int64, st *Status, rule int32) {
	if !st.probed.ref.exists() {
		st.probed.ref = n.keys.make(h, st.probed.ref, n.at.Mono.Milliseconds())
	}
	e, f := st.probed.ref.entry, quota.Of(h.Limit)
	if st.probed.ref.where == inOverflow {
		n.keys.filter.Add(h.Key)
		if st.Degraded == NotDegraded { // a strict hit that would wait, in a call that is denied
			st.Degraded = KeysFull
		}
	}
	if !f.Charge(&e.Cell, n.keys.logOf(e, f), now, h.N) {
		st.Degraded = CellsFull
	}
	n.keys.keep(e, lasting(h).Expires(&e.Cell))
	if st.probed.homed {
		x := leaseHit(h, st)
		n.leases.Spend(&x, &st.probed.lease)
	} else if e.Extra >= 0 || st.probed.account != nil {
		n.spend(h, now, st)
	}
	if st.probed.bounded {
		e.KeepUntil(now + f.RefillTime())
	}
	if rule = n.rules.counted(rule, h.Limit); st.probed.ref.where == inLive {
		n.keys.assign(e, rule)
		if n.replica != nil {
			n.busiest.charged(n.rules.set, e, h.Limit, now, now)
		}
	} else {
		e.Rule = rule
	}
}

// report completes the status of a hit beside the verdict.
func (n *Node) report(h *Hit, now int64, st *Status) {
	if !st.probed.ref.exists() {
		if e := n.keys.live.Find(h.Key); e != nil { // made for an earlier hit of the call
			st.probed.ref = ref{where: inLive, entry: e}
		}
	}
	asked := uint64(0)
	if st.Over {
		asked = sat.Add(h.N, st.probed.ahead)
	}
	if st.probed.homed {
		st.reportStrict(n.leases, h)
		return
	}
	cell, log := n.keys.cell(st.probed.ref)
	r := quota.Of(h.Limit).Describe(cell, log, now, st.probed.elsewhere, asked)
	st.Remaining, st.Reset, st.Retry, st.Never = r.Remaining, duration(r.Reset), duration(r.Retry), r.Never
	st.probed.room = st.Remaining
	if st.probed.elsewhere > 0 { // an estimate is no count
		f := quota.Of(h.Limit)
		st.probed.room = sat.Sub(f.Capacity(), f.Used(cell, log, now))
		st.Estimated = st.Gate&EstimateGate != 0 && asked <= st.probed.room
	}
	if st.probed.bounded {
		n.reportRights(h, now, st)
	}
	if !st.decided.passed {
		st.Delay = 0
	}
}

// reportRights limits a report to the rights of this daemon.
func (n *Node) reportRights(h *Hit, now int64, st *Status) {
	base := n.gate.allotment(&n.rules, h.Rule, now)
	if st.probed.account != nil {
		st.probed.rights = st.probed.account.Left(h.Limit, base, now)
	} else if st.decided.charge {
		st.probed.rights -= min(st.probed.rights, h.N)
	}
	if least := sat.Sub(st.probed.rights, surplus(h.Limit)); st.Remaining < least && rightsCount(n, h.Rule, now) {
		st.Remaining = least // claims of others lower it no further
	}
	// Rights to a budgeted limit are transferred when they are needed, so what
	// the estimate leaves is left, unless rights alone denied the hits.
	if !st.probed.failed && (st.Gate == RightsGate || h.Limit.Consistency == rules.Partition) {
		st.Remaining = min(st.Remaining, st.probed.rights)
	}
	if st.Gate&RightsGate == 0 || st.Never {
		return
	}
	wait := h.Limit.Window()
	if st.probed.account != nil {
		wait = st.probed.account.Wait(h.Limit, base, now, sat.Add(h.N, st.probed.ahead))
	}
	st.Retry = max(st.Retry, duration(wait))
}

// millis returns the time that windows are cut by, in Unix milliseconds. Probe
// and Charge of one call have the same Instant, so the clock is read once.
func (n *Node) millis(at Instant) int64 {
	if at != n.at || n.now == 0 {
		n.at, n.now = at, n.clock.Millis(at)
	}
	return n.now
}

// ShardOf returns the shard that owns a key, of n shards; n is a power of two.
func ShardOf(k crdt.Key, n int) int { return int(uint64(k) & uint64(n-1)) }
