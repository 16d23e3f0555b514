package lease

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/rendezvous"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
)

// call is one call of some descriptors.
type call struct {
	d       *daemon
	hits    []Hit
	answers []Answer
	reports []quota.Report // once it is decided
	ticket  uint64
	until   time.Duration
	rounds  int
	decided bool
	allowed bool
}

func (c *call) String() string { return fmt.Sprint(c.hits, c.answers) }

// descriptor returns a descriptor with one entry.
func descriptor(key, value string, hits uint64) rules.Descriptor {
	return rules.Descriptor{Entries: []rules.Entry{{Key: key, Value: value}}, Hits: hits}
}

// hit returns the hit of a descriptor.
func (w *world) hit(d rules.Descriptor) Hit {
	w.t.Helper()
	r := w.set.Domain("d").Match(d.Entries)
	if r == nil || r.Limit == nil {
		w.t.Fatalf("no limit for %v", d.Entries)
	}
	name := []string{fmt.Sprint(r.Limit.Grid())}
	for _, e := range d.Entries {
		name = append(name, e.Key, e.Value)
	}
	text := strings.Join(name, "|")
	key := crdt.Key(rendezvous.Hash("key"+w.hashing, text))
	if w.colliding {
		key &= 1
	}
	return Hit{Key: key, Rule: r, N: d.Hits}
}

// ask has a daemon decide a call of some descriptors of domain d.
func (w *world) ask(d *daemon, descriptors ...rules.Descriptor) *call {
	w.t.Helper()
	c := w.newCall(d, descriptors...)
	w.decide(c)
	w.drain(d)
	return c
}

func (w *world) newCall(d *daemon, descriptors ...rules.Descriptor) *call {
	c := &call{d: d, answers: make([]Answer, len(descriptors)), reports: make([]quota.Report, len(descriptors))}
	for _, x := range descriptors {
		c.hits = append(c.hits, w.hit(x))
	}
	return c
}

// probe probes the hits of a call, and reports whether one is pending.
func (w *world) probe(c *call) (waits bool) {
	c.allowed = true
	for i := range c.hits {
		h, a := &c.hits[i], &c.answers[i]
		h.Ticket, h.Ahead = c.ticket, 0
		for j := range c.hits[:i] {
			if c.hits[j].Key == h.Key && !c.answers[j].Over() {
				h.Ahead += c.hits[j].N
			}
		}
		if l := h.Rule.Limit; !l.Homed() {
			*a = Answer{}
			if c.d.eventual[h.Key]+h.need() > quota.Of(l).Capacity() {
				a.Verdict = Denied
			}
		} else {
			c.d.table.Probe(w.clocks(c.d), h, a)
		}
		c.allowed = c.allowed && !a.Over()
		waits = waits || a.Verdict == Pending
	}
	return waits
}

// decide probes a call, requests the rights that it lacks unless it is denied
// anyway, and charges it once none lack.
func (w *world) decide(c *call) {
	waits := w.probe(c)
	if waits && c.rounds >= 8 { // it has requested often enough
		for i := range c.hits {
			c.hits[i].Failed = 2
		}
		waits = w.probe(c)
	}
	if waits && c.allowed {
		c.rounds++
		if c.ticket == 0 {
			w.tickets++
			c.ticket = w.tickets
			w.pending = append(w.pending, c)
			w.waited++
		}
		c.until = w.now
		for i := range c.answers {
			if a := &c.answers[i]; a.Verdict == Pending {
				c.until = max(c.until, w.now+a.Within)
				c.hits[i].Ticket = c.ticket
				c.d.table.Request(w.clocks(c.d), &c.hits[i], a, c.ticket)
			}
		}
		return
	}
	w.charge(c)
	if c.ticket != 0 {
		w.cancel(c)
		w.pending = slices.DeleteFunc(w.pending, func(o *call) bool { return o == c })
	}
	w.account(c)
}

func (w *world) cancel(c *call) {
	for i := range c.hits {
		if c.hits[i].Rule.Limit.Homed() {
			c.d.table.Cancel(w.clocks(c.d), &c.hits[i], c.ticket)
		}
	}
}

