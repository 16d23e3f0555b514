package node

import (
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/transfer"
	"github.com/georld/rld/rules"
)

// TransferStats counts what a node gave and was given.
type TransferStats struct {
	// Given and Received are hits, Messages what was said to that end.
	Given, Received, Messages uint64
}

// trades reports whether rights under a limit are given away: those of windows.
// A bucket fills by itself, and a log's rights would each have a time of their
// own.
func (n *Node) trades(l *rules.Limit) bool {
	return !n.cfg.Ablation.NoTransfers && (quota.Of(l).Windowed())
}

// deal is one key of which rights are asked or given.
type deal struct {
	h      Hit
	row    *row
	base   quota.Allotment
	window int64
	left   uint64 // rights
}

// deal takes stock of a row.
func (n *Node) deal(h *Hit, r *row, now int64) deal {
	d := deal{h: *h, row: r, base: n.base(h.Rule, now)}
	d.left = r.Left(h.Limit, d.base, now)
	d.window = r.Window
	return d
}

func kindOf(r *rules.Rule) transfer.Kind {
	if r.Entity {
		return transfer.Entity
	}
	return transfer.Aggregate
}

// offer takes in that hits were offered to a key near its limit, and asks others
// for rights when they will run out. estimate is what all are taken to have
// admitted.
func (n *Node) offer(h *Hit, r *row, now int64, estimate uint64) {
	ms := n.at.Mono.Milliseconds()
	r.rates.Offer(ms, h.N)
	if !n.trades(h.Limit) {
		return
	}
	d := n.deal(h, r, now)
	admitted := r.Used - min(r.Used, r.gave())
	w := transfer.Need{
		Kind: kindOf(h.Rule), Recent: r.rates.Recent(ms), Rights: d.left, Held: sat.Add(d.left, admitted),
		Limit: uint64(h.Limit.Requests), Estimate: estimate,
	}
	mine := n.replica.engine.Aggregates(h.Key)
	if mine {
		n.look(&d, now, estimate)
	}
	if !w.Asks() {
		return
	}
	n.ask(&d, w, ms)
	if !mine && ms-r.told >= toldMS {
		r.told = ms
		n.say(n.replica.engine.Aggregator(h.Key), n.note(&d, gossip.NeedReport))
	}
}

// toldMS is the least time between two words to an aggregator that a daemon runs
// short: it hears the counts besides.
const toldMS = 2 * transfer.TickMS

// look has an aggregator look at its region, which may be hungry long before
// this daemon is.
func (n *Node) look(d *deal, now int64, estimate uint64) {
	ms := n.at.Mono.Milliseconds()
	if ms-d.row.looked >= lookMS || ms < d.row.looked {
		d.row.looked = ms
		n.publish(d, now, estimate)
	}
}

// heard looks at the region when a sibling told of its counts.
func (n *Node) heard(e *entry, rule *rules.Rule, now int64) {
	r := n.extras.row(e.extra)
	if r == nil || rule == nil || r.grid != rule.Limit.Grid() || !n.replica.engine.Aggregates(e.key) {
		return
	}
	h := Hit{Key: e.key, Limit: rule.Limit, Rule: rule}
	if !n.bounded(&h) || !n.trades(h.Limit) {
		return
	}
	d := n.deal(&h, r, now)
	at := ref{where: inLive, index: n.live.find(e.key)}
	n.look(&d, now, sat.Add(quota.Of(h.Limit).Used(&e.cell, nil, now), n.elsewhere(&h, &e.cell, at)))
}

// lookMS is the least time between two looks of an aggregator at its region: one
// costs a few microseconds, which every refused hit of a flood would cost.
const lookMS = 10

// note begins a note about a deal.
func (n *Node) note(d *deal, k gossip.RightsMessageKind) gossip.RightsMessage {
	return gossip.RightsMessage{
		Kind: k, Key: d.h.Key, Window: d.window, Rule: SharedRule(d.h.Rule),
		Rights: d.left, Second: d.row.rates.Second(n.at.Mono.Milliseconds()),
	}
}

