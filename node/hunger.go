package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/transfer"
)

// What aggregators say and do for their regions.

// maxWants bounds the daemons of a region that are remembered to run short.
const maxWants = 64

// wanted takes in that a daemon of the region runs short of rights.
func (n *Node) wanted(from crdt.Incarnation, note *gossip.RightsMessage, d *deal, now int64) {
	r, ms := d.row, n.at.Mono.Milliseconds()
	r.fresh(ms)
	at := -1
	for i := range r.wants {
		if r.wants[i].of == from {
			at = i
		}
	}
	w := want{of: from, second: note.Second, at: ms}
	switch {
	case at >= 0:
		r.wants[at] = w
	case len(r.wants) < maxWants:
		r.wants = append(r.wants, w)
	}
	i := n.live.find(d.h.Key)
	if i < 0 {
		return
	}
	cell := &n.live.at(i).cell
	used := quota.Of(d.h.Limit).Used(cell, nil, now)
	n.publish(d, now, sat.Add(used, n.elsewhere(&d.h, cell, ref{where: inLive, index: i})))
}

// terms are those between this region and one that is so far away.
func (n *Node) terms(d *deal, delayMS int64) transfer.Policy {
	return transfer.Policy{
		Kind: kindOf(d.h.Rule), Budget: transfer.Budget(d.h.Limit.Budget), WindowMS: d.h.Limit.Window(), DelayMS: delayMS,
	}
}

// region sums up what is known of our own region. rows are those of its daemons,
// this one first, and of whom the others are.
func (n *Node) region(d *deal, now int64) (all transfer.Region, rows []transfer.DonorState, of []crdt.Incarnation) {
	ms := n.at.Mono.Milliseconds()
	x, carry := quota.Of(d.h.Limit).RightsWindow(d.window)
	all.Allotment = n.cfg.Allotments.RegionPart(n.cfg.Region, SharedRule(d.h.Rule), d.h.Limit.Total(), x, carry)
	own := n.own(d.row, d.h.Limit, d.left, now)
	d.row.fresh(ms)
	rows, of = append(rows, own), append(of, n.incarnation)
	all.Available, all.Offered = own.Rights, transfer.Rate(own.Recent, own.Second)
	for _, s := range n.regionalPeers(d) {
		held := n.heldBy(d, &s)
		row := transfer.DonorState{Rights: held - min(held, s.Used), Recent: s.Rate / 5, Second: s.Rate}
		for _, w := range d.row.wants {
			if w.of == s.ID {
				row.Second = max(row.Second, w.second)
			}
		}
		all.Offered = sat.Add(all.Offered, row.Second)
		if s.Silent {
			continue // it may have spent all
		}
		all.Available = sat.Add(all.Available, row.Rights)
		rows, of = append(rows, row), append(of, s.ID)
	}
	return all, rows, of
}

// publish tells the other regions that ours will run out of rights.
func (n *Node) publish(d *deal, now int64, estimate uint64) {
	if d.h.Limit.Scope != 0 {
		return
	}
	n.replica.remoteRegions = n.replica.engine.RemoteRegions(n.replica.remoteRegions[:0], d.h.Key, d.window)
	abroad, delay := n.replica.remoteRegions, int64(0)
	for i := range abroad {
		if !abroad[i].Silent {
			delay = max(delay, delayOf(abroad[i].RTT))
		}
	}
	all, _, _ := n.region(d, now)
	limit := uint64(d.h.Limit.Requests)
	need, ok := d.row.hunger.Publish(n.at.Mono.Milliseconds(), n.terms(d, delay),
		d.window+d.h.Limit.Window()-now, all, limit-min(limit, estimate))
	if !ok {
		return
	}
	note := n.note(d, gossip.ShortageNotice)
	note.Need = need
	for i := range abroad {
		if a := &abroad[i]; !a.Silent && a.Aggregator != 0 {
			n.say(a.Aggregator, note)
		}
	}
}

// feed gives a hungry region what ours can do without.
func (n *Node) feed(from crdt.Incarnation, note *gossip.RightsMessage, d *deal, now int64) {
	if d.h.Limit.Scope != 0 || n.replica.engine.Local(from) {
		return
	}
	t := n.terms(d, delayOf(n.replica.engine.RTT(from)))
	left := d.window + d.h.Limit.Window() - now
	all, rows, of := n.region(d, now)
	spare, others := t.Spare(left, all), uint64(0)
	n.replica.remoteRegions = n.replica.engine.RemoteRegions(n.replica.remoteRegions[:0], d.h.Key, d.window)
	x, carry := quota.Of(d.h.Limit).RightsWindow(d.window)
	for _, a := range n.replica.remoteRegions {
		if a.Aggregator == from || a.Silent {
			continue
		}
		base := n.cfg.Allotments.RegionPart(a.Region, SharedRule(d.h.Rule), d.h.Limit.Total(), x, carry)
		others = sat.Add(others, t.Spare(left, transfer.Region{
			Allotment: base, Available: base - min(base, a.Used), Offered: a.Rate,
		}))
	}
	gift := t.Transfer(note.Need, all, spare, others)
	out := make([]uint64, len(rows))
	transfer.Collect(gift, rows, out)
	n.give(d, from, out[0], now)
	for i := 1; i < len(rows); i++ {
		if out[i] > 0 {
			c := n.note(d, gossip.CollectRequest)
			c.Need, c.For = out[i], from
			n.say(of[i], c)
		}
	}
}
