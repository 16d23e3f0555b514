package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// known returns the hits that all daemons are known to have counted under a key,
// by window. The result is valid until the next call.
func (r *replica) known(k crdt.Key) []quota.Known {
	all := r.counts[:0]
	r.engine.Windows(k, func(window, end int64, hits uint64) {
		all = append(all, quota.Known{Window: window, End: end, Hits: hits})
	})
	r.counts = all
	return all
}

// follow moves the cell of a window to the window of now, with the replicated
// hits of that window.
func (n *Node) follow(e *entry, h *Hit, now int64) {
	if e.rule < 0 {
		n.refold(e, h.Limit, now)
	}
	f := quota.Of(h.Limit)
	if !f.Windowed() || !f.Rolled(&e.cell, now) || !n.replica.engine.Has(h.Key) {
		return
	}
	f.Roll(&e.cell, now)
	f.Relearn(&e.cell, nil, now, n.replica.known(h.Key))
	e.keepUntil(f.Expires(&e.cell))
}

// refold raises an entry to the hits that arrived while its rule was not in
// force here.
func (n *Node) refold(e *entry, l *rules.Limit, now int64) {
	if f := quota.Of(l); !e.inherited() && n.replica.engine.Has(e.key) {
		f.Relearn(&e.cell, n.keys.logOf(e, f), now, n.replica.known(e.key))
	}
}

// refoldAll refolds all entries of rules in force.
func (n *Node) refoldAll(now int64) {
	for i := range n.keys.live.used {
		e := n.keys.live.at(i)
		if e.rule < 0 {
			continue
		}
		l := n.rules.set.Rules()[e.rule].Limit
		n.refold(e, l, now)
		if quota.Of(l).Weighted() { // the limit may have been a fixed window before
			n.replica.engine.Keep(e.key, l.Window())
			if a := n.keys.sides.account(e.extra); a != nil {
				e.keepUntil(a.Window + 2*l.Window())
			}
		}
		e.keepUntil(quota.Of(l).Expires(&e.cell))
	}
}

// learn makes an entry for a key that other daemons counted, and this one did
// not, or only in an overflow counter.
func (n *Node) learn(h *Hit, now int64) ref {
	i := n.keys.live.insert(h.Key)
	e, f := n.keys.live.at(i), quota.Of(h.Limit)
	if from := n.keys.locateNew(h, 0, now); from.where == heir {
		n.keys.inherit(e, n.keys.overflow.at(from.from), n.at.Mono.Milliseconds())
	}
	e.rule = n.rules.counted(h.Rule, h.Limit)
	known := n.replica.known(h.Key)
	f.Learn(&e.cell, n.keys.logOf(e, f), now, known)
	until := max(now+1, f.Expires(&e.cell))
	for _, k := range known {
		until = max(until, k.End)
	}
	e.keepUntil(until)
	return ref{where: inLive, index: i}
}
