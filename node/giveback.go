package node

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// sayAgain is how often what was given back is said once more, prefetchTick apart, unless the key
// is asked for: nobody answers it.
const sayAgain = 2

// tidyAfter is for how long nobody must have used rights before some are given back that
// fewer hits than before have use for.
const tidyAfter = time.Second

// giveBack returns what is left of the credit, but for what is kept, to the home,
// where that can make use of it. What another home granted can only be used here.
func (n *Node) giveBack(led *ledger, l *rules.Limit, now int64, keep uint64) {
	c := &led.credit
	owner, _ := n.ownerOf(led.key, led.id, regional(l, led.reserve))
	if quota.Of(l).Drains() || owner.Incarnation == 0 {
		return
	}
	sum := uint64(0)
	for i := range c.from {
		sum = sat.Add(sum, c.from[i].total-c.from[i].returned)
	}
	left := sum - min(sum, sat.Add(sat.Add(c.used, c.reserved), keep))
	for i := range c.from {
		from := &c.from[i]
		if from.owner != owner.Incarnation {
			continue
		}
		back := min(left, from.total-from.returned)
		if back == 0 {
			return
		}
		from.returned += back
		c.unsure, c.said = sayAgain, n.at.Mono
		n.desk.counts.Returned += back
		n.sayReturned(led, from.owner, from.returned)
	}
}

// sayReturned tells a home what it was given back in all.
func (n *Node) sayReturned(led *ledger, to crdt.Incarnation, sum uint64) {
	m := n.send(to)
	m.Requests = append(m.Requests, sticky.LeaseRequest{
		Lessee: n.incarnation, Owner: to, Key: led.key, Rule: led.shared, Reserve: led.reserve,
		Window: led.credit.window, Returned: sum,
	})
}

// tidy gives back what a ledger keeps and hardly anybody uses, and says again what it gave back.
// The sweep calls it for ledgers that wait for nothing.
func (n *Node) tidy(led *ledger) {
	c := &led.credit
	if n.now >= c.until || len(c.from) == 0 || n.at.Mono-c.touched < tidyAfter {
		return
	}
	r := n.rules.set.Find(led.id)
	if !led.isOf(r) {
		return
	}
	if keep := n.kept(c, r.Limit); c.left(r.Limit, n.now) > keep {
		n.giveBack(led, r.Limit, n.now, keep)
		return
	}
	if c.unsure == 0 || n.at.Mono-c.said < prefetchTick {
		return
	}
	c.unsure, c.said = c.unsure-1, n.at.Mono
	for i := range c.from {
		if from := &c.from[i]; from.returned > 0 {
			n.sayReturned(led, from.owner, from.returned)
		}
	}
}

// giveAllBack returns what is left of all credit: the daemon leaves.
func (n *Node) giveAllBack(now int64) {
	for _, led := range n.desk.all {
		if r := n.rules.set.Find(led.id); led.isOf(r) && led.credit.left(r.Limit, now) > 0 {
			n.giveBack(led, r.Limit, now, 0)
		}
	}
}
