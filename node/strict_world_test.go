package node

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// strictWorld is daemons of one node and one replica each that count strict keys,
// under whatever a seed draws: loss, duplicates, any order, crashes, lost disks,
// pauses and wrong membership. All clocks agree.
type strictWorld struct {
	t       testing.TB
	rng     *rand.Rand
	now     time.Duration
	set     *rules.Set
	front   *Matcher
	daemons []*strictDaemon
	regions int
	flight  []strictFlight
	parked  []*parkedCall
	tickets uint64
	born    uint64
	loss    float64
	fsync   time.Duration // how long each takes; 0 draws it
	hits    map[crdt.Key][]strictHit
	limits  map[crdt.Key]*rules.Limit

	maxKeys int                 // 0 for the default
	rights  func() Allotments   // nil for none
	passed  func(p *parkedCall) // called when a call was charged

	allowed, denied, failed, waited int
}

type strictHit struct {
	at int64
	n  uint64
}

type strictDaemon struct {
	name, region string
	node         *Node
	replica      *quorum.Acceptor
	disk         *quorum.Stored
	entries      []quorum.Entry // on their way to the disk
	storing      bool
	stored       time.Duration // when they will be there
	ticked       time.Duration
	paused       bool
	lives        uint64
	reach        time.Duration   // to other daemons; 0 for 50 ms
	believed     map[string]bool // as dead
	openCircuits map[crdt.Incarnation]bool
	skew         int64 // of its wall clock, in milliseconds
}

func (d *strictDaemon) Routing() *route.Routing { return d.replica.Routing() }
func (d *strictDaemon) Reach(of crdt.Incarnation) (time.Duration, bool) {
	return cmp.Or(d.reach, 50*time.Millisecond), !d.openCircuits[of]
}

type strictFlight struct {
	at time.Duration
	m  sticky.Message
}

type parkedCall struct {
	d      *strictDaemon
	c      *Call
	ticket uint64
	until  time.Duration
	rounds int
}

const strictEpoch = int64(1_700_000_040_000)

func newStrictWorld(t testing.TB, seed uint64, yaml string, sizes ...int) *strictWorld {
	w := &strictWorld{
		t: t, rng: rand.New(rand.NewPCG(seed, 5)), regions: len(sizes),
		hits: map[crdt.Key][]strictHit{}, limits: map[crdt.Key]*rules.Limit{},
	}
	names, total := []string{}, 0
	for i, n := range sizes {
		names = append(names, string(rune('a'+i)))
		total += n
	}
	var found yamlpos.Diagnostics
	w.set, found = limits.Parse([]limits.File{{Name: "l.yaml", Data: []byte(yaml)}}, limits.Options{
		Regions: names, Daemons: total, DaemonsOfRegion: sizes[0],
	})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	w.front = NewMatcher(w.set, NewHasher([SecretBytes]byte{1}), MatcherOptions{})
	for i, n := range sizes {
		for j := range n {
			d := &strictDaemon{name: fmt.Sprintf("%s%d", names[i], j+1), region: names[i], believed: map[string]bool{}, openCircuits: map[crdt.Incarnation]bool{}}
			w.daemons = append(w.daemons, d)
			w.start(d, true)
		}
	}
	w.members()
	return w
}

func (w *strictWorld) genesis() route.Layout {
	l := route.Layout{Number: 1}
	for _, d := range w.daemons {
		i := slices.IndexFunc(l.Regions, func(r route.Region) bool { return r.Name == d.region })
		if i < 0 {
			l.Regions = append(l.Regions, route.Region{Name: d.region, Weight: 1})
			i = len(l.Regions) - 1
		}
		l.Regions[i].Replicas = append(l.Regions[i].Replicas, d.name)
	}
	return l
}

func (w *strictWorld) start(d *strictDaemon, first bool) {
	w.t.Helper()
	cfg := Default()
	cfg.Region, cfg.Name, cfg.Owners = d.region, d.name, d
	cfg.Strict = OwnersConfig{Headroom: 20, Prefetch: 16}
	cfg.MaxKeys = cmp.Or(w.maxKeys, cfg.MaxKeys)
	if w.rights != nil {
		cfg.Allotments = w.rights()
	}
	w.born++
	n, err := New(cfg, rand.New(rand.NewPCG(w.born, 77)))
	if err != nil {
		w.t.Fatal(err)
	}
	d.lives++
	// The first layout is known only when all daemons are made: see members.
	d.node, d.replica, d.paused, d.entries, d.storing = n, nil, false, nil, false
	n.SetRules(w.at(d), w.set)
	if !first {
		w.open(d, false)
	}
}

func (w *strictWorld) open(d *strictDaemon, first bool) {
	if d.disk != nil && d.disk.Layout.Number == 0 {
		d.disk = nil // it ended before it had stored anything
	}
	start := quorum.Start{Stored: d.disk, First: first}
	if d.disk == nil && !first {
		start.Generation = uint64(strictEpoch) + d.lives
	}
	r, err := quorum.NewAcceptor(quorum.Config{Region: d.region, Name: d.name, Genesis: w.genesis()}, start)
	if err != nil {
		w.t.Fatal(err)
	}
	if d.disk == nil {
		d.disk = &quorum.Stored{}
	}
	d.replica = r
}

