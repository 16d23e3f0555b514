package node

import (
	"time"

	"github.com/georld/rld/rules"
)

// Stock is rights to a key that a daemon keeps although calls come too seldom for a
// batch: then most of them need not wait for the home. It is of windows only, whose
// rights can be given back, and so small a part of what is left that hardly anybody
// is denied for it.

const (
	// stockTick is the time that is looked at: who was asked for a key twice in it
	// will be once more.
	stockTick = 5 * time.Second
	// stockPart says which part of what is left all holders keep together: one in
	// so many.
	stockPart = 64
)

// keepsStock reports whether stock is kept of a limit.
func keepsStock(l *rules.Limit) bool {
	return !l.Algorithm.Bucket() && l.Algorithm != rules.SlidingLog
}

// came notes hits.
func (c *credit) came(mono time.Duration, hits uint64) {
	c.pace.add(mono, paceTick, hits)
	c.often.add(mono, stockTick, hits)
}

// stock returns how many rights are worth keeping: as many as are used in stockTick, or in
// a window that is shorter, but for the one that asks, and no more than the configuration allows.
func (n *Node) stock(c *credit, l *rules.Limit) uint64 {
	if !keepsStock(l) {
		return 0
	}
	some := min(c.often.late(n.at.Mono, stockTick), 1<<32)
	if w, tick := uint64(l.Window()), uint64(stockTick.Milliseconds()); w < tick {
		some = some * w / tick
	}
	return min(some-min(some, 1), n.cfg.Strict.Stock)
}

// runsOut reports whether there was stock, and is none now.
func (c *credit) runsOut(l *rules.Limit, now int64) bool { return c.stocked && c.left(l, now) == 0 }

// kept returns how much of what is left is not given back while nobody uses it.
func (n *Node) kept(c *credit, l *rules.Limit) uint64 {
	return min(n.stock(c, l), c.report.Remaining/stockPart)
}

// giveUpStock gives back what a ledger keeps and nobody has used for long.
func (n *Node) giveUpStock(led *ledger) {
	c := &led.credit
	if n.now >= c.until || c.from == nil || c.often.late(n.at.Mono, stockTick) > 0 {
		return
	}
	if r := n.set.Find(led.id); led.isOf(r) && c.left(r.Limit, n.now) > 0 {
		n.giveBack(led, r.Limit, n.now, 0)
	}
}
