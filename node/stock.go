package node

import (
	"time"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// Prefetch is rights to a key that a daemon keeps although calls come too seldom for a
// batch: then most of them need not wait for the home. It is so small a part of what is
// left that hardly anybody is denied for it, and of fixed windows only: what buckets
// grant cannot be given back, and what a log or a sliding window has of rights that
// nobody used still counts for as long as a window.

const (
	// prefetchTick is the time that is looked at: a key that had several calls in it
	// will have another.
	prefetchTick = 5 * time.Second
	// prefetchPart says which part of what is left all holders keep together: one in
	// so many.
	prefetchPart = 64
)

// keepsPrefetch reports whether stock is kept of a limit.
func keepsPrefetch(l *rules.Limit) bool { return quota.Of(l).Resets() }

// came notes the hits of a call.
func (c *credit) came(mono time.Duration, hits uint64) {
	c.pace.add(mono, paceTick, hits)
	c.often.add(mono, prefetchTick, hits)
	c.latest = hits
}

// prefetch returns how many rights are worth keeping: as many as are used in prefetchTick, or in
// a window that is shorter, but for those of the call that asks, and no more than the
// configuration allows. Fewer than a call uses are of no use.
func (n *Node) prefetch(c *credit, l *rules.Limit) uint64 {
	if !keepsPrefetch(l) || n.desk.leaving {
		return 0
	}
	some := min(c.often.late(n.at.Mono, prefetchTick), 1<<32)
	if w, tick := uint64(l.Window()), uint64(prefetchTick.Milliseconds()); w < tick {
		some = some * w / tick
	}
	if some = min(some-min(some, c.latest), n.cfg.Strict.Prefetch); some < c.latest {
		return 0
	}
	return some
}

// kept returns how much of what is left is not given back while nobody uses it.
func (n *Node) kept(c *credit, l *rules.Limit) uint64 { return min(n.prefetch(c, l), c.keep) }
