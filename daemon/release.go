package daemon

import (
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

// CheckReleasable is Check. It fills to with a receipt a descriptor, and returns
// it: what Refund takes to give back what was charged for the descriptor. One
// without hits gives nothing back.
func (e *Engine) CheckReleasable(c *node.Call, to []node.Receipt) ([]node.Receipt, error) {
	return e.checkReleasableAt(e.Now(), c, to)
}

func (e *Engine) checkReleasableAt(at node.Instant, c *node.Call, to []node.Receipt) ([]node.Receipt, error) {
	f := e.front.Load()
	if err := f.Resolve(c); err != nil {
		return to[:0], err
	}
	hits := c.Hits()
	to = slices.Grow(to[:0], len(hits))[:len(hits)]
	clear(to)
	touched := e.touched(c, f, hits)
	e.lock(touched)
	defer e.unlock(touched)
	each(touched, func(i int) { e.shards[i].node.Probe(at, hits, c.Statuses) })
	f.Decide(c)
	hurried := uint64(0)
	each(touched, func(i int) {
		n := e.shards[i].node
		n.Charge(at, hits, c.Statuses)
		n.Receipts(at, hits, c.Statuses, to)
		if n.Urgent() {
			hurried |= 1 << i
		}
	})
	if hurried != 0 {
		e.hurry(hurried)
	}
	return to, nil
}

// Refund gives back up to hits of what a receipt of this engine says. See
// node.Node.Refund: that no receipt is handed in twice is up to the caller.
func (e *Engine) Refund(r *node.Receipt, hits uint64) node.Refunded {
	return e.refundAt(e.Now(), r, hits)
}

func (e *Engine) refundAt(at node.Instant, r *node.Receipt, hits uint64) node.Refunded {
	s := e.shards[node.ShardOf(r.Key, len(e.shards))]
	s.lock()
	defer s.mu.Unlock()
	return s.node.Refund(at, r, hits)
}

// Whose returns the name and region of the live daemon that an incarnation is
// of, "" for one that is not known here.
func (e *Engine) Whose(slot crdt.Slot) string {
	for _, l := range e.linksOf(e.Now(), 0) {
		if l.Peer.ID == slot {
			return l.Peer.Name + " in " + l.Peer.Region
		}
	}
	return ""
}
