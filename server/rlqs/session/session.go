package session

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	// MaxBuckets bounds the buckets of a stream. Further ones are abandoned at
	// once.
	MaxBuckets = 4_096

	// firstInterval is the interval of reports before it is known, and
	// maxInterval its bound: with a longer one assignments end before they are
	// renewed.
	firstInterval, maxInterval = 10 * time.Second, 20 * time.Second
	// An assignment lives for ttlIntervals intervals, so that two reports may
	// be lost or late, and for at least minTTL.
	ttlIntervals = 3
	minTTL       = 2 * time.Second
	maxTTL       = ttlIntervals * maxInterval

	// maxAssigned bounds the assignments of a bucket that are not over.
	maxAssigned = 64

	// margin is the time that an assignment on its way and the next report on
	// its way back take together at most.
	margin = 2 * time.Second

	// firstPart is the part of a limit, 1/firstPart, that a client gets while
	// its rate is not known.
	firstPart = 10
	// idleReports is after how many reports without a request a bucket is not
	// assigned anything any more.
	idleReports = 6
	// silentIntervals is after how many intervals without a report a bucket is
	// abandoned.
	silentIntervals = 4

	// shortWindow is the length of a fixed window below which assignments may
	// outlive it, by less than a second: times to live are whole seconds.
	shortWindow = 10 * time.Second
	// tries bounds the attempts to charge hits while others charge them, too.
	// Each one asks for half of the one before.
	tries = 4
)

// Session is the state of one stream. Make it with New. It is not safe for
// concurrent use. Times are since the start of the stream and never decrease.
type Session struct {
	limiter  Limiter
	buckets  map[string]*bucket
	first    int           // reports on new buckets so far
	interval time.Duration // between the reports on a bucket
}

// New returns the state of a new stream.
func New(l Limiter) *Session {
	return &Session{limiter: l, buckets: map[string]*bucket{}, interval: firstInterval}
}

// Report applies the reports of one message, and returns what the client has
// to do, in the order of the reports.
func (s *Session) Report(now time.Duration, usages []Usage) ([]Action, error) {
	var due []*bucket
	var out []Action
	for i := range usages {
		u := &usages[i]
		name := u.ID.text()
		b := s.buckets[name]
		if b == nil {
			if len(s.buckets) >= MaxBuckets {
				out = append(out, Action{ID: u.ID, Kind: Abandon})
				continue
			}
			b = &bucket{id: u.ID, order: s.first, kind: Abandon}
			s.first++
			s.buckets[name] = b
		} else if gap := now - b.reported; gap > 0 {
			s.interval = min(max(gap, (3*s.interval+gap)/4), maxInterval)
		}
		b.report(now, u)
		if !b.due {
			b.due, due = true, append(due, b)
		}
	}
	for _, b := range due {
		b.due = false
		for _, a := range b.over(now) {
			if unused := a.hits - a.used; unused > 0 && a.receipt.Hits > 0 {
				s.limiter.Refund(&a.receipt, unused)
			}
		}
		a, some, err := s.renew(now, b)
		if err != nil {
			return out, err
		}
		if some {
			out = append(out, a)
		}
	}
	return out, nil
}

// Next returns the time of the next Tick. ok is false if none is due.
func (s *Session) Next() (at time.Duration, ok bool) {
	for _, b := range s.buckets {
		for _, t := range []time.Duration{b.renewAt, b.reported + s.silent()} {
			if t > 0 && (!ok || t < at) {
				at, ok = t, true
			}
		}
	}
	return at, ok
}

// silent is the time without a report after which a bucket is abandoned.
func (s *Session) silent() time.Duration { return silentIntervals * max(s.interval, firstInterval) }

// Tick returns what clients have to do without a report: windows have begun,
// denials have ended, and silent buckets are abandoned.
func (s *Session) Tick(now time.Duration) ([]Action, error) {
	var due []*bucket
	for _, b := range s.buckets {
		if now >= b.reported+s.silent() || b.renewAt > 0 && now >= b.renewAt {
			due = append(due, b)
		}
	}
	slices.SortFunc(due, func(a, b *bucket) int { return cmp.Compare(a.order, b.order) })
	var out []Action
	for _, b := range due {
		if now >= b.reported+s.silent() {
			out = append(out, s.abandon(b))
			continue
		}
		b.renewAt = 0
		a, some, err := s.renew(now, b)
		if err != nil {
			return out, err
		}
		if some {
			out = append(out, a)
		}
	}
	return out, nil
}

// abandon forgets a bucket. What it was assigned stays charged.
func (s *Session) abandon(b *bucket) Action {
	delete(s.buckets, b.id.text())
	return Action{ID: b.id, Kind: Abandon}
}

// text returns the ID as a key of a map.
func (id ID) text() string {
	var b strings.Builder
	for _, e := range id {
		b.WriteString(e.Key)
		b.WriteByte(0)
		b.WriteString(e.Value)
		b.WriteByte(0)
	}
	return b.String()
}
