package daemon

import (
	"context"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
)

// CheckRefundable is Check. It fills to with a refund token a descriptor, and
// returns it. Refund uses a token to give back hits that were charged for the
// descriptor. A token without hits gives nothing back.
func (e *Engine) CheckRefundable(
	ctx context.Context, c *node.Call, to []node.Receipt,
) ([]node.Receipt, error) {
	t, err := e.openRefundable(c, to)
	if err != nil || e.try(e.Now(), &t) {
		return t.receipts, err
	}
	err = e.strict.wait(ctx, t)
	return t.receipts, err
}

// TryCheckRefundable is CheckRefundable for a call that waits for no owner. See
// TryCheck.
func (e *Engine) TryCheckRefundable(
	c *node.Call, to []node.Receipt,
) (receipts []node.Receipt, decided bool, err error) {
	t, err := e.openRefundable(c, to)
	return t.receipts, err != nil || e.try(e.Now(), &t), err
}

// openRefundable is open for a call whose refund tokens go into to.
func (e *Engine) openRefundable(c *node.Call, to []node.Receipt) (attempt, error) {
	var t attempt
	err := e.open(c, &t)
	if err != nil {
		t.receipts = to[:0]
		return t, err
	}
	// Not nil even if empty: the caller wants refund tokens.
	t.receipts = slices.Grow(to[:0], max(1, len(t.hits)))[:len(t.hits)]
	clear(t.receipts)
	return t, nil
}

// Refund gives back up to hits of the hits of a refund token of this engine.
// See node.Node.Refund: the caller must not use a token twice.
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