// at returns what the clocks of a daemon read, or, of none, those that are right.
func (w *strictWorld) at(of ...*strictDaemon) Instant {
	wall := strictEpoch + w.now.Milliseconds()
	if len(of) > 0 {
		wall += of[0].skew
	}
	return Instant{Mono: w.now + time.Second, Wall: wall * int64(time.Millisecond)}
}

// members tells all daemons who lives, as each believes.
func (w *strictWorld) members() {
	for _, d := range w.daemons {
		if d.node == nil {
			continue
		}
		if d.replica == nil {
			w.open(d, true)
		}
		var peers []gossip.Peer
		var seats []route.Peer
		for _, o := range w.daemons {
			if o.node == nil || d.believed[o.name] {
				continue
			}
			peers = append(peers, gossip.Peer{ID: o.node.Incarnation(), Name: o.name, Region: o.region, Ready: true})
			seats = append(seats, route.Peer{ID: o.node.Incarnation(), Name: o.name, Region: o.region, Ready: true})
		}
		d.node.Peers(w.at(d), peers)
		d.replica.Peers(w.at(d).Mono, d.node.Incarnation(), seats)
		w.drain(d)
	}
}

// drain sends what a daemon wants sent and goes on with the calls it answered.
func (w *strictWorld) drain(d *strictDaemon) {
	for range 100 {
		e := d.node.LeaseReady(w.at(d))
		r := d.replica.Ready(w.at(d).Mono)
		if r.Store != nil {
			d.entries, d.storing = r.Store, true
			d.stored = w.now + cmp.Or(w.fsync, time.Duration(w.rng.IntN(5))*time.Millisecond)
		}
		if len(e.Messages)+len(e.Answered)+len(r.Messages) == 0 {
			return
		}
		for _, m := range append(e.Messages, r.Messages...) {
			if m.To == d.node.Incarnation() {
				m.From = d.node.Incarnation()
				w.receive(d, &m)
				continue
			}
			if w.rng.Float64() < w.loss {
				continue
			}
			w.flight = append(w.flight, strictFlight{w.late(), m})
			if w.rng.Float64() < w.loss/2 {
				w.flight = append(w.flight, strictFlight{w.late(), m})
			}
		}
		for _, ticket := range e.Answered {
			w.resume(ticket, false)
		}
	}
	w.t.Fatal("a daemon never comes to rest")
}

func (w *strictWorld) receive(d *strictDaemon, m *sticky.Message) {
	d.node.StepLease(w.at(d), m)
	_ = d.replica.Receive(w.at(d).Mono, w.at(d).Wall/int64(time.Millisecond), m)
}

// store brings what a daemon stores to its disk.
func (w *strictWorld) store(d *strictDaemon) {
	if !d.storing {
		return
	}
	for _, e := range d.entries {
		if err := d.disk.Apply(e); err != nil {
			w.t.Fatal(err)
		}
	}
	d.entries, d.storing = nil, false
	d.replica.Stored()
	w.drain(d)
}

// late draws when a message arrives: soon, and now and then after much else.
func (w *strictWorld) late() time.Duration {
	at := w.now + time.Duration(w.rng.IntN(3_000))*time.Microsecond
	if w.rng.Float64() < w.loss/2 {
		at += time.Duration(w.rng.IntN(200)) * time.Millisecond
	}
	return at
}

// deliver hands over the messages that arrive by now.
func (w *strictWorld) deliver() {
	due := []strictFlight{}
	w.flight = slices.DeleteFunc(w.flight, func(f strictFlight) bool {
		if f.at <= w.now {
			due = append(due, f)
		}
		return f.at <= w.now
	})
	slices.SortStableFunc(due, func(a, b strictFlight) int { return int(a.at - b.at) })
	for i := range due {
		for _, d := range w.daemons {
			if d.node != nil && !d.paused && d.node.Incarnation() == due[i].m.To {
				w.receive(d, &due[i].m)
				w.drain(d)
			}
		}
	}
}

// ask has a daemon decide a call of some descriptors of domain d.
func (w *strictWorld) ask(d *strictDaemon, descriptors ...rules.Descriptor) *parkedCall {
	c := &Call{Domain: "d", Descriptors: descriptors}
	if err := w.front.Resolve(c); err != nil {
		w.t.Fatal(err)
	}
	p := &parkedCall{d: d, c: c}
	w.decide(p)
	w.drain(d)
	return p
}

