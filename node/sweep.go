package node

// sweepOnInsert is how many entries a new key looks at for an expired one
// when the node is full; sweepOnTick how many each Tick looks at. A driver
// that ticks each 100 ms so passes 40,000 keys of a shard a second, and drops
// 5,000 of them.
const (
	sweepOnInsert = 64
	sweepOnTick   = 4_096
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
	n.sweep(now, sweepOnTick)
	for i := range n.overflow.used {
		if e := n.overflow.at(i); e.rule != free && e.expires() <= now {
			n.logs.put(e.log)
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
			n.logs.put(e.log)
			n.live.remove(n.hand)
			dropped++
		}
		n.hand++
	}
	return dropped
}
