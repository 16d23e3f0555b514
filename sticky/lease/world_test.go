package lease

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// world is daemons of one table and one acceptor each, with a network and
// disks that may lose, repeat, reorder and delay. Daemons may crash, pause,
// lose their disks and have wrong views of membership. Regions are a, b and so
// on; daemons are a1, a2, b1 and so on.
type world struct {
	t       testing.TB
	rng     *rand.Rand
	now     time.Duration
	set     *rules.Set
	daemons []*daemon
	regions int
	flight  []flight
	pending []*call
	layouts quorum.Layouts
	tickets uint64
	born    crdt.Incarnation
	loss    float64
	fsync   time.Duration // of each store; 0 draws it
	hits    map[crdt.Key][]admitted
	limits  map[crdt.Key]*rules.Limit

	maxKeys    int               // 0 for the default
	first      string            // the only region of the first layout, "" for all
	hashing    string            // selects the hash of keys, and so their owners
	colliding  bool              // the hash of all keys is one of two
	allotments func() Allotments // nil for none
	charged    func(c *call)     // called after each admitted call
	decided    func(c *call)     // called after each call
	// link returns the delay of a message and whether it is lost; nil draws
	// both.
	link func(from *daemon, m *sticky.Message) (delay time.Duration, lost bool)

	allowed, denied, failed, waited int
}

// admitted is hits that were admitted at an instant.
type admitted struct {
	at int64
	n  uint64
}

type daemon struct {
	name, region string
	id           crdt.Incarnation
	table        *Table // nil while the daemon is down
	clock        *hlc.Clock
	acceptor     *quorum.Acceptor
	disk         *quorum.Stored
	entries      []quorum.Entry // on their way to the disk
	storing      bool
	written      bool          // the disk has something
	stored       time.Duration // when they will be there
	ticked       time.Duration
	paused       bool
	starts       uint64
	live         map[crdt.Incarnation]bool
	eventual     map[crdt.Key]uint64 // hits of limits without an owner
	reach        time.Duration       // to other daemons; 0 for 50 ms
	believedDead map[string]bool
	openBreakers map[crdt.Incarnation]bool
	skew         int64 // of its wall clock, in milliseconds
}

func (d *daemon) Routing() *route.Routing { return d.acceptor.Routing() }

func (d *daemon) Reach(of crdt.Incarnation) (time.Duration, bool) {
	return cmp.Or(d.reach, 50*time.Millisecond), !d.openBreakers[of]
}

type flight struct {
	at time.Duration
	m  sticky.Message
}

const epochMillis = int64(1_700_000_040_000)

func newWorld(t testing.TB, seed uint64, yaml string, sizes ...int) *world {
	w := &world{t: t}
	w.init(seed, yaml, sizes...)
	return w
}

// newUserWorld returns a world with one limit, of each user.
func newUserWorld(t testing.TB, limit string, sizes ...int) *world {
	return newWorld(t, 1, "domain: d\ndescriptors:\n  - key: user\n    rate_limit: {"+limit+"}\n", sizes...)
}

func (w *world) init(seed uint64, yaml string, sizes ...int) {
	w.rng, w.regions = rand.New(rand.NewPCG(seed, 5)), len(sizes)
	w.hits, w.limits = map[crdt.Key][]admitted{}, map[crdt.Key]*rules.Limit{}
	for i, n := range sizes {
		for j := range n {
			region := string(rune('a' + i))
			w.daemons = append(w.daemons, &daemon{
				name: fmt.Sprintf("%s%d", region, j+1), region: region,
				believedDead: map[string]bool{}, openBreakers: map[crdt.Incarnation]bool{},
			})
		}
	}
	w.set = w.parse(yaml)
	w.layouts.Begin(w.firstLayout(), w.report)
	for _, d := range w.daemons {
		w.start(d, true)
	}
	w.members()
	for range 2 { // all vote
		for _, d := range w.daemons {
			w.store(d)
		}
	}
}

// parse reads limits for the daemons of the world.
func (w *world) parse(yaml string) *rules.Set {
	w.t.Helper()
	first := 0
	names := []string{}
	for _, d := range w.daemons {
		if !slices.Contains(names, d.region) {
			names = append(names, d.region)
		}
		if d.region == "a" {
			first++
		}
	}
	set, found := limits.Parse([]limits.File{{Name: "l.yaml", Data: []byte(yaml)}}, limits.Options{
		Regions: names, Daemons: len(w.daemons), DaemonsOfRegion: first,
	})
	if err := found.Err(); err != nil {
		w.t.Fatal(err)
	}
	return set
}