func (n *Node) say(to crdt.Incarnation, note gossip.RightsMessage) {
	if n.replica.engine.Send(to, note) {
		n.trade.Messages++
	}
}

// ask asks the sibling that is believed to have most.
func (n *Node) ask(d *deal, w transfer.Need, ms int64) {
	if d.row.asker == nil {
		d.row.asker = new(transfer.Requester)
	}
	if !d.row.asker.Ready(ms, w) {
		return
	}
	all := n.regionalPeers(d)
	known := n.replica.asked[:0]
	for i := range all {
		if s := &all[i]; !s.Silent {
			known = append(known, transfer.Peer{ID: uint64(s.ID), Held: n.heldBy(d, s), Used: s.Used})
		}
	}
	n.replica.asked = known
	if to, ok := d.row.asker.Pick(ms, w, uint64(n.incarnation), known); ok {
		n.say(crdt.Incarnation(to), n.note(d, gossip.TransferRequest))
	}
}

// RegionalPeers returns what is known of the other daemons of the region, until the
// next call.
func (n *Node) regionalPeers(d *deal) []gossip.RegionalPeer {
	n.replica.RegionalPeers = n.replica.engine.RegionalPeers(n.replica.RegionalPeers[:0], d.h.Key, d.window)
	return n.replica.RegionalPeers
}

// heldBy is what a sibling is believed to have had of a label in all.
func (n *Node) heldBy(d *deal, s *gossip.RegionalPeer) uint64 {
	l := d.h.Limit
	x, carry := quota.Of(l).RightsWindow(d.window)
	base := n.cfg.Allotments.PartOf(s.Name, SharedRule(d.h.Rule), l.Total(), x, carry, l.Scope == rules.Region)
	held := sat.Add(base, s.Received)
	return held - min(held, s.Given)
}

// hear takes in what a peer says about rights.
func (n *Node) hear(from crdt.Incarnation, notes []gossip.RightsMessage, now int64) {
	for i := range notes[:min(len(notes), gossip.MaxRightsMessages)] {
		note := &notes[i]
		d, ok := n.dealOf(note, now)
		switch {
		case !ok:
		case note.Kind == gossip.TransferRequest:
			n.answer(from, note, &d, now)
		case note.Kind == gossip.TransferRefusal && d.row.asker != nil:
			d.row.asker.Answer(n.at.Mono.Milliseconds(), uint64(from), 0)
		case note.Kind == gossip.NeedReport && n.replica.engine.Aggregates(note.Key):
			n.wanted(from, note, &d, now)
		case note.Kind == gossip.ShortageNotice && n.replica.engine.Aggregates(note.Key):
			n.feed(from, note, &d, now)
		case note.Kind == gossip.CollectRequest:
			n.give(&d, note.For, transfer.Honor(note.Need, n.own(d.row, d.h.Limit, d.left, now)), now)
		}
	}
}

// dealOf finds the row that a note is about, and makes it: who has no traffic has
// most to give. It is not ok for a rule that is not in force here, a label that
// is not that of now, and where there is no room for the key.
func (n *Node) dealOf(note *gossip.RightsMessage, now int64) (deal, bool) {
	rule := n.replica.shared[note.Rule]
	if rule == nil {
		return deal{}, false
	}
	h := Hit{Key: note.Key, Limit: rule.Limit, Rule: rule}
	x, _ := quota.Of(h.Limit).RightsWindow(now)
	if !n.bounded(&h) || !n.trades(h.Limit) || x != note.Window || !n.owns(note.Key) {
		return deal{}, false
	}
	at := ref{where: inLive, index: n.live.find(note.Key)}
	if at.index >= 0 {
		if r := n.extras.row(n.live.at(at.index).extra); r != nil && r.grid != h.Limit.Grid() {
			return deal{}, false // the key counts under another rule
		}
	}
	if at.index < 0 {
		if n.promised = 0; !n.roomFor(now) {
			return deal{}, false
		}
		at = n.learn(&h, now)
	}
	r := n.rowOf(&h, at, now)
	if r == nil {
		return deal{}, false
	}
	return n.deal(&h, r, now), true
}

