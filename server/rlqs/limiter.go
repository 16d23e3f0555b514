package rlqs

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server"
	"github.com/georld/rld/server/rlqs/session"
)

// limiter charges the hits of one stream. Its calls wait for the owners of
// strict keys.
type limiter struct {
	engine Engine
	shadow bool // of all rules
	ctx    context.Context
	domain string
}

var _ session.Limiter = (*limiter)(nil)

// Look is part of session.Limiter.
func (l *limiter) Look(id session.ID) (q session.Quota, err error) {
	c := server.NewCall()
	defer server.FreeCall(c)
	c.Peek = true
	if err := l.check(c, id, 1); err != nil {
		return q, err
	}
	st := &c.Statuses[0]
	if st.Limit == nil {
		return session.Quota{Unlimited: true}, nil
	}
	q.Shadow = l.shadow || st.Limit.Shadow
	q.Limit, _ = server.Quota(st.Limit)
	q.Ends, q.Window = window(st, time.Now())
	q.Span = span(st.Limit)
	switch {
	case st.Over && !st.Never:
		q.Retry = max(st.Retry, time.Millisecond)
	case !st.Over:
		q.Remaining = max(st.Remaining, 1)
	}
	return q, nil
}

// Take is part of session.Limiter.
func (l *limiter) Take(id session.ID, n uint64) (taken bool, r node.Receipt, ends time.Duration, err error) {
	c := server.NewCall()
	defer server.FreeCall(c)
	c.Refundable = true
	if err := l.check(c, id, n); err != nil {
		return false, r, 0, err
	}
	ends, _ = window(&c.Statuses[0], time.Now())
	if c.Decision.Allowed {
		r = c.Receipts[0]
	}
	return c.Decision.Allowed, r, ends, nil
}

// Refund is part of session.Limiter.
func (l *limiter) Refund(r *node.Receipt, n uint64) { l.engine.Refund(r, n) }

// check decides n hits of a bucket.
func (l *limiter) check(c *node.Call, id session.ID, n uint64) error {
	entries := slices.Clone(id)
	if d := l.engine.Rules().Domain(l.domain); d != nil {
		d.Arrange(entries)
	}
	c.Domain = l.domain
	c.Descriptors = append(c.Descriptors, rules.Descriptor{Entries: entries, Hits: n})
	return l.engine.Check(l.ctx, c)
}

// window returns the time until the window ends that hits are counted in, and
// its length; 0 for logs and buckets.
func window(st *node.Status, now time.Time) (ends, length time.Duration) {
	if st.Limit == nil || !quota.Of(st.Limit).Windowed() {
		return 0, 0
	}
	length = time.Duration(st.Limit.Window()) * time.Millisecond
	reset := st.Reset
	if reset <= 0 || reset == math.MaxInt64 { // an empty sliding window, a debt without end
		reset = length - time.Duration(now.UnixMilli()%st.Limit.Window())*time.Millisecond
	}
	// What weighs or is owed in later windows lasts until the end of one.
	if ends = reset % length; ends == 0 {
		ends = length
	}
	return max(ends, time.Millisecond), length
}

// span returns the time in which the whole of a log or of a bucket comes back,
// 0 for windows.
func span(l *rules.Limit) time.Duration {
	f := quota.Of(l)
	switch {
	case f.Windowed():
		return 0
	case f.Drains():
		return max(time.Millisecond, millis(f.RefillTime()))
	}
	return millis(l.Window())
}

// millis converts milliseconds, of which a bucket may need too many.
func millis(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