// reload puts other limits in force at all daemons, or at some.
func (w *world) reload(yaml string, at ...*daemon) {
	w.t.Helper()
	w.set = w.parse(yaml)
	if at == nil {
		at = w.daemons
	}
	for _, d := range at {
		if d.table != nil {
			d.table.SetRules(w.set)
		}
	}
}

func (w *world) firstLayout() route.Layout {
	l := route.Layout{Number: 1}
	for _, d := range w.daemons {
		if w.first != "" && d.region != w.first {
			continue
		}
		i := slices.IndexFunc(l.Regions, func(r route.Region) bool { return r.Name == d.region })
		if i < 0 {
			l.Regions = append(l.Regions, route.Region{Name: d.region, Weight: 1})
			i = len(l.Regions) - 1
		}
		l.Regions[i].Replicas = append(l.Regions[i].Replicas, d.name)
	}
	return l
}

// start starts a daemon, the first time with an empty disk.
func (w *world) start(d *daemon, first bool) {
	w.t.Helper()
	w.born++
	d.starts++
	d.id, d.live, d.eventual = w.born<<32|crdt.Incarnation(w.rng.Uint32()), map[crdt.Incarnation]bool{}, map[crdt.Key]uint64{}
	d.clock = hlc.NewClock(hlc.Config{})
	d.clock.HoldJumps(true)
	env := Env{
		Self: d.id, Region: d.region, MaxKeys: cmp.Or(w.maxKeys, 1_000_000), MaxOffset: hlc.DefaultMaxOffset.Milliseconds(),
		Owners: d, Live: func(id crdt.Incarnation) bool { return d.live[id] }, Holds: func(crdt.Key) bool { return true },
	}
	if w.allotments != nil {
		env.Allotments = w.allotments()
	}
	d.table, d.paused, d.entries, d.storing = New(Config{Headroom: 20, Prefetch: 16}, env, w.set), false, nil, false
	w.open(d, first)
}

// open opens the acceptor of a daemon on its disk.
func (w *world) open(d *daemon, first bool) {
	if d.disk != nil && !d.written {
		d.disk = nil // it ended before it had stored anything
	}
	start := quorum.Start{Stored: d.disk}
	if d.disk == nil && !first {
		start.Generation = uint64(epochMillis) + d.starts
	}
	a, err := quorum.NewAcceptor(quorum.Config{Region: d.region, Name: d.name}, start)
	if err != nil {
		w.t.Fatal(err)
	}
	if d.disk == nil {
		d.disk, d.written = &quorum.Stored{}, false
	}
	d.acceptor = a
	a.Follow(0, w.layouts.Active, w.layouts.Announced)
}

// follow lets all daemons learn the layouts.
func (w *world) follow() {
	w.layouts.Turn(w.wall()+1_000, w.report)
	for _, d := range w.daemons {
		if d.table != nil && !d.paused {
			d.acceptor.Follow(w.at(d).Mono, w.layouts.Active, w.layouts.Announced)
		}
	}
}

// report returns what a live voter has on disk.
func (w *world) report(_, name string) (quorum.Report, bool) {
	for _, d := range w.daemons {
		if d.name == name && d.table != nil && !d.paused {
			return d.acceptor.Report(), true
		}
	}
	return quorum.Report{}, false
}

// at returns the reading of a daemon's clocks.
func (w *world) at(d *daemon) hlc.Instant {
	return hlc.Instant{Mono: w.now + time.Second, Wall: (w.wall() + d.skew) * int64(time.Millisecond)}
}

// wall returns the true time in Unix milliseconds.
func (w *world) wall() int64 { return epochMillis + w.now.Milliseconds() }

// clocks returns the time as a daemon's table gets it.
func (w *world) clocks(d *daemon) Now {
	at := w.at(d)
	return Now{Mono: at.Mono, Millis: d.clock.Millis(at)}
}

// members updates the daemons' views of the live ones.
func (w *world) members() {
	for _, d := range w.daemons {
		if d.table == nil {
			continue
		}
		clear(d.live)
		var peers []route.Peer
		for _, o := range w.daemons {
			if o.table != nil && !d.believedDead[o.name] {
				d.live[o.id] = true
				peers = append(peers, route.Peer{ID: o.id, Name: o.name, Region: o.region, Ready: true})
			}
		}
		d.acceptor.Peers(w.at(d).Mono, d.id, peers)
		w.measure(d)
		w.drain(d)
	}
}

// measure has the acceptor of a daemon measure the clocks of the others.
func (w *world) measure(d *daemon) {
	var leads []quorum.Lead
	for _, o := range w.daemons {
		if o.table != nil {
			leads = append(leads, quorum.Lead{Peer: o.id, By: time.Duration(o.skew-d.skew) * time.Millisecond})
		}
	}
	d.acceptor.Clocks(w.at(d).Mono, w.at(d).Wall/int64(time.Millisecond), leads)
}

