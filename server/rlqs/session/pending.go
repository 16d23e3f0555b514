package session

import (
	"slices"
	"time"

	"github.com/georld/rld/node"
)

// pending is an action that is decided and not sent. Its times are settled when
// it is sent: charges that were made after it may have waited.
type pending struct {
	bucket *bucket
	kind   Kind
	ttl    time.Duration // at most

	// The others belong to Tokens. receipt is that of the hits, unless extends
	// is set: then the latest assignment lasts longer.
	hits    uint64
	extends bool
	receipt node.Receipt
	end     time.Duration // the assignment may not end later, but see shortWindow
	window  time.Duration // Quota.Window
}

// settle makes the action of p that is sent now, and records it. ok is false if
// it came too late: then its hits are refunded.
func (s *Session) settle(now time.Duration, p *pending) (a Action, ok bool) {
	b := p.bucket
	a = Action{ID: b.id, Kind: p.kind, Hits: p.hits, TTL: p.ttl}
	switch {
	case p.kind == Abandon:
		return s.abandon(b), true
	case p.kind == Tokens && !s.settleTokens(now, p, &a):
		return a, false
	case !p.extends:
		b.serial++
		b.since = 0
	}
	a.Serial, b.kind, b.until = b.serial, p.kind, now+a.TTL
	if p.kind == Tokens {
		b.assigned[len(b.assigned)-1].until = b.until
		b.assigned[len(b.assigned)-1].serial = b.serial
	}
	return a, true
}

// settleTokens sets the time to live of an assignment that is sent now, and
// adds it to the bucket if it is a new one. It returns false if it is too late.
func (s *Session) settleTokens(now time.Duration, p *pending, a *Action) bool {
	b := p.bucket
	a.TTL = within(p.ttl, p.end-now, p.window)
	// One that may be over when its extension arrives is not extended: the
	// client would take that for another one, of as many tokens.
	if a.TTL < time.Second || p.extends && b.until-now < margin {
		b.renewAt = max(now+time.Millisecond, p.end)
		if p.extends || p.window == 0 {
			b.renewAt = now + time.Millisecond
		}
		s.refund(&p.receipt, p.hits)
		return false
	}
	if p.extends && now+a.TTL <= b.until {
		return false
	}
	b.renewAt = 0
	switch until := now + a.TTL; {
	case p.window > 0: // hits of the next one are assigned when it begins
		b.renewAt = max(now+time.Millisecond, p.end)
	case until < b.reported+s.interval:
		b.renewAt = until
	}
	if !p.extends {
		if len(b.assigned) == maxAssigned {
			b.assigned = slices.Delete(b.assigned, 0, 1) // its rest stays charged
		}
		b.assigned = append(b.assigned, assignment{hits: p.hits, receipt: p.receipt})
	}
	return true
}
