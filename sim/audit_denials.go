package sim

import (
	"math"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
)

// denialsAuditor sees to it that a refusal is explained: by what the world
// counted, of which the replica knew at most all, and by what it may have
// extrapolated of others, which is a rate that somebody showed in this label
// carried on for the age of the view. So in a label in which nobody else was
// seen to count, nothing but the counts explains a refusal.
//
//   - A bucket may take late hits as if they came when they were heard: it
//     stands higher by its rate times the longest that any were late. It does
//     so too by what the replica's clock lost on true time.
//   - A log keeps hits of a clock that is ahead for so much longer.
//   - A replica that is asked of a bucket for the first time does not know
//     when in their labels others' hits came (see entry.learning).
//   - A region that restored counts it took for lost may count them twice.
//   - A refusal by the gate of rights says nothing of the counts.
//   - What homes decide they decide by their own counts.
//   - What was answered as degraded is excused, and so are rules that carry a
//     debt, which is of labels that are over, keys whose scope changed, and
//     logs where a clock was bent, whose stamps are not known to the ms.
//
// False refusals are counted all the same, by the overage auditor: those that
// an omniscient replica would not have made.
type denialsAuditor struct {
	watcher
	naive bool
}

func newDenialsAuditor(b *books) *denialsAuditor {
	return &denialsAuditor{watcher: newWatcher("denials", b), naive: b.naive}
}

// Decided checks a refusal.
func (a *denialsAuditor) Decided(w *World, d *Decided) {
	a.watcher.Decided(w, d)
	e := &a.books.entry
	if !d.Status.Over || e.book == nil || !counted(d.Limit) || d.Status.Degraded != 0 || d.Limit.CarryDebt {
		return
	}
	used := e.usage.before + float64(d.Hits)
	limit := float64(capacity(d.Limit))
	if used > limit || a.excused(d) || d.Status.Gate&node.RightsGate != 0 {
		a.passed(1)
		return
	}
	used += a.books.slack(w, d) + 1 // for what is rounded up
	extra := 0.0
	if used <= limit && !a.naive {
		extra = a.books.extrapolated(w, d)
	}
	if used+extra > limit {
		a.passed(1)
		return
	}
	a.failed(w, "%s refused %d hits of %s (%v), with %.6g of %.6g used in the world and at most %.6g to be estimated",
		d.Daemon.Name, d.Hits, RuleName(d.Rule), d.Limit.Algorithm, e.usage.before, limit, extra)
}

// excused reports whether the books do not know what the replica counted.
func (a *denialsAuditor) excused(d *Decided) bool {
	e := &a.books.entry
	log := quota.Of(d.Limit).Stamped()
	return a.books.homed(d.Limit) || e.usage.mixed || e.book.rescoped || e.loses(d.Limit) || log && a.books.anyBlurred()
}

// slack is by how much a replica may hold more for used than the world did,
// because hits were late or clocks are ahead of its own.
func (b *books) slack(w *World, d *Decided) float64 {
	e := &b.entry
	l := d.Limit
	if b.restored {
		return math.Inf(1)
	}
	switch {
	case quota.Of(l).Drains():
		if e.learning(d) {
			return math.Inf(1)
		}
		lost := time.Duration(0)
		if c := b.clocks.of(d.Daemon, e.shard); c != nil {
			lost = time.Duration(c.most-c.ahead+2) * time.Millisecond
		}
		return e.book.bucket.rate*float64(b.hearing.late+b.clocks.spread(w)+lost) + 1
	case quota.Of(l).Stamped():
		n, from := 0.0, e.now-l.Window()-b.clocks.spread(w).Milliseconds()-1
		for _, p := range e.book.pages {
			if p.window > from && p.window <= e.now-l.Window() {
				n += float64(p.charged)
			}
		}
		return n
	}
	return 0
}

// extrapolated is the most that a replica may have estimated others to have
// counted in the label beyond what it knew: of each the steepest rate it
// showed up to then, over at least an interval, for as long as the replica's
// view is old.
func (b *books) extrapolated(w *World, d *Decided) float64 {
	e := &b.entry
	if e.page == nil || quota.Of(d.Limit).Stamped() {
		return 0
	}
	known := b.known(w, e.writer, e.shard)
	trip := time.Duration(0) // half of which a view is taken to be older
	for _, l := range d.Daemon.Nodes[e.shard].Links(d.Instant) {
		trip = max(trip, l.RTT)
	}
	sum := 0.0
	for i := range e.page.incarnations {
		s := &e.page.incarnations[i]
		if s.writer == e.writer.index {
			continue
		}
		interval := b.gossip.Interval
		if b.writers.all[s.writer].region != e.writer.region {
			interval = b.gossip.WANInterval
		}
		region := b.writers.all[s.writer].region
		if known[s.writer] == unheard || b.oldest(known, region) == unheard {
			return math.Inf(1)
		}
		age := d.At - min(known[s.writer], b.oldest(known, region)) + interval + trip
		sum += min(s.steepest(d.At, age+b.hearing.late, interval)*float64(age), float64(capacity(d.Limit)))
	}
	return sum
}

// oldest is up to when a replica knows the one of a region that it knows least
// of: so old its view of all of them may seem to it.
func (b *books) oldest(known cuts, region int) time.Duration {
	at := never
	for _, x := range b.writers.all {
		if x.up && x.region == region {
			at = min(at, known[x.index])
		}
	}
	return at
}

// steepest is the greatest rate, in hits a ns, that the count showed over an
// interval or longer, to one who hears of hits so late.
func (s *incarnationCount) steepest(now, age, interval time.Duration) float64 {
	best := 0.0
	for i := len(s.watermarks) - 1; i >= 0; i-- {
		hits := s.charged
		if i > 0 {
			hits -= s.watermarks[i-1].sum
		}
		over := max(interval, now-s.watermarks[i].at-age)
		best = max(best, float64(hits)/float64(over))
		if float64(s.charged)/float64(over) <= best {
			break // no earlier start can be steeper
		}
	}
	return best
}