// drain sends the messages of a daemon and resumes the calls it answered.
func (w *world) drain(d *daemon) {
	for range 100 {
		ready := d.table.Ready()
		stamp := d.clock.Now(w.at(d))
		for i := range ready.Messages {
			ready.Messages[i].Stamp, ready.Messages[i].Number = stamp, d.Routing().Number()
		}
		r := d.acceptor.Ready(w.at(d).Mono)
		if r.Store != nil {
			d.entries, d.storing = r.Store, true
			d.stored = w.now + cmp.Or(w.fsync, time.Duration(w.rng.IntN(5))*time.Millisecond)
		}
		if len(ready.Messages)+len(ready.Answered)+len(r.Messages) == 0 {
			return
		}
		for _, m := range append(ready.Messages, r.Messages...) {
			w.send(d, m)
		}
		for _, ticket := range ready.Answered {
			w.resume(ticket, false)
		}
	}
	w.t.Fatal("a daemon never comes to rest")
}

func (w *world) send(d *daemon, m sticky.Message) {
	if w.link != nil {
		if delay, lost := w.link(d, &m); !lost && m.To != d.id {
			w.flight = append(w.flight, flight{w.now + delay, m})
		}
	}
	if m.To == d.id {
		m.From = d.id
		w.receive(d, &m)
		return
	}
	if w.link != nil || w.rng.Float64() < w.loss {
		return
	}
	w.flight = append(w.flight, flight{w.arrival(), m})
	if w.rng.Float64() < w.loss/2 {
		w.flight = append(w.flight, flight{w.arrival(), m})
	}
}

func (w *world) receive(d *daemon, m *sticky.Message) (rejected int) {
	_ = d.clock.Observe(w.at(d), m.Stamp)
	rejected = d.table.Step(w.clocks(d), m)
	_ = d.acceptor.Receive(w.at(d).Mono, w.at(d).Wall/int64(time.Millisecond), m)
	return rejected
}

// store brings the entries of a daemon to its disk.
func (w *world) store(d *daemon) {
	if !d.storing {
		return
	}
	for _, e := range d.entries {
		if err := d.disk.Apply(e); err != nil {
			w.t.Fatal(err)
		}
	}
	d.entries, d.storing, d.written = nil, false, true
	d.acceptor.Stored()
	w.drain(d)
}

// arrival draws when a message arrives: soon, and sometimes after many others.
func (w *world) arrival() time.Duration {
	at := w.now + time.Duration(w.rng.IntN(3_000))*time.Microsecond
	if w.rng.Float64() < w.loss/2 {
		at += time.Duration(w.rng.IntN(200)) * time.Millisecond
	}
	return at
}

// deliver delivers the messages that arrive by now.
func (w *world) deliver() {
	due := []flight{}
	w.flight = slices.DeleteFunc(w.flight, func(f flight) bool {
		if f.at <= w.now {
			due = append(due, f)
		}
		return f.at <= w.now
	})
	slices.SortStableFunc(due, func(a, b flight) int { return cmp.Compare(a.at, b.at) })
	for i := range due {
		for _, d := range w.daemons {
			if d.table != nil && !d.paused && d.id == due[i].m.To {
				w.receive(d, &due[i].m)
				w.drain(d)
			}
		}
	}
}

// pass advances time by a millisecond after the other: messages, disks, ticks,
// and calls whose time is up.
func (w *world) pass(by time.Duration) {
	for end := w.now + by; w.now < end; {
		w.now += min(time.Millisecond, end-w.now)
		w.follow()
		w.deliver()
		for _, d := range w.daemons {
			if d.table == nil || d.paused {
				continue
			}
			if d.storing && d.stored <= w.now {
				w.store(d)
			}
			if w.now-d.ticked >= 10*time.Millisecond {
				d.ticked = w.now
				d.table.Tick(w.clocks(d))
				w.measure(d)
				d.acceptor.Tick(w.at(d).Mono, w.at(d).Wall/int64(time.Millisecond))
			}
			w.drain(d)
		}
		for _, c := range slices.Clone(w.pending) {
			if !c.d.paused && c.until <= w.now && slices.Contains(w.pending, c) {
				w.resume(c.ticket, true)
				w.drain(c.d)
			}
		}
	}
}

func (w *world) crash(d *daemon) {
	d.table, d.entries, d.storing = nil, nil, false
	w.pending = slices.DeleteFunc(w.pending, func(c *call) bool { return c.d == d })
	w.members()
}

func (w *world) restart(d *daemon, lost bool) {
	if lost {
		d.disk = nil
	}
	w.start(d, false)
	w.members()
}
