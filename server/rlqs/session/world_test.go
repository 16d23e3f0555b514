package session

import (
	"fmt"
	"math"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// world is the limits that all clients of a test share, and the time.
type world struct {
	now    time.Duration
	slow   time.Duration         // that a call of the limiter takes
	slowID string                // the only bucket for which it does, "" for all
	wait   func(time.Duration)   // lets that time pass
	limits map[string]*fakeLimit // by the text of an ID
	taken  []*taken
}

// algorithm is how a fakeLimit counts.
type algorithm uint8

const (
	fixed   algorithm = iota // also limits without a window, which never come back
	sliding                  // the window before weighs
	slidingLog
	tokenBucket // requests of burst, which come back in a window
)

// fakeLimit is the limit of a bucket.
type fakeLimit struct {
	algorithm algorithm
	requests  uint64
	window    time.Duration // 0 for a limit that never comes back
	shadow    bool
	charges   []*taken
}

// taken is a charge, by the number of its receipt.
type taken struct {
	limit  *fakeLimit
	at     time.Duration
	window time.Duration
	hits   uint64
	back   uint64
}

func (w *world) tick(id ID) {
	if w.slow > 0 && (w.slowID == "" || w.slowID == id.text()) {
		w.wait(w.slow)
	}
}

// windowOf returns the window of a receipt: that in which hits of a time come
// back.
func (l *fakeLimit) windowOf(t time.Duration) time.Duration {
	switch {
	case l.window == 0:
		return 0
	case l.algorithm == fixed || l.algorithm == sliding:
		return t - t%l.window
	}
	return t
}

// used returns the hits that count at a time.
func (l *fakeLimit) used(now time.Duration) uint64 {
	var sum, before uint64
	var level float64
	var last time.Duration
	for _, t := range l.charges {
		n := t.hits - t.back
		switch l.algorithm {
		case fixed, sliding:
			switch window := l.windowOf(now); {
			case t.window == window:
				sum += n
			case t.window == window-l.window:
				before += n
			}
		case slidingLog:
			if t.at > now-l.window {
				sum += n
			}
		case tokenBucket:
			level = max(0, level-l.drained(t.at-last)) + float64(n)
			last = t.at
		}
	}
	switch l.algorithm {
	case sliding:
		return sum + uint64(math.Ceil(float64(before)*float64(l.windowOf(now)+l.window-now)/float64(l.window)))
	case tokenBucket:
		return uint64(math.Ceil(max(0, level-l.drained(now-last)) - 1e-6))
	}
	return sum
}

func (l *fakeLimit) drained(d time.Duration) float64 {
	return float64(l.requests) * float64(d) / float64(l.window)
}

func (w *world) Look(id ID) (Quota, error) {
	defer w.tick(id)
	w.tick(id)
	return w.look(id), nil
}

func (w *world) look(id ID) Quota {
	l := w.limits[id.text()]
	if l == nil {
		return Quota{Unlimited: true}
	}
	q := Quota{Shadow: l.shadow, Limit: l.requests, Remaining: l.requests - min(l.used(w.now), l.requests)}
	switch {
	case l.window == 0:
	case l.algorithm == fixed || l.algorithm == sliding:
		q.Window, q.Ends = l.window, l.windowOf(w.now)+l.window-w.now
	default:
		q.Span = l.window
	}
	if q.Remaining == 0 && l.requests > 0 {
		if q.Retry = q.Ends; q.Span > 0 || l.algorithm == sliding {
			q.Retry = time.Second
		}
	}
	return q
}

func (w *world) Take(id ID, n uint64) (bool, node.Receipt, time.Duration, error) {
	defer w.tick(id)
	w.tick(id)
	q := w.look(id)
	if n > q.Remaining && !q.Shadow {
		return false, node.Receipt{}, q.Ends, nil
	}
	l := w.limits[id.text()]
	t := &taken{limit: l, at: w.now, window: l.windowOf(w.now), hits: n}
	w.taken, l.charges = append(w.taken, t), append(l.charges, t)
	return true, node.Receipt{Number: uint64(len(w.taken)), Window: t.window.Milliseconds(), Hits: n}, q.Ends, nil
}

func (w *world) Refund(r *node.Receipt, n uint64) {
	t := w.taken[r.Number-1]
	if t.back > 0 || n > t.hits {
		panic(fmt.Sprintf("refund of %d hits of %+v", n, t))
	}
	t.back = n
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
	paid   *taken // the charge of the action
	report Usage
	last   time.Duration // of the last report
}

func newClient(w *world) *client { return &client{w.session(), map[string]*held{}} }

// session returns that of a stream that begins now.
func (w *world) session() *Session {
	start := w.now
	return New(w, func() time.Duration { return w.now - start })
}

// act returns all that a session has to do now.
func act(s *Session) (out []Action, err error) {
	for more := true; more && err == nil; {
		var some []Action
		some, more, err = s.Act()
		out = append(out, some...)
	}
	return out, err
}

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
