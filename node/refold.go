package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
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
func (r *replica) follow(k *keys, e *keytable.Entry, h *Hit, now int64) {
	if e.Rule < 0 {
		r.refold(k, e, h.Limit, now)
		r.lookBack(k, e, h.Limit)
	}
	f := quota.Of(h.Limit)
	if !f.Windowed() || !f.Rolled(&e.Cell, now) || !r.engine.Has(h.Key) {
		return
	}
	f.Roll(&e.Cell, now)
	f.Relearn(&e.Cell, nil, now, r.known(h.Key))
	e.KeepUntil(f.Expires(&e.Cell))
}

// refold sets an entry to the replicated hits, some of which may have arrived
// while its rule was not in force here. Hits of a limit of this daemon alone
// are not among them, though others may replicate the key under other rules.
func (r *replica) refold(k *keys, e *keytable.Entry, l *rules.Limit, now int64) {
	if f := quota.Of(l); replicated(l) && !e.Inherited() && r.engine.Has(e.Key) {
		f.Relearn(&e.Cell, k.logOf(e, f), now, r.known(e.Key))
	}
}

// refoldAll refolds all entries of rules in force.
func (r *replica) refoldAll(k *keys, set *rules.Set, now int64) {
	for e := range k.live.All {
		if e.Rule < 0 {
			continue
		}
		l := set.Rules()[e.Rule].Limit
		r.refold(k, e, l, now)
		r.lookBack(k, e, l)
		e.KeepUntil(quota.Of(l).Expires(&e.Cell))
	}
}

// lookBack keeps hits for a window longer where a limit weighs those of the
// window before: they may have been counted under a fixed window.
func (r *replica) lookBack(k *keys, e *keytable.Entry, l *rules.Limit) {
	if !quota.Of(l).Weighted() {
		return
	}
	r.engine.Keep(e.Key, l.Window())
	if a := k.sides.account(e.Extra); a != nil {
		e.KeepUntil(a.Window + 2*l.Window())
	}
}

// learn makes an entry for a key that other daemons counted, and this one did
// not, or only in an overflow counter.
func (n *Node) learn(h *Hit, now int64) ref {
	e, f := n.keys.insert(h.Key), quota.Of(h.Limit)
	if from := n.keys.locateNew(h, 0, now); from.where == heir {
		n.keys.inherit(e, from.entry, n.at.Mono.Milliseconds())
	}
	n.keys.assign(e, n.rules.counted(n.rules.index(h.Rule), h.Limit))
	known := n.replica.known(h.Key)
	f.Learn(&e.Cell, n.keys.logOf(e, f), now, known)
	until := max(now+1, f.Expires(&e.Cell))
	for _, k := range known {
		until = max(until, k.End)
	}
	n.keys.keep(e, until)
	return ref{where: inLive, entry: e}
}
