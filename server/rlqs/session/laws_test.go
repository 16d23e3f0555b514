package session

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// message is one on its way: reports to a session, or actions to a client, with
// their charges.
type message struct {
	at      time.Duration
	usages  []Usage
	actions []Action
	paid    []*taken
}

// peer is a client of a world and its messages, in their order.
type peer struct {
	*client
	name     string
	began    time.Duration // of the stream
	up, down []message
	next     time.Duration // of the next reports
	every    time.Duration
	latest   map[string]*taken // the charge of the latest assignment, by bucket
}

// run is a world with its clients.
type run struct {
	*world
	t      *rapid.T
	delay  time.Duration // of a message at most
	frozen time.Duration // until when no session runs
	peers  []*peer
	// admitted counts requests by the windows in which they were charged.
	admitted map[*fakeLimit]map[time.Duration]uint64
}

// Whatever clients ask for, report and lose, however late messages are within
// the margin, and for however long the daemon stands still or waits for owners:
// the clients of a bucket admit no more than was charged for them and not
// refunded, and that within the limit. They admit it in its window, and for a
// log or a bucket within its time to live. A message that is late shifts what
// it assigned by as much.
func TestClientsAdmitNoMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &run{world: &world{limits: map[string]*fakeLimit{}}, t: t, admitted: map[*fakeLimit]map[time.Duration]uint64{}}
		r.wait = r.advance
		r.delay = rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond, margin/2 - time.Millisecond}).Draw(t, "delay")
		if r.delay == 0 {
			r.slow = rapid.SampledFrom([]time.Duration{0, 1, 20, 75}).Draw(t, "slow") * time.Millisecond
		}
		var ids []ID
		for i := range rapid.IntRange(1, 3).Draw(t, "limits") {
			id := idOf("k", fmt.Sprint(i))
			l := &fakeLimit{
				algorithm: rapid.SampledFrom([]algorithm{fixed, sliding, slidingLog, tokenBucket}).Draw(t, "algorithm"),
				requests:  rapid.Uint64Range(0, 200).Draw(t, "requests"),
				window:    rapid.SampledFrom([]time.Duration{10, 60, 3600}).Draw(t, "window") * time.Second,
			}
			r.limits[id.text()], r.admitted[l] = l, map[time.Duration]uint64{}
			ids = append(ids, id)
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "clients") {
			r.peers = append(r.peers, &peer{
				client: newClient(r.world), name: fmt.Sprint(i), latest: map[string]*taken{},
				every: time.Duration(rapid.IntRange(1_000, 15_000).Draw(t, "interval")) * time.Millisecond,
			})
		}
		for range rapid.IntRange(10, 200).Draw(t, "steps") {
			p := rapid.SampledFrom(r.peers).Draw(t, "client")
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0, 1, 2, 3, 4, 5, 6, 7:
				id := rapid.SampledFrom(ids).Draw(t, "bucket")
				for range rapid.IntRange(1, 60).Draw(t, "requests") {
					r.request(p, id)
				}
			case 8, 9, 10, 11, 12, 13, 14, 15, 16, 17:
				r.pass(time.Duration(rapid.IntRange(1, 8_000).Draw(t, "ms")) * time.Millisecond)
			case 18: // the stream ends, and another begins: the client keeps its assignment
				if r.now < r.frozen {
					break
				}
				p.session, p.began, p.up, p.down = r.session(), r.now, nil, nil
			case 19: // the daemon stands still
				r.frozen = r.now + time.Duration(rapid.IntRange(1, 60).Draw(t, "frozen"))*time.Second
			}
			r.check()
		}
	})
}

