package session

import (
	"math"
	"time"
)

// renew decides the next action for a bucket. It is without a bucket for none.
func (s *Session) renew(b *bucket) (p pending, err error) {
	if b.idle >= idleReports {
		b.renewAt = 0
		if s.clock() < b.until || len(b.assigned) > 0 {
			return p, nil // it expires, and its rest comes back
		}
		return pending{bucket: b, kind: Abandon}, nil
	}
	q, err := s.limiter.Look(b.id)
	if err != nil {
		return p, err
	}
	if q.Unlimited || q.Shadow {
		if q.Unlimited {
			b.unassigned = 0
		} else if err := s.charge(b, math.MaxUint64); err != nil {
			return p, err
		}
		return s.blanket(b, AllowAll, maxTTL), nil
	}
	if b.unassigned > 0 {
		if err := s.charge(b, q.Remaining); err != nil {
			return p, err
		}
		if q, err = s.limiter.Look(b.id); err != nil {
			return p, err
		}
	}
	now := s.clock()
	ttl := s.ttl(&q)
	if q.Window > 0 {
		if ttl = within(ttl, q.Ends, q.Window); ttl < time.Second { // less than a second is left
			b.renewAt = now + max(q.Ends, time.Millisecond)
			return p, nil
		}
	}
	need := b.need(ttl, q.Limit)
	// At most half of what remains: other clients need hits, too.
	n := min(need, (q.Remaining+1)/2)
	if left := b.left(now); left > 0 && left >= min((need+1)/2, n) {
		switch {
		case q.Window > 0 && b.until-now >= margin:
			return s.extend(now, b, ttl, &q), nil
		case q.Window == 0 && (left > n || b.until-now >= s.interval+time.Second):
			b.renewAt = b.until // it is enough until then, or more than there is
			return p, nil
		}
	}
	if b.idle > 0 && b.latest() == nil && b.kind == Abandon {
		return p, nil // nothing asks for hits
	}
	return s.assign(b, n, &q)
}

// ttl returns the time to live of an assignment, but for the end of a window.
//
// Hits of a log or a bucket come back from the time of their charge on, used or
// not, and are charged again for others. So an assignment of them lives for a
// small part of the time in which the whole limit comes back, or for an
// interval if that is more; never for longer than that time, but for a second.
func (s *Session) ttl(q *Quota) time.Duration {
	ttl := max(minTTL, (ttlIntervals * s.interval).Truncate(time.Second))
	if q.Span == 0 {
		return ttl
	}
	return min(ttl, ceil(min(q.Span, max(q.Span/spanPart, s.interval+time.Second))))
}

// within returns a time to live that is over in some time, with a window of a
// length or without windows. It is less than a second if less is left.
func within(ttl, ends, window time.Duration) time.Duration {
	if window > 0 && window < shortWindow && ends > 0 {
		return min(ttl, ceil(ends))
	}
	return min(ttl, ends.Truncate(time.Second))
}

// ceil rounds up to whole seconds, at least one.
func ceil(d time.Duration) time.Duration {
	d = min(d, math.MaxInt64-time.Second)
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}

// extend makes the latest assignment last longer, with the tokens that are left
// of it, unless it lasts long enough. It is for windows only: their hits come
// back when they end, and not before.
func (s *Session) extend(now time.Duration, b *bucket, ttl time.Duration, q *Quota) (p pending) {
	l := b.latest()
	if b.until-now > ttl-s.interval/2 || now+ttl <= l.until {
		return p
	}
	return pending{bucket: b, kind: Tokens, extends: true, hits: l.hits, ttl: ttl, end: now + q.Ends, window: q.Window}
}

// assign charges n hits, or fewer if they do not fit, and assigns them. It
// denies all requests if none fits.
func (s *Session) assign(b *bucket, n uint64, q *Quota) (p pending, err error) {
	for range tries {
		if n == 0 {
			break
		}
		start := s.clock()
		taken, receipt, ends, err := s.limiter.Take(b.id, n)
		if err != nil {
			return p, err
		}
		if !taken {
			n /= 2
			continue
		}
		p = pending{bucket: b, kind: Tokens, hits: n, receipt: receipt, ttl: s.ttl(q), window: q.Window}
		if q.Window > 0 {
			p.end = start + ends
		} else {
			p.end = s.clock() + p.ttl + actTime
		}
		return p, nil
	}
	if now := s.clock(); b.left(now) > 0 { // it ends by itself
		b.renewAt = b.until
		return p, nil
	}
	deny := maxTTL
	if q.Retry > 0 {
		deny = min(deny, ceil(q.Retry))
	}
	p = s.blanket(b, DenyAll, deny)
	if q.Retry > 0 {
		b.renewAt = s.clock() + max(q.Retry, time.Second)
	}
	return p, nil
}

// blanket assigns a rule for all requests, unless the client has it for long
// enough.
func (s *Session) blanket(b *bucket, k Kind, ttl time.Duration) (p pending) {
	b.renewAt = 0
	if b.kind == k && b.until >= s.clock()+min(ttl, 2*s.interval) {
		return p
	}
	return pending{bucket: b, kind: k, ttl: ttl}
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
