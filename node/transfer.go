package node

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/keytable"
	"github.com/georld/rld/quota/transfer"
	"github.com/georld/rld/rules"
)

// TransferStats counts the transfers of a node.
type TransferStats struct {
	// Given and Received are hits.
	Given, Received uint64
}

// transferable reports whether rights under a limit are transferred: those of
// windows. A bucket fills by itself, and each right of a log would have its own
// time.
func transferable(c *Config, l *rules.Limit) bool {
	return !c.Ablation.NoTransfers && quota.Of(l).Windowed()
}

// transferCall is one call to the transfers of a key.
type transferCall struct {
	hit       Hit
	account   *account
	allotment quota.Allotment
	in        transfer.Input
}

// transferCall reads the state of an account for its transfers.
func (n *Node) transferCall(h *Hit, a *account, now int64) transferCall {
	l, eng := h.Limit, n.replica.engine
	c := transferCall{hit: *h, account: a, allotment: n.gate.allotment(&n.rules, h.Rule, now)}
	rights := a.Left(l, c.allotment, now) // moves the account to the window of now
	v := &n.replica.view
	v.engine, v.allotments, v.hit, v.window = eng, n.cfg.Allotments, c.hit, a.Window
	c.in = transfer.Input{
		Now: n.at.Mono.Milliseconds(), Window: a.Window, ElapsedMS: now - a.Window,
		Policy:   transfer.Policy{Entity: h.Rule.Entity, Budget: l.Budget, WindowMS: l.Window()},
		Regional: l.Scope != 0, Limit: uint64(l.Requests), Rights: rights, Used: a.Used,
		Self: n.incarnation, Aggregator: eng.Aggregator(h.Key), Region: n.cfg.Region, View: v,
	}
	return c
}

// transferView is the view of one key and window that transfers decide by.
type transferView struct {
	engine     *gossip.Engine
	allotments Allotments
	hit        Hit
	window     int64
	known      []gossip.RegionalPeer
	peers      []transfer.Peer
	regions    []gossip.RemoteRegion
}

// Peers returns the other daemons of the region.
func (v *transferView) Peers() []transfer.Peer {
	l := v.hit.Limit
	x, carry := quota.Of(l).RightsWindow(v.window)
	v.known, v.peers = gossip.RegionalPeers(v.engine, v.known[:0], v.hit.Key, v.window), v.peers[:0]
	for i := range v.known {
		p := &v.known[i]
		held := v.allotments.PartOf(p.Name, v.hit.Rule.Shared(), l.Total(), x, carry, l.Scope == rules.Region)
		held = sat.Add(held, p.Received)
		v.peers = append(v.peers, transfer.Peer{
			ID: p.ID, Held: held - min(held, p.Given), Used: p.Used, Rate: p.Rate, Silent: p.Silent,
		})
	}
	return v.peers
}

// Regions returns the other regions.
func (v *transferView) Regions() []gossip.RemoteRegion {
	v.regions = gossip.RemoteRegions(v.engine, v.regions[:0], v.hit.Key, v.window)
	return v.regions
}

// Allotment returns the rights that a region starts the window with.
func (v *transferView) Allotment(region string) uint64 {
	x, carry := quota.Of(v.hit.Limit).RightsWindow(v.window)
	return v.allotments.RegionPart(region, v.hit.Rule.Shared(), v.hit.Limit.Total(), x, carry)
}

// offer counts hits offered to a key near its limit, and requests rights if
// they are about to run short. estimate is the estimated hits of all daemons.
func (n *Node) offer(h *Hit, a *account, now int64, estimate uint64) {
	a.transfers.Offer(n.at.Mono.Milliseconds(), h.N)
	if !transferable(&n.cfg, h.Limit) {
		return
	}
	c := n.transferCall(h, a, now)
	c.in.Estimate = believable(n, &c, estimate)
	n.transfer(&c, a.transfers.Check(&c.in), 0, now)
}

