package sim

import (
	"slices"
	"time"

	"github.com/georld/rld/gossip"
)

// raise is that a replica may have learned more of a writer by what another
// told it: at what time, by whom.
type raise struct {
	at time.Duration
	by int
}

// raises are those of one writer's counts at one replica. Those up to
// forgotten are not remembered.
type raises struct {
	all       []raise
	forgotten time.Duration
}

// maxRaises bounds what is remembered of them.
const maxRaises = 256

// raise follows of whom a message that somebody else sent may tell more than
// its receiver knew.
func (h *hearing) raise(b *books, to, from *writer, m *gossip.Message, now time.Duration) {
	for i := range m.Cells {
		c := &m.Cells[i]
		x := b.writers.byIncarnation[c.Incarnation]
		if c.Kind != gossip.Daemon || x == nil || x == from || x == to {
			continue
		}
		k := earKey{to.index, x.index, m.Shard}
		if !b.holds(c, x, h.direct(&b.writers, k.to, k.from, k.shard, now)) {
			r := h.raises[k]
			if r == nil {
				r = &raises{forgotten: unheard}
				h.raises[k] = r
			}
			r.add(raise{now, from.index})
		}
	}
}

func (r *raises) add(is raise) {
	n := len(r.all)
	if n > 0 && r.all[n-1] == is {
		return
	}
	if n == maxRaises {
		r.forgotten = r.all[n/2-1].at
		r.all = r.all[:copy(r.all, r.all[n/2:])]
	}
	r.all = append(r.all, is)
}

// holds reports whether who knows a writer up to a time surely has as much of a
// cell of it, for as long.
func (b *books) holds(c *gossip.Cell, x *writer, until time.Duration) bool {
	for _, domain := range [2]int{everybody, x.region} {
		k := b.ledger.byKey[bookKey{c.Key, domain}]
		if k == nil {
			continue
		}
		p := k.page(c.Window)
		if p == nil || c.Value.N > 0 || c.End(c.Window) > p.least {
			continue
		}
		if s := p.incarnation(x.index); s != nil && c.Value.P <= s.before(until) {
			return true
		}
	}
	return false
}

// between reports whether there was one from one time to another, by anybody but
// one.
func (r *raises) between(from, to time.Duration, but int) bool {
	if r == nil {
		return false
	}
	if from <= r.forgotten {
		return true
	}
	return slices.ContainsFunc(r.all, func(is raise) bool { return is.by != but && is.at >= from && is.at <= to })
}