// decide is the way of a driver: probe, seek what is missing unless the call is
// refused anyway, and charge when nothing is.
func (w *strictWorld) decide(p *parkedCall) {
	n, hits, at := p.d.node, p.c.Hits(), w.at(p.d)
	for i := range hits {
		hits[i].Ticket = p.ticket
	}
	n.Probe(at, hits, p.c.Statuses)
	w.front.Decide(p.c)
	waits := slices.ContainsFunc(p.c.Statuses, func(st Status) bool { return st.Wait })
	if waits && p.rounds >= 8 { // it has asked often enough
		for i := range hits {
			hits[i].Failed = 2
		}
		n.Probe(at, hits, p.c.Statuses)
		w.front.Decide(p.c)
		waits = false
	}
	if waits && p.c.Decision.Allowed {
		p.rounds++
		if p.ticket == 0 {
			w.tickets++
			p.ticket = w.tickets
			w.parked = append(w.parked, p)
			w.waited++
		}
		p.until = w.now
		for i := range p.c.Statuses {
			if st := &p.c.Statuses[i]; st.Wait {
				p.until = max(p.until, w.now+st.Within)
			}
		}
		n.RequestLease(at, hits, p.c.Statuses, p.ticket)
		return
	}
	n.Charge(at, hits, p.c.Statuses)
	if p.ticket != 0 {
		n.CancelLease(at, hits, p.ticket)
		w.parked = slices.DeleteFunc(w.parked, func(o *parkedCall) bool { return o == p })
	}
	w.account(p)
}

func (w *strictWorld) account(p *parkedCall) {
	w.denied++
	for i, h := range p.c.Hits() {
		st := &p.c.Statuses[i]
		if h.Limit == nil || !p.c.Decision.Allowed {
			if st.Gate == FailureGate {
				w.failed++
			}
			continue
		}
		if h.Limit.Algorithm == rules.FixedWindow || h.Limit.Algorithm == rules.SlidingWindow || true {
			w.hits[h.Key] = append(w.hits[h.Key], strictHit{p.d.node.now, h.N})
			w.limits[h.Key] = h.Limit
		}
	}
	if p.c.Decision.Allowed {
		w.denied--
		w.allowed++
		if w.passed != nil {
			w.passed(p)
		}
	}
}

// resume goes on with a call whose ticket was answered, or whose time is up.
func (w *strictWorld) resume(ticket uint64, late bool) {
	for _, p := range w.parked {
		if p.ticket != ticket {
			continue
		}
		if late {
			for i := range p.c.Statuses {
				if p.c.Statuses[i].Wait {
					p.c.Hits()[i].Failed++
				}
			}
		}
		w.decide(p)
		return
	}
}

// pass lets time pass, a millisecond at a time: messages, disks, ticks, and calls whose time is up.
func (w *strictWorld) pass(by time.Duration) {
	for end := w.now + by; w.now < end; {
		w.now += min(time.Millisecond, end-w.now)
		w.deliver()
		for _, d := range w.daemons {
			if d.node == nil || d.paused {
				continue
			}
			if d.storing && d.stored <= w.now {
				w.store(d)
			}
			if w.now-d.ticked >= 10*time.Millisecond {
				d.ticked = w.now
				d.node.Tick(w.at(d))
				d.replica.Tick(w.at(d).Mono, w.at(d).Wall/int64(time.Millisecond))
			}
			w.drain(d)
		}
		for _, p := range slices.Clone(w.parked) {
			if !p.d.paused && p.until <= w.now && slices.Contains(w.parked, p) {
				w.resume(p.ticket, true)
				w.drain(p.d)
			}
		}
	}
}

func (w *strictWorld) crash(d *strictDaemon) {
	d.node, d.replica, d.entries, d.storing = nil, nil, nil, false
	w.parked = slices.DeleteFunc(w.parked, func(p *parkedCall) bool { return p.d == d })
	w.members()
}

func (w *strictWorld) restart(d *strictDaemon, lost bool) {
	if lost {
		d.disk = nil
	}
	w.start(d, false)
	w.members()
}

// check fails when more was admitted of a key than its limit allows.
func (w *strictWorld) check(seed uint64) {
	w.t.Helper()
	for k, hits := range w.hits {
		l := w.limits[k]
		if most, allowed, at := worst(l, hits); most > allowed {
			w.t.Fatalf("seed %d: %v of %d: %d admitted from %d on, want at most %d", seed, l.Algorithm, l.Requests, most, at, allowed)
		}
	}
}

// worst returns the most that was admitted in any span that the limit bounds, and
// how much it allows there.
func worst(l *rules.Limit, hits []strictHit) (most, allowed uint64, from int64) {
	width := l.Window()
	step := quota.Of(l).Step()
	for i := range hits {
		sum := uint64(0)
		for j := i; j < len(hits); j++ {
			span := hits[j].at - hits[i].at
			limit := uint64(l.Requests)
			switch {
			case l.Algorithm.Bucket():
				sum += hits[j].n
				limit = uint64(l.Burst) + (uint64(l.Requests)*uint64(span+step)+uint64(width)-1)/uint64(width)
				if sum > limit && sum-limit > most-min(most, allowed) {
					most, allowed, from = sum, limit, hits[i].at
				}
				continue
			case l.Algorithm == rules.SlidingLog && span >= width:
				continue
			case l.Algorithm != rules.SlidingLog && hits[j].at/width != hits[i].at/width:
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
