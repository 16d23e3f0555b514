package sim

import (
	"math"
	"time"

	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// usage is what of a limit the whole world had used at a decision, in hits, by
// the label clock of the replica that decided.
type usage struct {
	// before is what was charged before the decision, admitted what of all
	// that was admitted, with the decision.
	before, admitted float64
	// mixed: replicas have different limits of a bucket in force, so that
	// nobody can say at what rate it drains.
	mixed bool
}

// totals is what was found of a label.
type totals struct {
	any         bool // something was admitted
	reached     bool // as much as the limit
	over, bound float64
}

// bucket is what is in use of one bucket of the whole world, and what is known
// of those who asked it.
type bucket struct {
	level      float64 // hits
	at         time.Duration
	rate       float64 // hits a ns
	burst      uint32
	fill       time.Duration // until an empty one is untouched
	mixedUntil time.Duration
	askers     []asker
}

// asker is a replica that decided on a bucket.
type asker struct {
	writer int
	first  time.Duration // when it was asked first
	// expires is when the replica saw the bucket untouched again and could
	// forget it. forgiven is what of the level the replica could not learn
	// when it asked anew: a label's hits are no more than fit when it ends,
	// and drain from then on.
	expires  time.Duration
	forgiven float64
}

// use works out what is used, once a decision.
func (b *books) use(w *World, d *Decided) {
	e := &b.entry
	u := &e.usage
	l := d.Limit
	switch {
	case quota.Of(l).Drains():
		b.useBucket(w, d)
		return
	case quota.Of(l).Stamped():
		for i := len(e.book.pages) - 1; i >= 0 && e.book.pages[i].window > e.now-l.Window(); i-- {
			u.before += float64(e.book.pages[i].charged)
			u.admitted += float64(e.book.pages[i].admitted)
		}
		u.before -= float64(e.charged)
		return
	}
	u.before, u.admitted = float64(e.before), float64(e.page.admitted)
	if prev := e.prev(l); prev != nil {
		u.before += e.weight(l, prev.charged)
		u.admitted += e.weight(l, prev.admitted)
	}
}

// prev is the page before, where it still counts.
func (e *entry) prev(l *rules.Limit) *page {
	if !quota.Of(l).Weighted() {
		return nil
	}
	return e.book.page(e.page.window - l.Window())
}

// weight is how much of the window before counts, rounded up as replicas do.
func (e *entry) weight(l *rules.Limit, hits uint64) float64 {
	left := float64(e.page.window + l.Window() - e.now)
	return math.Ceil(float64(hits) * left / float64(l.Window()))
}

// useBucket drains the world's bucket and charges it.
func (b *books) useBucket(w *World, d *Decided) {
	e := &b.entry
	k := &e.book.bucket
	l := d.Limit
	rate := float64(l.Requests) / float64(l.Window()*int64(time.Millisecond))
	fill := time.Duration(0)
	if rate > 0 {
		fill = time.Duration(min(float64(l.Burst)/rate, float64(MaxDuration)))
	}
	// Who decides now may have drained it at another rate before it took the
	// rules in force.
	changed := w.adopted && d.At < w.adoptedAt+2*fill+5*time.Second
	if changed || k.burst != 0 && (k.rate != rate || k.burst != l.Burst) {
		k.mixedUntil = d.At + 2*fill + 5*time.Second
	}
	k.level = max(0, k.level-rate*float64(d.At-k.at))
	k.at, k.rate, k.burst, k.fill = d.At, rate, l.Burst, fill

	by := k.asker(e.writer.index)
	if by.expires == unheard {
		by.first = d.At
	}
	if d.At+10*time.Millisecond >= by.expires {
		anew := max(0, k.level-e.learned(l)) + rate*float64(b.clocks.spread(w))
		by.forgiven = max(anew, min(by.forgiven, k.level)) // it may have kept what it had
	}
	by.expires = d.At + min(d.Status.Reset, MaxDuration)

	e.usage = usage{before: math.Ceil(k.level), mixed: d.At < k.mixedUntil}
	k.level += float64(e.charged)
	e.usage.admitted = k.level
}

// learned is the least level that a replica makes of all charges of a bucket's
// labels that live, when it asks anew.
func (e *entry) learned(l *rules.Limit) float64 {
	_, width, _ := windowOfLimit(l, e.now)
	level := 0.0
	for _, p := range e.book.pages {
		if p.end <= e.now || p == e.page && e.before == 0 {
			continue
		}
		hits := float64(p.charged)
		if p == e.page {
			hits = float64(e.before)
		}
		since := float64(max(0, e.now-p.window-width))
		level = max(level, min(hits, float64(l.Burst))-since*float64(l.Requests)/float64(l.Window()))
	}
	return level
}

// learning reports whether a replica may still hold more for used than a bucket
// has because it does not know when in a label the hits came that it learned of
// when it was asked first: for the length of the label, and until what it took
// for used has drained.
func (e *entry) learning(d *Decided) bool {
	if !quota.Of(d.Limit).Drains() {
		return false
	}
	_, width, _ := windowOfLimit(d.Limit, e.now)
	k := &e.book.bucket
	return d.At-k.asker(e.writer.index).first <= time.Duration(width)*time.Millisecond+k.fill
}

// asker returns what is known of a replica, which is added when it is new.
func (k *bucket) asker(writer int) *asker {
	for i := range k.askers {
		if k.askers[i].writer == writer {
			return &k.askers[i]
		}
	}
	k.askers = append(k.askers, asker{writer: writer, expires: unheard})
	return &k.askers[len(k.askers)-1]
}

// unseen is what of the usage the replica that decided could not know of, when
// it knew what it did.
func (b *books) unseen(d *Decided, known cuts) float64 {
	e := &b.entry
	l, by := d.Limit, e.writer.index
	switch {
	case quota.Of(l).Drains():
		return b.unseenOfBucket(d, known)
	case quota.Of(l).Stamped():
		n := uint64(0)
		for i := len(e.book.pages) - 1; i >= 0 && e.book.pages[i].window > e.now-l.Window(); i-- {
			p := e.book.pages[i]
			if p.window <= e.now-l.Window()+clockSlack {
				n += p.charged // at the edge; it may have left the window
			} else {
				n += p.unseen(by, known)
			}
		}
		return float64(n)
	}
	n := float64(e.page.unseen(by, known))
	if prev := e.prev(l); prev != nil {
		n += e.weight(l, prev.unseen(by, known))
	}
	return n
}

func (b *books) unseenOfBucket(d *Decided, known cuts) float64 {
	e := &b.entry
	k := &e.book.bucket
	by := e.writer.index
	n := uint64(0)
	for _, p := range e.book.pages {
		n += p.unseen(by, known)
	}
	for i := range e.book.dropped {
		if o := &e.book.dropped[i]; o.writer != by && o.last >= known[o.writer] {
			n += o.hits
		}
	}
	gained := time.Duration(0)
	if c := b.clocks.of(d.Daemon, e.shard); c != nil {
		gained = time.Duration(c.ahead-c.least+2) * time.Millisecond
	}
	return float64(n) + k.asker(by).forgiven + k.rate*float64(gained) + 1
}
