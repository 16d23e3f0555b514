package node

import (
	"slices"
	"time"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/sat"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// bank is what a home knows of a key: what was consumed, how much more a majority
// lets it consume, and to whom it gave rights. Rights are consumed when they are
// given.
type bank struct {
	row      quota.Account
	window   int64 // of windows: that row is of
	keeper   quorum.Proposer
	others   sticky.Watermarks // that row counts as consumed, beside what it spent
	raised   time.Duration     // when the raise in flight began, monotonic
	took     time.Duration     // how long the last one took
	taken    bool              // a majority has answered: row holds all that others consumed
	reserved uint64            // within marks, set aside for calls of this daemon
	holders  []holder
	queue    []queued
	pace     pace
}

// holder is a daemon that was given rights.
type holder struct {
	of              crdt.Incarnation
	asked           uint64 // ID of the latest ask
	window, until   int64  // that the amounts are of, and until when they are used
	total, returned uint64
	at              time.Duration // when it asked last
}

// queued is an ask that waits for marks.
type queued struct {
	ask sticky.LeaseRequest
	at  time.Duration
}

// The bounds of a bank.
const (
	maxQueued  = 1_024
	maxHolders = 4_096
	// queuedFor is how long an ask waits for marks; its holder waits no longer.
	queuedFor = 500 * time.Millisecond
	// chunkFor is for how long marks should be ahead of what is consumed.
	chunkFor = 50 * time.Millisecond
	// aheadFor is how long ago the last hit may be for marks to be raised ahead.
	aheadFor = 200 * time.Millisecond
	// grantedFor is for how long grants of logs and buckets can be used at least,
	// in milliseconds.
	grantedFor = 100
)

// over reports whether nothing that the bank knows matters any more.
func (b *bank) over(now int64) bool {
	if len(b.queue) > 0 || b.keeper.Busy() {
		return false
	}
	for _, m := range b.keeper.Held() {
		if now < m.End {
			return false
		}
	}
	// Its sums must not begin anew while a holder still adds to them.
	return !slices.ContainsFunc(b.holders, func(h holder) bool { return now < h.until+ledgerKept })
}

// usableUntil returns until when rights that are granted now can be used, in Unix
// milliseconds, when they must be for as long as within.
func usableUntil(l *rules.Limit, now, within int64) int64 {
	step := quota.Of(l).WatermarkStep()
	switch {
	case quota.Of(l).Stamped():
	case quota.Of(l).Drains():
		if step = quota.Of(l).Step(); l.Requests == 0 {
			step = grantedFor // it has no rights now, and may soon
		}
	default:
		return now - now%l.Window() + l.Window()
	}
	at := now + max(within, grantedFor)
	return at - at%step + step
}

// creditWindow names the label of grants: of windows their own.
func creditWindow(l *rules.Limit, now, until int64) int64 {
	if !quota.Of(l).Windowed() {
		return until
	}
	return now - now%l.Window()
}

// stampOf returns when hits count that may be used until an instant.
func stampOf(l *rules.Limit, now, until int64) int64 {
	if quota.Of(l).Stamped() && until > now {
		return until - 1
	}
	return now
}

// rowUntil returns the row that rights are given from which may be used until an
// instant: where that is more than a step of a bucket away, with as much in use as the
// bucket mints meanwhile.
func (b *bank) rowUntil(l *rules.Limit, now, until int64) quota.Account {
	return b.row.Held(l, now, until-now-quota.Of(l).Step())
}

// left is what is not consumed of the limit, less what is set aside.
func (b *bank) left(l *rules.Limit, now, until int64) uint64 {
	if !quota.Of(l).Drains() {
		left := b.row.Left(l, quota.Of(l).Full(), now)
		return left - min(left, b.reserved)
	}
	row := b.rowUntil(l, now, until)
	left := row.Left(l, quota.Of(l).Full(), now)
	return left - min(left, b.reserved)
}

// room is what may be consumed without another raise, of rights that may be used
// until an instant.
func (b *bank) room(l *rules.Limit, now, until int64) uint64 {
	row, at := &b.row, stampOf(l, now, until)
	if quota.Of(l).Drains() {
		held := b.rowUntil(l, now, until)
		row = &held
	}
	room := row.Room(l, now, at, b.marked(row.Watermark(l, now, at, 0).Window))
	return room - min(room, b.reserved)
}

// marked is what a majority holds of a label.
func (b *bank) marked(window int64) uint64 {
	for _, m := range b.keeper.Held() {
		if m.Window == window {
			return m.Amount
		}
	}
	return 0
}

// spend consumes hits that count at at.
func (b *bank) spend(l *rules.Limit, now, at int64, n uint64, mono time.Duration) {
	b.row.SpendAt(l, now, at, n)
	b.pace.add(mono, paceTick, n)
}

// headroom is how many hits marks should be ahead of what is consumed.
func (n *Node) headroom(b *bank, l *rules.Limit) uint64 {
	limit := quota.Of(l).Capacity()
	most := max(n.cfg.Strict.Headroom, limit/20)
	fast := b.pace.within(n.at.Mono, chunkFor)
	if quota.Of(l).Stamped() {
		return min(most, fast) // each of its steps has marks of its own
	}
	return min(most, max(fast, min(n.cfg.Strict.Headroom, limit/50)))
}

// bankOf returns the bank of a ledger, which is made when there is none.
func (n *Node) bankOf(led *ledger) *bank {
	if led.bank == nil {
		n.desk.banks++
		led.bank = &bank{keeper: quorum.Proposer{Term: n.desk.banks}}
		if n.desk.byTerm == nil {
			n.desk.byTerm = map[uint64]*ledger{}
		}
		n.desk.byTerm[n.desk.banks] = led
	}
	return led.bank
}

// closeBank forgets the bank of a ledger. What was consumed the replicas know.
func (n *Node) closeBank(led *ledger) {
	if led.bank != nil {
		delete(n.desk.byTerm, led.bank.keeper.Term)
		led.bank = nil
	}
}

// serveBank answers what waits for a bank as far as its marks reach, in order, and has
// them raised where they do not.
func (n *Node) serveBank(led *ledger, r *rules.Rule, v *route.Routing, now int64) {
	l, b := n.termsOf(r, led.reserve, now), led.bank
	if l == nil {
		for i := range b.queue {
			n.refuseAsk(&b.queue[i].ask, sticky.UnknownRule)
		}
		b.queue = b.queue[:0]
		return
	}
	if !led.mayRaise(v) {
		n.dismiss(led, sticky.NotOwner)
		return
	}
	b.roll(l, now)
	local := n.serveWaiters(led, l, now)
	far, until := n.serveQueue(led, l, now)
	if v.Live() < v.Majority() {
		n.dismiss(led, sticky.NoMajority)
		return
	}
	n.raise(led, l, v, now, local, far, until)
}

// dismiss answers all that wait for marks which cannot be raised here.
func (n *Node) dismiss(led *ledger, why sticky.Reason) {
	b := led.bank
	for i := range b.queue {
		n.refuseAsk(&b.queue[i].ask, why)
	}
	clear(b.queue)
	b.queue = b.queue[:0]
	for i := range led.waiters {
		if w := &led.waiters[i]; w.state == stillWaiting {
			w.state = unanswered
			n.desk.answered = append(n.desk.answered, w.ticket)
		}
	}
}

// serveWaiters sets hits aside for calls of this daemon and returns how many lack
// marks.
func (n *Node) serveWaiters(led *ledger, l *rules.Limit, now int64) (lack uint64) {
	b := led.bank
	for i := range led.waiters {
		w := &led.waiters[i]
		if w.state != stillWaiting {
			continue
		}
		left, room := b.left(l, now, now), b.room(l, now, now)
		switch {
		case b.taken && w.hits > left:
			w.state, w.report = denied, b.row.Report(l, now, w.hits)
		case b.taken && w.hits <= room:
			w.state, w.banked, w.window = granted, true, b.row.Watermark(l, now, now, 0).Window
			b.reserved += w.hits
			w.report = b.row.Report(l, now, 0)
		default:
			lack = sat.Add(lack, w.hits)
			continue
		}
		n.desk.answered = append(n.desk.answered, w.ticket)
	}
	return lack
}

// serveQueue answers asks and returns how many hits those lack marks for that are
// left, and until when those may be used.
func (n *Node) serveQueue(led *ledger, l *rules.Limit, now int64) (lack uint64, until int64) {
	b := led.bank
	kept := b.queue[:0]
	for i := range b.queue {
		q := b.queue[i]
		if n.at.Mono-q.at > queuedFor {
			n.refuseAsk(&q.ask, sticky.NoMajority)
			continue
		}
		ends := usableUntil(l, now, min(int64(q.ask.Within), maxWithin.Milliseconds()))
		if h := b.holder(q.ask.Lessee, now); h != nil && (!quota.Of(l).Windowed()) {
			ends = max(ends, h.window) // it holds rights until then
		}
		if missing, ok := n.answerAsk(led, l, &q.ask, now, ends); !ok {
			lack, until = sat.Add(lack, missing), max(until, ends)
			kept = append(kept, q)
		}
	}
	clear(b.queue[len(kept):])
	b.queue = kept
	return lack, until
}

// answerAsk answers an ask, unless it lacks marks: how many it then returns.
func (n *Node) answerAsk(led *ledger, l *rules.Limit, a *sticky.LeaseRequest, now, until int64) (lack uint64, ok bool) {
	b := led.bank
	window := creditWindow(l, now, until)
	if a.Window != window && quota.Of(l).Windowed() {
		n.refuseAsk(a, sticky.WindowOver)
		return 0, true
	}
	h := b.holder(a.Lessee, now)
	if h == nil {
		n.refuseAsk(a, sticky.Full)
		return 0, true
	}
	left, room := b.left(l, now, until), b.room(l, now, until)
	give := min(a.Want, left)
	switch {
	case !b.taken:
		return a.Want, false
	case window < h.window: // the clock went back
		n.refuseAsk(a, sticky.WindowOver)
		return 0, true
	case a.Want > 0 && give < max(a.Need, 1):
		give = 0
	case give > room:
		return give, false
	}
	short := give < a.Want
	if !short {
		give += min(b.beyond(a, left-give, n.at.Mono), room-give)
	}
	total := uint64(0)
	switch {
	case h.window < window && give > 0:
		h.window, h.until, h.total, h.returned = window, until, 0, 0
	case h.window == window:
		total = h.total
	}
	if give == 0 && now < h.until { // what the holder has goes on
		window, until, total = h.window, h.until, h.total
	}
	if give > 0 && quota.Of(l).Drains() {
		b.row = b.rowUntil(l, now, until)
	}
	b.spend(l, now, stampOf(l, now, until), give, n.at.Mono)
	if total += give; give > 0 {
		h.total = total
	}
	n.desk.counts.Granted += give
	rep := b.row.Report(l, now, max(a.Need, 1))
	n.reply(led, a, sticky.LeaseGrant{
		Window: window, Until: until, Total: total, Denied: short,
		Never: short && rep.Never, Retry: rep.Retry, Remaining: b.left(l, now, until), Reset: rep.Reset,
		Keep: b.keep(left-give, n.at.Mono),
	})
	return 0, true
}

// holder returns the entry of a daemon, nil when there are too many.
func (b *bank) holder(of crdt.Incarnation, now int64) *holder {
	for i := range b.holders {
		if b.holders[i].of == of {
			return &b.holders[i]
		}
	}
	if len(b.holders) == maxHolders {
		b.holders = slices.DeleteFunc(b.holders, func(h holder) bool { return now >= h.until+ledgerKept })
	}
	if len(b.holders) == maxHolders {
		return nil
	}
	b.holders = append(b.holders, holder{of: of})
	return &b.holders[len(b.holders)-1]
}

// asking is how many daemons asked in a time that ends now, at least one.
func (b *bank) asking(mono, within time.Duration) uint64 {
	some := uint64(0)
	for i := range b.holders {
		if mono-b.holders[i].at < within {
			some++
		}
	}
	return max(some, 1)
}

// beyond is how many rights of those that are left a holder gets beyond what it
// needs now.
func (b *bank) beyond(a *sticky.LeaseRequest, left uint64, mono time.Duration) uint64 {
	return max(min(a.Extra, left/(2*b.asking(mono, time.Second))), min(a.Prefetch, b.keep(left, mono)))
}

// keep is how many rights each holder may keep of those that are left.
func (b *bank) keep(left uint64, mono time.Duration) uint64 {
	return left / (prefetchPart * b.asking(mono, 2*prefetchTick))
}

// reply answers an ask.
func (n *Node) reply(led *ledger, a *sticky.LeaseRequest, g sticky.LeaseGrant) {
	g.ID, g.Owner, g.Key, g.Rule, g.Reserve = a.ID, n.incarnation, a.Key, a.Rule, a.Reserve
	g.Round = led.bank.keeper.Ballot().Round
	if g.Denied {
		n.desk.counts.Denials++
	} else {
		n.desk.counts.Grants++
	}
	m := n.send(a.Lessee)
	m.Grants = append(m.Grants, g)
}

// refuseAsk says why an ask is not answered.
func (n *Node) refuseAsk(a *sticky.LeaseRequest, why sticky.Reason) {
	n.desk.counts.Refused[why]++
	if a.ID == 0 {
		return
	}
	m := n.send(a.Lessee)
	m.Grants = append(m.Grants, sticky.LeaseGrant{
		ID: a.ID, Owner: n.incarnation, Key: a.Key, Rule: a.Rule, Reserve: a.Reserve, Reason: why,
	})
}
