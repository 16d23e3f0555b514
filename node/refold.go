package node

import (
	"cmp"
	"slices"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// follow moves a window's cell to the window of now, with what others are
// known to have counted in it already.
func (n *Node) follow(e *entry, h *Hit, now int64) {
	l := h.Limit
	if e.rule < 0 {
		n.refold(e, l, now)
	}
	if !quota.Of(l).Windowed() || !quota.Of(l).Rolled(&e.cell, now) {
		return
	}
	eng := n.replica.engine
	if !eng.Has(h.Key) {
		return
	}
	quota.Of(l).Roll(&e.cell, now)
	e.cell.Count = max(e.cell.Count, eng.Total(h.Key, e.cell.Window))
	e.cell.Prev = max(e.cell.Prev, eng.Total(h.Key, e.cell.Window-l.Window()))
	e.keepUntil(quota.Of(l).Expires(&e.cell))
}

// refold brings an entry up to what was heard while its rule was not in force
// here. A bucket's is not: when its hits came is not known any more.
func (n *Node) refold(e *entry, l *rules.Limit, now int64) {
	eng := n.replica.engine
	switch {
	case quota.Of(l).Drains() || e.inherited() || !eng.Has(e.key):
	case quota.Of(l).Stamped():
		if e.extra < 0 {
			e.extra = n.extras.take()
		}
		log := n.extras.log(e.extra)
		log.Release()
		e.cell = quota.Cell{}
		eng.Windows(e.key, func(window, _ int64, hits uint64) {
			quota.Of(l).Merge(&e.cell, log, now, window, hits)
		})
	default:
		e.cell.Count = max(e.cell.Count, eng.Total(e.key, e.cell.Window))
		e.cell.Prev = max(e.cell.Prev, eng.Total(e.key, e.cell.Window-l.Window()))
	}
}

// refoldAll does so for all entries of rules in force.
func (n *Node) refoldAll(now int64) {
	for i := range n.live.used {
		if e := n.live.at(i); e.rule >= 0 {
			l := n.set.Rules()[e.rule].Limit
			n.refold(e, l, now)
			if quota.Of(l).Weighted() { // it may have been a fixed one
				n.replica.engine.Keep(e.key, l.Window())
				if r := n.extras.account(e.extra); r != nil {
					e.keepUntil(r.Window + 2*l.Window())
				}
			}
			e.keepUntil(quota.Of(l).Expires(&e.cell))
		}
	}
}

// learn makes an entry for a key that others counted and this node did not, or
// only in an overflow counter.
func (n *Node) learn(h *Hit, now int64) ref {
	i := n.live.insert(h.Key)
	e := n.live.at(i)
	if from := n.locateNew(h, 0, now); from.where == heir {
		n.inherit(e, n.overflow.at(from.from))
	}
	l, eng := h.Limit, n.replica.engine
	if i := n.ruleIndex(h.Rule); i >= 0 && sameGrid(n.set.Rules()[i].Limit, l) {
		e.rule = i
	}
	switch {
	case quota.Of(l).Stamped():
		if e.extra < 0 {
			e.extra = n.extras.take()
		}
		eng.Windows(h.Key, func(window, _ int64, hits uint64) {
			quota.Of(l).Merge(&e.cell, n.extras.log(e.extra), now, window, hits)
		})
	case quota.Of(l).Drains():
		n.learnBucket(h.Key, l, e, now)
	default:
		quota.Of(l).Roll(&e.cell, now)
		e.cell.Count = sat.Add(e.cell.Count, eng.Total(h.Key, e.cell.Window))
		e.cell.Prev = sat.Add(e.cell.Prev, eng.Total(h.Key, e.cell.Window-l.Window()))
		if over := e.cell.Prev; l.CarryDebt && over > uint64(l.Requests) {
			e.cell.Carry = max(e.cell.Carry, over-uint64(l.Requests))
		}
	}
	until := max(now+1, quota.Of(l).Expires(&e.cell))
	eng.Windows(h.Key, func(_, end int64, _ uint64) { until = max(until, end) })
	e.keepUntil(until)
	return ref{where: inLive, index: i}
}

// learnBucket folds the labels of a bucket in their order.
func (n *Node) learnBucket(k crdt.Key, l *rules.Limit, e *entry, now int64) {
	type part struct {
		window, end int64
		hits        uint64
	}
	var parts []part
	n.replica.engine.Windows(k, func(window, end int64, hits uint64) {
		parts = append(parts, part{window, end, hits})
	})
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.window, b.window) })
	_, width, carry := quota.Of(l).Shared(&e.cell, now)
	for _, p := range parts {
		if p.end-carry <= p.window {
			p.end = p.window + width + carry
		}
		quota.Of(l).Replay(&e.cell, now, p.window, p.end-carry, p.hits)
	}
}
