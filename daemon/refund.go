package daemon

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

// Refund gives back up to hits of the hits of a refund token of this engine.
// See node.Node.Refund.
func (e *Engine) Refund(r *node.Receipt, hits uint64) node.Refunded {
	return e.refundAt(e.Now(), r, hits)
}

func (e *Engine) refundAt(at node.Instant, r *node.Receipt, hits uint64) (out node.Refunded) {
	e.in(node.ShardOf(r.Key, len(e.shards)), func(n *node.Node) { out = n.Refund(at, r, hits) })
	return out
}

// RefundHits gives hits back without a refund token: up to those of each
// descriptor that this daemon counted itself. See node.RefundHits. Then it
// fills in the statuses of the call as of a peek. It waits for nothing.
func (e *Engine) RefundHits(c *node.Call) error {
	c.Peek = true
	if err := e.resolve(e.front.Load(), c); err != nil {
		return err
	}
	at := e.Now()
	hits := c.Hits()[:len(c.Descriptors)] // those after them are under the next secret
	for i := range hits {
		if h := &hits[i]; h.Limit != nil {
			e.in(node.ShardOf(h.Key, len(e.shards)), func(n *node.Node) { node.RefundHits(n, at, h, h.N) })
		}
		c.Descriptors[i].Hits = 0
	}
	return e.CheckAt(at, c)
}

// Whose returns the name and region of the live daemon with an incarnation, ""
// for an unknown one.
func (e *Engine) Whose(incarnation crdt.Incarnation) string {
	for _, l := range e.linksOf(e.Now(), 0) {
		if l.Peer.ID == incarnation {
			return l.Peer.Name + " in " + l.Peer.Region
		}
	}
	return ""
}