// request makes a request at a client, but for the first one of a bucket while
// the daemon stands still: its report could not be known to be late.
func (r *run) request(p *peer, id ID) {
	if p.buckets[id.text()] == nil && r.now < r.frozen {
		return
	}
	admitted, first := p.client.request(r.now, id)
	h := p.buckets[id.text()]
	if admitted {
		r.admitted[h.paid.limit][h.paid.window]++
		late := r.delay + actTime + 2*r.slow // of the charge, too
		switch l := h.paid.limit; {
		case l.algorithm == fixed || l.algorithm == sliding:
			if r.now >= h.paid.window+l.window+late {
				r.t.Fatalf("admitted at %v by an assignment of the window from %v", r.now, h.paid.window)
			}
		case r.now >= h.paid.at+min(l.window, max(l.window/spanPart, maxInterval+2*time.Second))+late:
			r.t.Fatalf("admitted at %v by hits of %v", r.now, h.paid.at)
		}
	}
	if first {
		p.send(r, p.reports(r.now, h))
	}
}

// send puts reports on their way.
func (p *peer) send(r *run, u []Usage) {
	if len(u) > 0 {
		p.up = append(p.up, message{at: r.now + r.delay, usages: u})
	}
}

// advance lets time pass for the clients.
func (r *run) advance(d time.Duration) {
	const step = 50 * time.Millisecond
	for end := r.now + d; r.now < end; {
		r.now = min(end, r.now+step)
		for _, p := range r.peers {
			r.client(p)
		}
	}
}

// client runs the actions of a client that are due.
func (r *run) client(p *peer) {
	if r.now >= p.next {
		p.next = r.now + p.every
		var all []*held
		for _, name := range slices.Sorted(maps.Keys(p.buckets)) {
			all = append(all, p.buckets[name])
		}
		p.send(r, p.reports(r.now, all...))
	}
	for len(p.down) > 0 && p.down[0].at <= r.now {
		m := p.down[0]
		for i, a := range m.actions {
			p.apply(r.now, a)
			if h := p.buckets[a.ID.text()]; h != nil {
				h.paid = m.paid[i]
			}
		}
		p.down = p.down[1:]
	}
}

// pass lets time pass, in small steps.
func (r *run) pass(d time.Duration) {
	for end := r.now + d; r.now < end; {
		r.advance(min(50*time.Millisecond, end-r.now))
		for _, p := range r.peers {
			if r.now < r.frozen {
				break
			}
			for len(p.up) > 0 && p.up[0].at <= r.now {
				m := p.up[0]
				p.up = p.up[1:]
				p.session.Report(m.usages)
				r.answer(p)
			}
			if at, ok := p.session.Next(); ok && at <= r.now-p.began {
				p.session.Tick()
				r.answer(p)
			}
			r.client(p)
		}
		r.check()
	}
}

func (r *run) answer(p *peer) {
	for more := true; more; {
		from := len(r.taken)
		out, left, err := p.session.Act()
		if err != nil {
			r.t.Fatal(err)
		}
		m := message{at: r.now + r.delay, actions: out}
		for _, a := range out {
			l := r.limits[a.ID.text()]
			for _, t := range r.taken[from:] {
				if t.limit == l {
					p.latest[a.ID.text()] = t
				}
			}
			m.paid = append(m.paid, p.latest[a.ID.text()])
			r.t.Logf("%v %s: %+v", r.now, p.name, a)
			switch {
			case a.Kind == AllowAll:
				r.t.Fatalf("%v may admit everything", a)
			case a.Kind != Abandon && (a.TTL < time.Second || a.TTL%time.Second != 0 || a.TTL > maxTTL):
				r.t.Fatalf("%v lives for %v", a, a.TTL)
			case a.Kind == Tokens && (a.Hits == 0 || a.Hits > l.requests):
				r.t.Fatalf("%v has %d tokens, limit %d", a, a.Hits, l.requests)
			}
		}
		if len(out) > 0 {
			p.down = append(p.down, m)
		}
		more = left
	}
}

// check compares the admitted hits with the charged ones, and these with the
// limits.
func (r *run) check() {
	for _, l := range r.limits {
		charged := map[time.Duration]uint64{}
		for _, t := range l.charges {
			charged[t.window] += t.hits - t.back
		}
		for window, n := range r.admitted[l] {
			if n > charged[window] {
				r.t.Fatalf("%d admitted by hits of the window from %v, %d are charged", n, window, charged[window])
			}
		}
		if n := l.used(r.now); n > l.requests {
			r.t.Fatalf("%d charged at %v, limit %d", n, r.now, l.requests)
		}
	}
}
