package node

import "time"

// sweepOnInsert is how many entries a new key looks at for an expired one
// when the node is full. Each sweepEvery one entry in 64 is looked at, of few
// at least sweepAtLeast: to find out that a key still lives costs a cache miss.
// So a node that is ticked passes all its keys in some seconds, and drops at
// most 5,000 a second.
const (
	sweepOnInsert = 64
	sweepEvery    = 100 * time.Millisecond
	sweepAtLeast  = 64
	// dropOnTick bounds the entries that a Tick drops, each of which costs a
	// few lines of memory, and so how long it holds its driver's lock.
	dropOnTick = 512
)

// Tick tells the node that time passed: expired cells go, a bounded number of
// them at a time.
func (n *Node) Tick(at Instant) {
	now := n.millis(at)
	if n.replica != nil {
		n.tickReplica(at, now)
	}
	if at.Mono-n.swept >= sweepEvery {
		n.swept = at.Mono
		n.sweep(now, max(n.live.used/64, sweepAtLeast))
	}
	if n.cfg.Owners != nil {
		n.tickDesk(now)
	}
	for i := range n.overflow.used {
		if e := n.overflow.at(i); e.rule != free && e.expires() <= now {
			n.extras.put(e.extra)
			n.overflow.remove(i)
		}
	}
	if n.overflow.len() == 0 {
		n.spilled.clear()
	}
}

// sweep looks at up to budget entries, round and round from where it stopped,
// drops those that can no longer matter, and returns how many it dropped.
func (n *Node) sweep(now int64, budget int32) int {
	dropped := 0
	for range min(budget, n.live.used) {
		if dropped == dropOnTick {
			break
		}
		if n.hand >= n.live.used {
			n.hand = 0
		}
		if e := n.live.at(n.hand); e.rule != free && e.expires() <= now {
			n.extras.put(e.extra)
			n.live.remove(n.hand)
			dropped++
		}
		n.hand++
	}
	return dropped
}
