package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// known returns the hits that all daemons are known to have counted under a
// key, by window. The result is valid until the next call.
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
func (r *replica) follow(k *keys, e *entry, h *Hit, now int64) {
	if e.rule < 0 {
		r.refold(k, e, h.Limit, now)
	}
	f := quota.Of(h.Limit)
	if !f.Windowed() || !f.Rolled(&e.cell, now) || !r.engine.Has(h.Key) {
		return
	}
	f.Roll(&e.cell, now)
	f.Relearn(&e.cell, nil, now, r.known(h.Key))
	e.keepUntil(f.Expires(&e.cell))
}

// refold raises an entry to the hits that arrived while its rule was not in
// force here.
func (r *replica) refold(k *keys, e *entry, l *rules.Limit, now int64) {
	if f := quota.Of(l); !e.inherited() && r.engine.Has(e.key) {
		f.Relearn(&e.cell, k.logOf(e, f), now, r.known(e.key))
	}
}

// refoldAll refolds all entries of rules in force.
func (r *replica) refoldAll(k *keys, set *rules.Set, now int64) {
	for i := range k.live.used {
		e := k.live.at(i)
		if e.rule < 0 {
			continue
		}
		l := set.Rules()[e.rule].Limit
		r.refold(k, e, l, now)
		if quota.Of(l).Weighted() { // the limit may have been a fixed window before
			r.engine.Keep(e.key, l.Window())
			if a := k.sides.account(e.extra); a != nil {
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
