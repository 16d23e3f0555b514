package session

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// message is one on its way: reports to a session, or actions to a client.
type message struct {
	sent    time.Duration
	at      time.Duration
	usages  []Usage
	actions []Action
}

// peer is a client of a world and its messages, in their order.
type peer struct {
	*client
	name     string
	up, down []message
	next     time.Duration // of the next reports
	every    time.Duration
}

// run is a world with its clients.
type run struct {
	*world
	delay time.Duration // of a message at most
	peers []*peer
	// inWindow counts admitted requests by bucket and by the window in which
	// they were assigned. They are admitted in it, but for the delay.
	inWindow map[string]map[time.Duration]uint64
}

// Whatever clients ask for, report and lose, and however late messages are
// within the margin: the clients of a bucket admit no more than its limit in a
// window. A message that is late shifts what it assigned by as much.
func TestClientsAdmitNoMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{limits: map[string]*fakeLimit{}}
		r := &run{world: w, inWindow: map[string]map[time.Duration]uint64{}}
		r.delay = rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond, margin/2 - time.Millisecond}).Draw(t, "delay")
		var ids []ID
		for i := range rapid.IntRange(1, 3).Draw(t, "limits") {
			id := idOf("k", fmt.Sprint(i))
			w.limits[id.text()] = &fakeLimit{
				requests: rapid.Uint64Range(0, 200).Draw(t, "requests"),
				window:   rapid.SampledFrom([]time.Duration{0, 10, 60, 3600}).Draw(t, "window") * time.Second,
				used:     map[time.Duration]uint64{},
			}
			ids = append(ids, id)
			r.inWindow[id.text()] = map[time.Duration]uint64{}
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "clients") {
			r.peers = append(r.peers, &peer{
				client: newClient(w), name: fmt.Sprint(i),
				every: time.Duration(rapid.IntRange(1_000, 15_000).Draw(t, "interval")) * time.Millisecond,
			})
		}
		for range rapid.IntRange(10, 200).Draw(t, "steps") {
			p := rapid.SampledFrom(r.peers).Draw(t, "client")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2, 3:
				id := rapid.SampledFrom(ids).Draw(t, "bucket")
				for range rapid.IntRange(1, 60).Draw(t, "requests") {
					r.request(t, p, id)
				}
			case 4, 5, 6, 7, 8:
				r.pass(t, time.Duration(rapid.IntRange(1, 8_000).Draw(t, "ms"))*time.Millisecond)
			case 9: // the stream ends, and another begins: the client keeps what it has
				p.session, p.up, p.down = New(w), nil, nil
			}
			r.check(t)
		}
	})
}

func (r *run) request(t *rapid.T, p *peer, id ID) {
	admitted, first := p.client.request(r.now, id)
	if l := r.limits[id.text()]; admitted {
		window := r.windowOf(l, p.buckets[id.text()].sent)
		r.inWindow[id.text()][window]++
		if l.window > 0 && r.now >= window+l.window+r.delay {
			t.Fatalf("admitted at %v by an assignment of the window from %v", r.now, window)
		}
	}
	if first {
		h := p.buckets[id.text()]
		p.send(r, p.reports(r.now, h))
	}
}

// send puts reports on their way.
func (p *peer) send(r *run, u []Usage) {
	if len(u) > 0 {
		p.up = append(p.up, message{at: r.now + r.delay, usages: u})
	}
}

// pass lets time pass, in small steps.
func (r *run) pass(t *rapid.T, d time.Duration) {
	const step = 50 * time.Millisecond
	for end := r.now + d; r.now < end; {
		r.now = min(end, r.now+step)
		for _, p := range r.peers {
			if r.now >= p.next {
				p.next = r.now + p.every
				var all []*held
				for _, name := range slices.Sorted(maps.Keys(p.buckets)) {
					all = append(all, p.buckets[name])
				}
				p.send(r, p.reports(r.now, all...))
			}
			for len(p.up) > 0 && p.up[0].at <= r.now {
				m := p.up[0]
				p.up = p.up[1:]
				r.answer(t, p, func() ([]Action, error) { return p.session.Report(r.now, m.usages) })
			}
			if at, ok := p.session.Next(); ok && at <= r.now {
				r.answer(t, p, func() ([]Action, error) { return p.session.Tick(r.now) })
			}
			for len(p.down) > 0 && p.down[0].at <= r.now {
				for _, a := range p.down[0].actions {
					p.apply(r.now, a)
					if h := p.buckets[a.ID.text()]; h != nil {
						h.sent = p.down[0].sent
					}
				}
				p.down = p.down[1:]
			}
		}
		r.check(t)
	}
}

func (r *run) answer(t *rapid.T, p *peer, act func() ([]Action, error)) {
	out, err := act()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range out {
		t.Logf("%v %s: %+v", r.now, p.name, a)
		switch l := r.limits[a.ID.text()]; {
		case a.Kind == AllowAll:
			t.Fatalf("%v may admit everything", a)
		case a.Kind != Abandon && (a.TTL < time.Second || a.TTL%time.Second != 0 || a.TTL > maxTTL):
			t.Fatalf("%v lives for %v", a, a.TTL)
		case a.Kind == Tokens && (a.Hits == 0 || a.Hits > l.requests):
			t.Fatalf("%v has %d tokens, limit %d", a, a.Hits, l.requests)
		}
	}
	if len(out) > 0 {
		p.down = append(p.down, message{sent: r.now, at: r.now + r.delay, actions: out})
	}
}

// check compares what clients admitted with the limits.
func (r *run) check(t *rapid.T) {
	for name, l := range r.limits {
		for window, n := range r.inWindow[name] {
			if n > l.requests {
				t.Fatalf("%d admitted in the window from %v, limit %d", n, window, l.requests)
			}
			if used := l.used[window]; used > l.requests {
				t.Fatalf("%d charged in the window from %v, limit %d", used, window, l.requests)
			}
		}
	}
}