// review lets the aggregator of a key check whether its region runs short,
// after counts of another daemon arrived.
func review(n *Node, e *keytable.Entry, rule *rules.Rule, now int64) {
	a := n.keys.sides.account(e.Extra)
	if a == nil || rule == nil || a.grid != rule.Limit.Grid() || !n.replica.engine.Aggregates(e.Key) {
		return
	}
	h := Hit{Key: e.Key, Limit: rule.Limit, Rule: rule}
	if !n.bounded(&h) || !transferable(&n.cfg, h.Limit) {
		return
	}
	c := n.transferCall(&h, a, now)
	c.in.Estimate = believable(n, &c, estimate(n, &h, e, now))
	n.transfer(&c, a.transfers.Review(&c.in), 0, now)
}

// estimate returns the estimated hits of all daemons on a key.
func estimate(n *Node, h *Hit, e *keytable.Entry, now int64) uint64 {
	at := ref{where: inLive, entry: e}
	elsewhere, _ := n.elsewhere(h, &e.Cell, at)
	return sat.Add(quota.Of(h.Limit).Used(&e.Cell, nil, now), elsewhere)
}

// stepRights handles the rights messages of a peer.
func (n *Node) stepRights(from crdt.Incarnation, messages []gossip.RightsMessage, now int64) {
	sender := n.replica.sender(from)
	for i := range messages[:min(len(messages), gossip.MaxRightsMessages)] {
		m := &messages[i]
		c, e := transferCallOf(n, m, now)
		if e == nil {
			continue
		}
		if m.Kind == gossip.NeedReport {
			c.in.Estimate = believable(n, &c, estimate(n, &c.hit, e, now))
		}
		n.transfer(&c, c.account.transfers.Step(&c.in, sender, m), from, now)
	}
}

// sender describes the daemon that rights or messages come from.
func (r *replica) sender(id crdt.Incarnation) transfer.Sender {
	return transfer.Sender{ID: id, Remote: !r.engine.Local(id), RTT: r.engine.RTT(id)}
}

// transferCallOf finds the account that a message is about and its entry, and
// makes both if there are none: a daemon without traffic has most rights to
// transfer. The entry is nil for a rule that is not in force here, for another
// window than the current one or a shortage of the next one, and without room
// for the key.
func transferCallOf(n *Node, m *gossip.RightsMessage, now int64) (transferCall, *keytable.Entry) {
	rule := n.rules.set.FindShared(m.Rule)
	if rule == nil {
		return transferCall{}, nil
	}
	h := Hit{Key: m.Key, Limit: rule.Limit, Rule: rule}
	x, _ := quota.Of(h.Limit).RightsWindow(now)
	ahead := m.Kind == gossip.ShortageNotice && m.Window == sat.AddInt(x, h.Limit.Window())
	if !n.bounded(&h) || !transferable(&n.cfg, h.Limit) || x != m.Window && !ahead || !n.keys.owns(m.Key) {
		return transferCall{}, nil
	}
	at := ref{where: inLive, entry: n.keys.live.Find(m.Key)}
	if at.entry != nil {
		if a := n.keys.sides.account(at.entry.Extra); a != nil && a.grid != h.Limit.Grid() {
			return transferCall{}, nil // the key counts under another rule
		}
	}
	if at.entry == nil {
		if n.keys.promised = 0; !n.keys.roomFor(int32(rule.Index), now) {
			return transferCall{}, nil
		}
		at = n.learn(&h, now)
	}
	a := n.accountOf(&h, at, now)
	if a == nil {
		return transferCall{}, nil
	}
	return n.transferCall(&h, a, now), at.entry
}

// keepWindows is for how many windows without hits a key is kept whose
// transfers remember something.
const keepWindows = 8

// transfer makes transfers and sends messages. from is the daemon of the
// message that caused them, 0 for none.
func (n *Node) transfer(c *transferCall, out transfer.Output, from crdt.Incarnation, now int64) {
	for _, t := range out.Transfers {
		if !n.give(c, t.To, t.Hits, now) && t.Reply {
			out.Messages = append(out.Messages, transfer.Message{
				To: from, RightsMessage: c.account.transfers.Refusal(&c.in),
			})
		}
	}
	if e := n.keys.live.Find(c.hit.Key); out.Keep && e != nil {
		e.KeepUntil(now + keepWindows*c.hit.Limit.Window())
	}
	if out.Wake > 0 {
		n.wakes.add(keyWake{out.Wake, c.hit.Key, c.hit.Rule.Shared()})
	}
	for i := range out.Messages {
		m := &out.Messages[i]
		m.Key, m.Rule = c.hit.Key, c.hit.Rule.Shared()
		n.replica.engine.Send(m.To, m.RightsMessage)
	}
}