// answer gives a sibling that asks what it should get, or says that this is
// nothing.
func (n *Node) answer(from crdt.Incarnation, note *gossip.RightsMessage, d *deal, now int64) {
	o := n.own(d.row, d.h.Limit, d.left, now)
	gift := d.row.giver.Give(n.at.Mono.Milliseconds(), o, transfer.Ask{Rights: note.Rights, Second: note.Second})
	if !n.give(d, from, gift, now) {
		n.say(from, n.note(d, gossip.TransferRefusal))
	}
}

// give charges rights to our own row and gives them to another daemon. It
// returns false when nothing was given.
func (n *Node) give(d *deal, to crdt.Incarnation, hits uint64, now int64) bool {
	if hits = min(hits, d.left); hits == 0 {
		return false
	}
	span := n.span(&d.h)
	if !n.replica.engine.Give(n.at.Mono, d.h.Key, d.window, span, to, hits) {
		return false
	}
	r := d.row
	if r.given != d.window {
		r.given, r.out = d.window, 0
	}
	r.out = sat.Add(r.out, hits)
	r.Spend(d.h.Limit, d.base, now, hits)
	d.left -= hits
	n.trade.Given += hits
	// The entry must not be forgotten before what it gave is over.
	if i := n.live.find(d.h.Key); i >= 0 {
		n.live.at(i).keepUntil(span.End(d.window))
	}
	return true
}

// span is that of a window's label.
func (n *Node) span(h *Hit) gossip.CellMeta {
	_, carry := quota.Of(h.Limit).RightsWindow(n.now)
	return gossip.CellMeta{
		Rule: SharedRule(h.Rule), WindowLength: h.Limit.Window(), Carry: carry, Regional: h.Limit.Scope == rules.Region,
	}
}

// received takes in a gift.
func (n *Node) received(c *gossip.Change, now int64) {
	n.trade.Received += c.Transfer
	i := n.live.find(c.Key)
	if i < 0 {
		return // the row will be made from the cells
	}
	e := n.live.at(i)
	e.keepUntil(c.Span.End(c.Window))
	r, rule := n.extras.row(e.extra), n.replica.shared[c.Span.Rule]
	if r == nil || rule == nil {
		return
	}
	h := Hit{Key: c.Key, Limit: rule.Limit, Rule: rule}
	if r.grid != rule.Limit.Grid() {
		return // as if of another rule
	}
	d := n.deal(&h, r, now)
	r.Return(rule.Limit, c.Window, c.Transfer)
	ms := n.at.Mono.Milliseconds()
	if r.asker != nil {
		r.asker.Answer(ms, uint64(c.From), c.Transfer)
	}
	if c.Window == d.window && !n.replica.engine.Local(c.From) {
		n.spread(&d, c.Transfer, now)
	}
}

// spread hands what another region gave on to those of the own that run short,
// by what they are offered.
func (n *Node) spread(d *deal, gift uint64, now int64) {
	ms := n.at.Mono.Milliseconds()
	d.left = d.row.Left(d.h.Limit, d.base, now)
	d.row.fresh(ms)
	rates := []uint64{d.row.rates.Second(ms)}
	for _, w := range d.row.wants {
		rates = append(rates, w.second)
	}
	out := make([]uint64, len(rates))
	transfer.Split(gift, rates, out)
	for i, w := range d.row.wants {
		n.give(d, w.of, out[i+1], now)
	}
}

// wantMS is how long it is remembered that a daemon runs short.
const wantMS = 1_000

// fresh forgets those who ran short a while ago.
func (r *row) fresh(ms int64) {
	kept := r.wants[:0]
	for _, w := range r.wants {
		if ms-w.at < wantMS {
			kept = append(kept, w)
		}
	}
	r.wants = kept
}

// delayOf is the one-way delay of a round trip, as far as it is known.
func delayOf(rtt time.Duration) int64 { return max(0, rtt.Milliseconds()) / 2 }
