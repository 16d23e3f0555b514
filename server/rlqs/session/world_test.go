package session

import (
	"fmt"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// world is the limits that all clients of a test share: a limiter that counts
// in fixed windows, or without windows, and the time.
type world struct {
	now    time.Duration
	limits map[string]*fakeLimit // by the text of an ID
	taken  []taken
}

// fakeLimit is the limit of a bucket.
type fakeLimit struct {
	requests uint64
	window   time.Duration // 0 for a limit that never comes back
	shadow   bool
	used     map[time.Duration]uint64
}

// taken is a charge, by the number of its receipt.
type taken struct {
	id     string
	window time.Duration
	hits   uint64
	back   uint64
}

func (w *world) at(l *fakeLimit) time.Duration { return w.windowOf(l, w.now) }

// windowOf returns the start of the window of a time.
func (w *world) windowOf(l *fakeLimit, t time.Duration) time.Duration {
	if l.window == 0 {
		return 0
	}
	return t - t%l.window
}

func (w *world) Look(id ID) (Quota, error) {
	l := w.limits[id.text()]
	if l == nil {
		return Quota{Unlimited: true}, nil
	}
	used := l.used[w.at(l)]
	q := Quota{Shadow: l.shadow, Limit: l.requests, Remaining: l.requests - min(used, l.requests)}
	if l.window > 0 {
		q.Window, q.Ends = l.window, w.at(l)+l.window-w.now
	}
	if q.Remaining == 0 && l.requests > 0 {
		q.Retry = q.Ends
	}
	return q, nil
}

func (w *world) Take(id ID, n uint64) (bool, node.Receipt, time.Duration, error) {
	q, _ := w.Look(id)
	if n > q.Remaining && !q.Shadow {
		return false, node.Receipt{}, q.Ends, nil
	}
	l := w.limits[id.text()]
	l.used[w.at(l)] += n
	w.taken = append(w.taken, taken{id: id.text(), window: w.at(l), hits: n})
	return true, node.Receipt{Number: uint64(len(w.taken)), Window: w.at(l).Milliseconds(), Hits: n}, q.Ends, nil
}

func (w *world) Refund(r *node.Receipt, n uint64) {
	t := &w.taken[r.Number-1]
	if t.back > 0 || n > t.hits {
		panic(fmt.Sprintf("refund of %d hits of %+v", n, t))
	}
	t.back = n
	l := w.limits[t.id]
	l.used[t.window] -= n
}

// client is a client as Envoy is one: it admits by its assignment, and denies
// without one.
type client struct {
	session *Session
	buckets map[string]*held
}

// held is a bucket of a client.
type held struct {
	id     ID
	action Action
	left   uint64 // tokens
	until  time.Duration
	sent   time.Duration // when the action was sent
	report Usage
	last   time.Duration // of the last report
}

func newClient(w *world) *client { return &client{New(w), map[string]*held{}} }

// request admits or denies one request, and reports whether it is the first of
// its bucket, which has to be reported at once.
func (c *client) request(now time.Duration, id ID) (admitted, first bool) {
	h := c.buckets[id.text()]
	if first = h == nil; first {
		h = &held{id: id, action: Action{Kind: Abandon}, last: now}
		c.buckets[id.text()] = h
	}
	switch {
	case now >= h.until:
	case h.action.Kind == AllowAll:
		admitted = true
	case h.action.Kind == Tokens && h.left > 0:
		h.left--
		admitted = true
	}
	if admitted {
		h.report.Allowed++
	} else {
		h.report.Denied++
	}
	return admitted, first
}

// reports returns the reports on some buckets and starts new ones.
func (c *client) reports(now time.Duration, of ...*held) (out []Usage) {
	for _, h := range of {
		u := h.report
		u.ID, u.Elapsed = h.id, (now - h.last).Truncate(time.Second)
		h.report, h.last = Usage{}, now
		out = append(out, u)
	}
	return out
}

// apply applies an action. Tokens of an assignment with another serial replace
// those of the one before.
func (c *client) apply(now time.Duration, a Action) {
	h := c.buckets[a.ID.text()]
	switch {
	case h == nil:
		return
	case a.Kind == Abandon:
		delete(c.buckets, a.ID.text())
		return
	case a.Kind == Tokens && !(h.action.Kind == Tokens && h.action.Serial == a.Serial && h.action.Hits == a.Hits && now < h.until):
		h.left = a.Hits
	}
	h.action, h.until = a, now+a.TTL
}

// idOf returns the ID of one entry.
func idOf(key, value string) ID { return ID{rules.Entry{Key: key, Value: value}} }