func (w *world) charge(c *call) {
	c.decided = true
	for i := range c.hits {
		h, a := &c.hits[i], &c.answers[i]
		if charges := c.allowed && !h.Peek && h.N > 0; !h.Rule.Limit.Homed() {
			if charges {
				c.d.eventual[h.Key] += h.N
			}
			continue
		} else if charges {
			c.d.table.Spend(h, a)
		}
		c.reports[i] = c.d.table.Report(h, a)
	}
}

func (w *world) account(c *call) {
	if w.decided != nil {
		w.decided(c)
	}
	for i, h := range c.hits {
		switch {
		case !c.allowed && c.answers[i].Verdict == Failed:
			w.failed++
		case c.allowed && !h.Peek:
			w.hits[h.Key] = append(w.hits[h.Key], admitted{w.clocks(c.d).Millis, h.N})
			w.limits[h.Key] = h.Rule.Limit
		}
	}
	if !c.allowed {
		w.denied++
		return
	}
	w.allowed++
	if w.charged != nil {
		w.charged(c)
	}
}

// resume decides a call whose ticket was answered, or whose time is up.
func (w *world) resume(ticket uint64, late bool) {
	for _, c := range w.pending {
		if c.ticket != ticket {
			continue
		}
		for i := range c.hits {
			if late && c.answers[i].Verdict == Pending {
				c.hits[i].Failed++
			}
		}
		w.decide(c)
		return
	}
}

// ownerOf returns the owner of a descriptor's key by the view of a daemon, and
// its hit.
func (w *world) ownerOf(d *daemon, x rules.Descriptor) (*daemon, Hit) {
	w.t.Helper()
	h := w.hit(x)
	owner := d.Routing().Owner(h.Key, uint64(h.Rule.ID), h.Rule.Limit.HomeInRegion(), 0)
	for _, o := range w.daemons {
		if o.table != nil && o.id == owner.Incarnation {
			return o, h
		}
	}
	w.t.Fatal("no owner")
	return nil, h
}

// roles returns the owner of a descriptor's key and another daemon of its
// region.
func (w *world) roles(x rules.Descriptor) (lessee, owner *daemon, h Hit) {
	w.t.Helper()
	owner, h = w.ownerOf(w.daemons[0], x)
	return w.othersOf(owner)[0], owner, h
}

// othersOf returns the other daemons of an owner's region.
func (w *world) othersOf(owner *daemon) (out []*daemon) {
	for _, d := range w.daemons {
		if d != owner && d.region == owner.region {
			out = append(out, d)
		}
	}
	return out
}

// sum returns the hits that were admitted of a key.
func (w *world) sum(k crdt.Key) (sum uint64) {
	for _, x := range w.hits[k] {
		sum += x.n
	}
	return sum
}

// check fails if more hits of a key were admitted than its limit allows.
func (w *world) check(seed uint64) {
	w.t.Helper()
	for k, hits := range w.hits {
		l := w.limits[k]
		if most, allowed, at := worst(l, hits); most > allowed {
			w.t.Fatalf("seed %d: %v of %d: %d admitted from %d on, want at most %d", seed, l.Algorithm, l.Requests, most, at, allowed)
		}
	}
}

// worst returns the most hits that were admitted in a span that the limit
// bounds, and the bound.
func worst(l *rules.Limit, hits []admitted) (most, allowed uint64, from int64) {
	width, step, f := l.Window(), quota.Of(l).Step(), quota.Of(l)
	for i := range hits {
		sum := uint64(0)
		for j := i; j < len(hits); j++ {
			span := hits[j].at - hits[i].at
			limit := uint64(l.Requests)
			switch {
			case f.Drains():
				sum += hits[j].n
				limit = uint64(l.Burst) + (uint64(l.Requests)*uint64(span+step)+uint64(width)-1)/uint64(width)
				if sum > limit && sum-limit > most-min(most, allowed) {
					most, allowed, from = sum, limit, hits[i].at
				}
				continue
			case f.Stamped() && span >= width:
				continue
			case f.Windowed() && hits[j].at/width != hits[i].at/width:
				continue
			}
			sum += hits[j].n
			if sum > most {
				most, allowed, from = sum, limit, hits[i].at
			}
		}
	}
	return most, allowed, from
}
