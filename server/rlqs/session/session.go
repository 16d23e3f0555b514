package session

import (
	"cmp"
	"container/list"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/node"
)

const (
	// MaxBuckets and MaxIDBytes bound the buckets of a stream, and the keys and
	// values of their ids. Beyond them the bucket that has been without a
	// request for longest is abandoned, or the new one if all have requests.
	MaxBuckets, MaxIDBytes = 4_096, 1 << 20

	// firstInterval is the interval of reports before it is known, and
	// maxInterval its bound: with a longer one assignments end before they are
	// renewed.
	firstInterval, maxInterval = 10 * time.Second, 20 * time.Second
	// An assignment lives for ttlIntervals intervals, so that two reports may
	// be lost or late, and for at least minTTL.
	ttlIntervals = 3
	minTTL       = 2 * time.Second
	maxTTL       = ttlIntervals * maxInterval

	// spanPart is the part of the time in which a log or a bucket comes back,
	// 1/spanPart, that an assignment lives if that is more than an interval.
	spanPart = 10

	// maxAssigned bounds the assignments of a bucket that are not over. The
	// oldest one beyond it stays charged.
	maxAssigned = 8

	// margin is the time that an assignment on its way and the next report on
	// its way back take together at most.
	margin = 2 * time.Second
	// onTime is how much more time may be between two reports than the second
	// one states. Clients round down to whole seconds, and the way varies.
	// After onTimeReports in their time, one by one, none waits any more.
	onTime        = 1500 * time.Millisecond
	onTimeReports = 8
	// actTime is the time in which Act collects actions.
	actTime = 100 * time.Millisecond

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
// concurrent use. A driver calls Report or Tick, and then Act until nothing is
// left.
type Session struct {
	limiter  Limiter
	clock    func() time.Duration
	buckets  map[string]*bucket
	asked    list.List     // of buckets: the one without a request for longest first
	bytes    int           // of the ids of buckets
	first    int           // reports on new buckets so far
	interval time.Duration // between the reports on a bucket
	late     time.Duration // bucket.late of the last report
	due      []*bucket     // for Act
	dropped  []Action      // of buckets that were abandoned, for Act
}

// New returns the state of a new stream. The clock returns the time since the
// start of the stream, and never goes back.
func New(l Limiter, clock func() time.Duration) *Session {
	return &Session{limiter: l, clock: clock, buckets: map[string]*bucket{}, interval: firstInterval}
}

// Report applies the reports of one message.
func (s *Session) Report(usages []Usage) {
	now := s.clock()
	for i := range usages {
		u := &usages[i]
		name := u.ID.text()
		b := s.buckets[name]
		if b == nil {
			if b = s.add(now, name, u.ID); b == nil {
				s.dropped = append(s.dropped, Action{ID: u.ID, Kind: Abandon})
				continue
			}
		} else if gap := now - b.reported; gap > 0 {
			s.interval = min(max(gap, (3*s.interval+gap)/4), maxInterval)
		}
		if b.report(now, u); b.idle == 0 {
			s.asked.MoveToBack(b.place)
		}
		s.late = b.late
		s.enqueue(b)
	}
}

// add adds a bucket. It returns nil if there is no room.
func (s *Session) add(now time.Duration, name string, id ID) *bucket {
	for len(s.buckets) >= MaxBuckets || s.bytes+len(name) > MaxIDBytes {
		oldest := s.asked.Front()
		if oldest == nil {
			return nil
		}
		b := oldest.Value.(*bucket)
		if now-b.asked <= s.interval+s.interval/2 {
			return nil // each one has requests
		}
		s.dropped = append(s.dropped, s.abandon(b))
	}
	if s.first == 0 { // it was sent after the stream began
		s.late = now
	}
	b := &bucket{id: id, order: s.first, kind: Abandon, asked: now, late: s.late}
	b.place = s.asked.PushBack(b)
	s.first++
	s.bytes += len(name)
	s.buckets[name] = b
	return b
}

func (s *Session) enqueue(b *bucket) {
	if !b.due {
		b.due, s.due = true, append(s.due, b)
	}
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

// Tick finds what clients have to do without a report: windows have begun,
// denials have ended, and silent buckets are abandoned.
func (s *Session) Tick() {
	now := s.clock()
	var due []*bucket
	for _, b := range s.buckets {
		if now >= b.reported+s.silent() || b.renewAt > 0 && now >= b.renewAt {
			due = append(due, b)
		}
	}
	slices.SortFunc(due, func(a, b *bucket) int { return cmp.Compare(a.order, b.order) })
	for _, b := range due {
		switch b.renewAt = 0; {
		case now >= b.reported+s.silent():
			s.dropped = append(s.dropped, s.abandon(b))
		case b.idle > 0: // the next report decides whether it needs hits
		default:
			s.enqueue(b)
		}
	}
}

// Act returns the next actions for the client, to be sent at once. It stops
// after about actTime; more is set if actions are left.
func (s *Session) Act() (out []Action, more bool, err error) {
	start := s.clock()
	var made []pending
	out, s.dropped = s.dropped, nil
	for len(s.due) > 0 && err == nil && s.clock()-start < actTime {
		b := s.due[0]
		s.due = s.due[1:]
		if b.due = false; b.gone {
			continue
		}
		for _, a := range b.over() {
			s.refund(&a.receipt, a.hits-a.used)
		}
		var p pending
		if p, err = s.renew(b); err == nil && p.bucket != nil {
			made = append(made, p)
		}
	}
	now := s.clock()
	for i := range made {
		if a, ok := s.settle(now, &made[i]); ok {
			out = append(out, a)
		}
	}
	return out, len(s.due) > 0, err
}

// refund refunds hits of a receipt, if it has any.
func (s *Session) refund(r *node.Receipt, n uint64) {
	if n > 0 && r.Hits > 0 {
		s.limiter.Refund(r, n)
	}
}

// abandon forgets a bucket. Its assignments stay charged.
func (s *Session) abandon(b *bucket) Action {
	name := b.id.text()
	delete(s.buckets, name)
	s.asked.Remove(b.place)
	s.bytes -= len(name)
	b.gone = true
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