// give charges rights to the account of this daemon and transfers them to
// another one. It returns false if it transferred nothing.
func (n *Node) give(c *transferCall, to crdt.Incarnation, hits uint64, now int64) bool {
	if hits = min(hits, c.in.Rights); hits == 0 || n.gate.closed {
		return false
	}
	l := c.hit.Limit
	_, carry := quota.Of(l).RightsWindow(n.now)
	meta := gossip.CellMeta{
		Rule: c.hit.Rule.Shared(), WindowLength: l.Window(), Carry: carry, Regional: l.Scope == rules.Region,
	}
	if !n.replica.engine.Give(n.at.Mono, c.hit.Key, c.in.Window, meta, to, hits) {
		return false
	}
	c.account.transfers.Transferred(c.in.Window, hits)
	c.account.Spend(l, c.allotment, now, hits)
	c.in.Rights -= hits
	n.transfers.Given += hits
	// The entry must outlive the transferred rights.
	if e := n.keys.live.Find(c.hit.Key); e != nil {
		e.KeepUntil(meta.End(c.in.Window))
	}
	return true
}

// MaxLastTransfers bounds the keys whose rights a process transfers when it
// leaves: the cells that its peers take within a fraction of a second.
const MaxLastTransfers = 1 << 16

// TransferAll transfers the unused rights of windows that have begun to other
// daemons of the region: those of each key to its aggregator, which receives
// the requests of the others. It is the last transfer of a process that leaves:
// call it after Leave and after the last decision. It transfers the rights of
// at most most keys, those near their limits first, and returns the number of
// keys. It visits every key.
func (n *Node) TransferAll(at Instant, most int) (keys int) {
	now := n.millis(at)
	if n.replica == nil || n.cfg.Allotments == nil {
		return 0
	}
	for _, near := range [...]bool{true, false} {
		for e := range n.keys.live.All {
			switch {
			case keys >= most:
				return keys
			case e.Rule < 0 || e.Expires() <= now || n.keys.sides.account(e.Extra) != nil != near:
			case transferAll(n, e, ref{where: inLive, entry: e}, now):
				keys++
			}
		}
	}
	return keys
}

// transferAll transfers the unused rights to a key, and reports whether there
// were any.
func transferAll(n *Node, e *keytable.Entry, at ref, now int64) bool {
	rule := n.rules.set.Rules()[e.Rule]
	h := Hit{Key: e.Key, Limit: rule.Limit, Rule: rule}
	if rule.Limit == nil || !n.bounded(&h) || !transferable(&n.cfg, h.Limit) {
		return false
	}
	a := n.accountOf(&h, at, now)
	if a == nil || a.grid != h.Limit.Grid() {
		return false
	}
	c := n.transferCall(&h, a, now)
	to := c.in.Aggregator
	return to != 0 && to != n.incarnation && n.give(&c, to, c.in.Rights, now)
}

// received adds rights that another daemon transferred to this one.
func (n *Node) received(c *gossip.Change, now int64) {
	n.transfers.Received += c.Transfer
	e := n.keys.live.Find(c.Key)
	if e == nil {
		return // a later account starts from the cells
	}
	e.KeepUntil(c.Span.End(c.Window))
	a, rule := n.keys.sides.account(e.Extra), n.rules.set.FindShared(c.Span.Rule)
	if a == nil || rule == nil || a.grid != rule.Limit.Grid() {
		return
	}
	h := Hit{Key: c.Key, Limit: rule.Limit, Rule: rule}
	call := n.transferCall(&h, a, now)
	a.Return(rule.Limit, c.Window, c.Transfer)
	call.in.Rights, call.in.Used = a.Left(h.Limit, call.allotment, now), a.Used
	n.transfer(&call, a.transfers.Received(&call.in, n.replica.sender(c.From), c.Window, c.Transfer), 0, now)
}
