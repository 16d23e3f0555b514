package session

import (
	"math"
	"slices"
	"time"
)

// renew returns the next action for a bucket, if there is one.
func (s *Session) renew(now time.Duration, b *bucket) (a Action, some bool, err error) {
	if b.idle >= idleReports {
		b.renewAt = 0
		if now < b.until || len(b.assigned) > 0 {
			return a, false, nil // it expires, and its rest comes back
		}
		return s.abandon(b), true, nil
	}
	q, err := s.limiter.Look(b.id)
	if err != nil {
		return a, false, err
	}
	if q.Unlimited || q.Shadow {
		if q.Unlimited {
			b.unassigned = 0
		} else if err := s.charge(b, math.MaxUint64); err != nil {
			return a, false, err
		}
		return s.blanket(now, b, AllowAll, maxTTL)
	}
	if b.unassigned > 0 {
		if err := s.charge(b, q.Remaining); err != nil {
			return a, false, err
		}
		if q, err = s.limiter.Look(b.id); err != nil {
			return a, false, err
		}
	}
	ttl, wait := s.ttl(&q)
	if wait > 0 { // less than a second is left of the window
		b.renewAt = now + wait
		return a, false, nil
	}
	need := b.need(ttl, q.Limit)
	// At most half of what remains: other clients need hits, too.
	n := min(need, (q.Remaining+1)/2)
	left := b.left(now)
	// One that may be over when its extension arrives is not extended: the
	// client would take that for another one, of as many tokens.
	if left > 0 && left >= min((need+1)/2, n) && b.until-now >= margin {
		return s.extend(now, b, ttl, &q)
	}
	if b.idle > 0 && b.latest() == nil && b.kind == Abandon {
		return a, false, nil // nothing asks for hits
	}
	return s.assign(now, b, n, ttl, &q)
}

// ttl returns the time to live of an assignment that is charged now, or how
// long to wait before there can be one.
func (s *Session) ttl(q *Quota) (ttl, wait time.Duration) {
	ttl = max(minTTL, (ttlIntervals * s.interval).Truncate(time.Second))
	switch {
	case q.Window == 0 || q.Ends >= ttl:
	case q.Window < shortWindow:
		ttl = ceil(q.Ends)
	case q.Ends < time.Second:
		return 0, max(q.Ends, time.Millisecond)
	default:
		ttl = q.Ends.Truncate(time.Second)
	}
	return ttl, 0
}

// ceil rounds up to whole seconds, at least one.
func ceil(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// extend makes the latest assignment last longer, with the tokens that are left
// of it, unless it lasts long enough.
func (s *Session) extend(now time.Duration, b *bucket, ttl time.Duration, q *Quota) (a Action, some bool, err error) {
	l := b.latest()
	if b.until-now > ttl-s.interval/2 || now+ttl <= l.until {
		return a, false, nil
	}
	l.until, b.until = now+ttl, now+ttl
	s.setRenewal(now, b, q)
	return Action{ID: b.id, Kind: Tokens, Hits: l.hits, Serial: b.serial, TTL: ttl}, true, nil
}

// setRenewal has a bucket renewed when its fixed window ends.
func (s *Session) setRenewal(now time.Duration, b *bucket, q *Quota) {
	b.renewAt = 0
	if q.Window > 0 {
		b.renewAt = now + max(q.Ends, time.Millisecond)
	}
}

// assign charges n hits, or fewer if they do not fit, and assigns them. It
// denies all requests if none fits.
func (s *Session) assign(now time.Duration, b *bucket, n uint64, ttl time.Duration, q *Quota) (Action, bool, error) {
	for range tries {
		if n == 0 {
			break
		}
		taken, receipt, ends, err := s.limiter.Take(b.id, n)
		if err != nil {
			return Action{}, false, err
		}
		if !taken {
			n /= 2
			continue
		}
		if q.Window > 0 && ends > q.Ends { // a window began between Look and Take
			q.Ends = ends
		}
		b.serial++
		if len(b.assigned) == maxAssigned {
			b.assigned = slices.Delete(b.assigned, 0, 1) // its rest stays charged
		}
		b.assigned = append(b.assigned, assignment{hits: n, serial: b.serial, until: now + ttl, receipt: receipt})
		b.kind, b.until, b.since = Tokens, now+ttl, 0
		s.setRenewal(now, b, q)
		return Action{ID: b.id, Kind: Tokens, Hits: n, Serial: b.serial, TTL: ttl}, true, nil
	}
	deny := maxTTL
	if q.Retry > 0 {
		deny = min(deny, ceil(q.Retry))
	}
	a, some, err := s.blanket(now, b, DenyAll, deny)
	if q.Retry > 0 {
		b.renewAt = now + max(q.Retry, time.Second)
	}
	return a, some, err
}

// blanket assigns a rule for all requests, unless the client has it for long
// enough.
func (s *Session) blanket(now time.Duration, b *bucket, k Kind, ttl time.Duration) (a Action, some bool, err error) {
	b.renewAt = 0
	if b.kind == k && b.until >= now+min(ttl, 2*s.interval) {
		return a, false, nil
	}
	b.serial++
	b.kind, b.until, b.since = k, now+ttl, 0
	return Action{ID: b.id, Kind: k, Serial: b.serial, TTL: ttl}, true, nil
}

// charge charges the hits that the client allowed without an assignment, as far
// as they fit.
func (s *Session) charge(b *bucket, most uint64) error {
	n := min(b.unassigned, most)
	b.unassigned = 0
	for range tries {
		if n == 0 {
			return nil
		}
		taken, _, _, err := s.limiter.Take(b.id, n)
		if err != nil || taken {
			return err
		}
		n /= 2
	}
	return nil
}
