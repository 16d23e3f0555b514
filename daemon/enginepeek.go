package daemon

import (
	"context"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// Peek decides a call without charging or counting it, and returns its hits and
// the rules it met. It asks owners as Check does. If ctx ends before they
// answer, it decides as if they did not.
func (e *Engine) Peek(ctx context.Context, c *node.Call) ([]node.Hit, *rules.Set, error) {
	t := attempt{front: e.front.Load(), call: c}
	if err := e.resolve(t.front, c); err != nil {
		return nil, nil, err
	}
	t.hits = c.Hits()
	for i := range t.hits {
		if t.hits[i].Limit != nil {
			t.touched |= 1 << node.ShardOf(t.hits[i].Key, len(e.shards))
		}
	}
	if !e.try(e.Now(), &t) && e.strict.wait(ctx, t) != nil {
		for i := range t.hits {
			t.hits[i].Ticket, t.hits[i].Failed = 0, 0
		}
		e.strict.giveUp(e.Now(), &t)
	}
	c.Join()
	return c.Hits(), t.front.Rules(), nil
}

// NextKey returns the key of descriptor i of a decided call under the next
// secret, false without one or without a limit.
func (e *Engine) NextKey(c *node.Call, i int) (crdt.Key, bool) { return e.front.Load().NextKey(c, i) }

// Explain returns the state of the key of a hit, the peers as its shard knows
// them, and the time of windows in Unix milliseconds.
func (e *Engine) Explain(h *node.Hit) (out node.Explained, links []node.Link, now int64) {
	at := e.Now()
	e.in(node.ShardOf(h.Key, len(e.shards)), func(n *node.Node) {
		out, links, now = n.Explain(at, h), slices.Collect(n.Links(at)), n.Time(at).Millis()
	})
	return out, links, now
}

// Stamps returns the latest known clock reading of each peer and of this
// daemon.
func (e *Engine) Stamps() map[crdt.Incarnation]hlc.Timestamp {
	out := map[crdt.Incarnation]hlc.Timestamp{e.Incarnation(): e.Time(e.Now())}
	e.visit(func(_ int, n *node.Node) {
		for id, stamp := range n.Stamps() {
			out[id] = max(out[id], stamp)
		}
	})
	return out
}

// OriginalKey returns the key of the descriptor that counts under a key. It is
// another one if an operator reset it.
func (e *Engine) OriginalKey(k crdt.Key) crdt.Key { return e.front.Load().Original(k) }

// Hottest returns the keys with most requested or denied hits, shard by shard.
func (e *Engine) Hottest() []node.HotKey {
	var all []node.HotKey
	at := e.Now()
	e.visit(func(_ int, n *node.Node) { all = append(all, n.Hottest(at)...) })
	return all
}
