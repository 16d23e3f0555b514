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
