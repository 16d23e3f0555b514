package agent

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/hlc"
	"github.com/georld/rld/quota/epoch"
)

// dawn is the start of the tests' window clock, in Unix milliseconds.
const dawn = int64(1_767_225_600_000)

// step is how far virtual time goes at once.
const step = 10 * time.Millisecond

// asked is a rule whose allotments the tests check.
type asked struct {
	id           uint64
	total        uint64
	width, carry int64 // ms
}

// rig holds agents, their disks, and the messages under way. Time passes and
// messages move only as a test and its seed decide.
type rig struct {
	t       *testing.T
	rng     *rand.Rand
	cfg     Config // what all have in common
	at      time.Duration
	daemons []*proc
	flight  []parcel
	born    crdt.Incarnation
	asked   []asked
	rules   []Rule
	// demand returns the hits offered to a daemon per second, by rule.
	demand func(p *proc, rule uint64) uint64

	// Of the network and the disks.
	delay            func(from, to *proc) time.Duration
	loss, twice      int // percent
	cut              func(from, to *proc) bool
	slowDisk, broken int                         // percent of stores that take 50 ms, that fail
	slow             func(p *proc) time.Duration // that a store takes
	failing          func(p *proc) bool
	mangle           func(m *Message) // changes a message before it is sent
	mutation         mutation

	record record
	// off reports whether the control log does not reach a daemon.
	off   func(p *proc) bool
	loses bool // a recovery drops what is proposed

	used  map[window]map[crdt.Incarnation]uint64 // the greatest allotment by incarnation
	bytes [2]int                                 // sent inside regions and across
	sent  [2]int
	size  func(m *Message) int
	log   []string
	// forget starts a daemon that lost its memory in another way than ours.
	forget  func(p *proc)
	history []string
}

// window is a window of a rule.
type window struct {
	rule  int
	start int64
}

// proc is a daemon, and its disk.
type proc struct {
	diskless bool
	*Agent
	name, region string
	self         crdt.Incarnation
	user         crdt.Incarnation // that counts its use: of runs that took up accounts the first
	left         bool             // a run that stopped left accounts
	skew         int64
	clockOff     bool
	disk         *Stored
	up           bool
	downAt       time.Duration
	upAt         time.Duration
	last         hlc.Timestamp
	writing      *Stored
	written      time.Duration
	hits         map[uint64]uint64
	events       []Event
	ids          int           // that it had before this one
	leaving      time.Duration // when its rights end at the latest, 0 if it does not leave
	serves       time.Duration // until then it does not
}

type parcel struct {
	at          time.Duration
	to          *proc
	incarnation crdt.Incarnation
	m           Message
}

// newRig makes regions a, b, ... of n daemons each: a1, a2, b1 and so on.
func newRig(t *testing.T, seed uint64, n ...int) *rig {
	r := &rig{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), at: time.Second, born: 100,
		used:   map[window]map[crdt.Incarnation]uint64{},
		record: record{founders: map[uint64][]uint64{}},
		delay:  func(from, to *proc) time.Duration { return 5 * time.Millisecond },
		asked:  []asked{{11, 10_007, 1_000, 0}, {12, 999, 1_000, 1_000}, {13, 100_000, 7_000, 0}},
		cfg:    Config{DaemonHorizon: 30 * time.Second, Cluster: 7},
	}
	r.delay = func(from, to *proc) time.Duration {
		if from.region != to.region {
			return 80 * time.Millisecond
		}
		return time.Millisecond
	}
	for _, a := range r.asked {
		r.rules = append(r.rules, Rule{ID: a.id})
	}
	for i, k := range n {
		region := string(rune('a' + i))
		r.cfg.Genesis = append(r.cfg.Genesis, Region{Name: region, ID: regionOf(region, 0)})
		for j := range k {
			r.daemons = append(r.daemons, &proc{name: fmt.Sprint(region, j+1), region: region})
		}
	}
	return r
}

// config returns the configuration of a daemon in a generation of its region.
func (r *rig) config(p *proc, generation uint64) Config {
	c := r.cfg
	c.Region, c.Name, c.Self, c.Generation, c.Diskless = p.region, p.name, p.id(), generation, p.diskless
	c.Founders, c.Horizon = r.record.founders[generation], c.horizon()
	return c
}

// boot begins the cluster and starts all daemons. Those with names of two
// letters are founders.
func (r *rig) boot() {
	r.found()
	for _, p := range r.daemons {
		r.start(p)
	}
}

// join adds a daemon that is no founder. Its name has three letters.
func (r *rig) join(region string) *proc { return r.add(region, false) }

// joinDiskless adds a daemon without a disk.
func (r *rig) joinDiskless(region string) *proc { return r.add(region, true) }

func (r *rig) add(region string, diskless bool) *proc {
	p := &proc{name: fmt.Sprintf("%s%02d", region, len(r.daemons)), region: region, diskless: diskless}
	r.daemons = append(r.daemons, p)
	r.start(p)
	return p
}

// start starts a daemon as its disk and the record have it.
func (r *rig) start(p *proc) {
	s := Start{Record: p.disk, Accounts: p.left && p.disk != nil}
	generation := regionOf(p.region, r.record.generations[p.region])
	if p.disk != nil {
		generation = p.disk.Region.Owner
	}
	c := r.config(p, generation)
	s.Found = p.disk == nil && slices.Contains(c.Founders, c.Self)
	o, err := newAgent(c, s)
	if err != nil {
		r.t.Fatalf("start %s: %v", p.name, err)
	}
	r.born++
	p.Agent, p.self, p.up, p.upAt, p.writing, p.hits = o, r.born, true, r.at, nil, map[uint64]uint64{}
	if p.left = false; !s.Accounts {
		p.user = p.self
	}
	o.Rules(r.rules)
}

func (r *rig) crash(p *proc) {
	p.up, p.downAt, p.Agent, p.writing, p.leaving, p.left = false, r.at, nil, nil, 0, false
}

// restart starts a daemon from its disk, or without memory when it is lost or
// there is none.
func (r *rig) restart(p *proc, lost bool) {
	if lost || p.diskless {
		p.disk = nil
		if r.forget != nil {
			r.forget(p)
		} else {
			p.ids++
		}
	}
	r.start(p)
}

func (r *rig) find(name string) *proc {
	i := slices.IndexFunc(r.daemons, func(p *proc) bool { return p.name == name })
	if i < 0 {
		r.t.Fatalf("no daemon %s", name)
	}
	return r.daemons[i]
}

func (r *rig) now(p *proc) int64 { return dawn + r.at.Milliseconds() + p.skew }

func stampAt(ms int64) hlc.Timestamp { return hlc.New(ms, 0) }

func (r *rig) stamp(p *proc) hlc.Timestamp {
	p.last = max(p.last.Next(), hlc.New(r.now(p), 0))
	return p.last
}

// peers are the live daemons by membership: the dead for two seconds more.
func (r *rig) peers() []gossip.Peer {
	var out []gossip.Peer
	for _, p := range r.daemons {
		if p.self != 0 && (p.up && r.at-p.upAt >= 100*time.Millisecond || !p.up && r.at-p.downAt < 2*time.Second) {
			out = append(out, gossip.Peer{ID: p.self, Name: p.name, Region: p.region, Ready: true})
		}
	}
	return out
}

// run lets virtual time pass.
func (r *rig) run(d time.Duration) {
	for end := r.at + d; r.at < end; {
		r.at += step
		r.deliver()
		peers := r.peers()
		for _, p := range r.daemons {
			if p.up {
				r.turn(p, peers)
			}
			r.endLeaving(p)
		}
		r.observe()
	}
}

func (r *rig) turn(p *proc, peers []gossip.Peer) {
	if r.at%(50*time.Millisecond) == 0 {
		r.follow(p)
		p.Peers(r.at, p.self, peers)
	}
	if r.demand != nil && r.at%(100*time.Millisecond) == 0 {
		for _, rule := range r.rules {
			p.hits[rule.ID] += r.demand(p, rule.ID) / 10
			p.Demand(rule.ID, p.hits[rule.ID])
		}
	}
	if r.at%(20*time.Millisecond) == 0 {
		p.Tick(r.at, r.stamp(p), p.clockOff)
	}
	if p.writing != nil && r.at >= p.written {
		p.disk, p.writing = p.writing, nil
		if r.mutation&mutationEarly == 0 {
			p.Stored()
		}
	}
	r.ready(p)
}

func (r *rig) ready(p *proc) {
	for {
		if r.mutation&mutationSpeak != 0 {
			speak(p.Agent)
		}
		out := p.Ready(r.at)
		p.events = append(p.events, out.Events...)
		for _, m := range out.Messages {
			r.send(p, m)
		}
		if out.Proposal != nil {
			p.ProposalDone(r.commit(p, *out.Proposal))
			continue
		}
		if out.Store == nil {
			return
		}
		switch {
		case r.slow != nil && r.slow(p) > 0:
			p.writing, p.written = out.Store, r.at+r.slow(p)
			if r.mutation&mutationEarly == 0 {
				return
			}
			p.Stored()
		case r.failing != nil && r.failing(p) || r.chance(r.broken):
			p.Failed(errors.New("no space left on device"))
		case r.chance(r.slowDisk):
			p.writing, p.written = out.Store, r.at+50*time.Millisecond
			return
		default:
			p.disk = out.Store
			p.Stored()
		}
	}
}

func (r *rig) chance(percent int) bool { return percent > 0 && r.rng.IntN(100) < percent }

func (r *rig) send(p *proc, m Message) {
	i := slices.IndexFunc(r.daemons, func(d *proc) bool { return d.self == m.To })
	if i < 0 {
		return
	}
	to := r.daemons[i]
	if r.mutation == 0 {
		r.stored(p, m.Daemons.Acks, m.Votes)
	}
	if r.mutation&mutationUnheld != 0 {
		unheld(&m)
	}
	if r.mangle != nil {
		r.mangle(&m)
	}
	across := 0
	if to.region != p.region {
		across = 1
	}
	r.sent[across]++
	if r.size != nil {
		r.bytes[across] += r.size(&m)
	}
	if r.cut != nil && r.cut(p, to) || r.chance(r.loss) {
		return
	}
	for range 2 {
		d := r.delay(p, to)
		if r.loss > 0 {
			d += time.Duration(r.rng.Int64N(int64(d)*3 + 1))
		}
		r.flight = append(r.flight, parcel{r.at + d, to, m.To, m})
		if !r.chance(r.twice) {
			return
		}
	}
}

// stored fails the test for a promise of a daemon that is not on its disk.
func (r *rig) stored(p *proc, acks []epoch.Ack, votes []epoch.Vote) {
	kept := func(acks []epoch.Ack, id epoch.ID) bool {
		return slices.ContainsFunc(acks, func(a epoch.Ack) bool { return a.ID == id })
	}
	for _, a := range acks {
		if a.By == p.id() && !kept(p.disk.Local.Acks, a.ID) {
			r.t.Fatalf("%v: %s uses its acknowledgement of %s before it is stored", r.at, p.name, a.ID)
		}
	}
	for _, v := range votes {
		if v.Daemon == p.id() && !kept(p.disk.Region.Acks, v.Ack.ID) {
			r.t.Fatalf("%v: %s uses its vote for %s before it is stored", r.at, p.name, v.Ack.ID)
		}
	}
}

func (r *rig) deliver() {
	var due []parcel
	r.flight = slices.DeleteFunc(r.flight, func(p parcel) bool {
		if p.at <= r.at {
			due = append(due, p)
		}
		return p.at <= r.at
	})
	for _, d := range due {
		if !d.to.up || d.to.self != d.incarnation {
			continue
		}
		d.to.last = max(d.to.last, d.m.Stamp)
		if err := d.to.Receive(r.at, r.now(d.to), &d.m); err != nil && !errors.Is(err, ErrNotPeer) && !errors.Is(err, ErrGenesis) {
			r.t.Fatalf("%v: %s: %v", r.at, d.to.name, err)
		}
		r.ready(d.to)
	}
}

// observe reads the allotments of every daemon for the windows its clock has
// reached, and checks that all incarnations together never got more than the
// total.
func (r *rig) observe() {
	for _, p := range r.daemons {
		if !p.up {
			continue
		}
		if r.mutation == 0 {
			r.stored(p, nil, p.votes)
		}
		for i, a := range r.asked {
			now := r.now(p)
			for back := range int64(2) {
				x := now - now%a.width - back*a.width
				base, why := p.Former(a.id, a.total, x, a.carry, false)
				if why != epoch.ReasonEpoch && base != 0 {
					r.t.Fatalf("%s holds %d though %v", p.name, base, why)
				}
				r.note(window{i, x}, p, base)
			}
		}
	}
	if len(r.used) > 1_000 {
		for l := range r.used {
			if l.start < dawn+r.at.Milliseconds()-60_000 {
				delete(r.used, l)
			}
		}
	}
}

func (r *rig) note(l window, p *proc, base uint64) {
	generations := r.used[l]
	if generations == nil {
		generations = map[crdt.Incarnation]uint64{}
		r.used[l] = generations
	}
	if base <= generations[p.user] {
		return
	}
	generations[p.user] = base
	sum := uint64(0)
	for _, b := range generations {
		sum += b
	}
	if sum > r.asked[l.rule].total && len(r.log) < 20 {
		r.log = append(r.log, fmt.Sprintf("%v: rule %d, label %+d ms: %d of %d, last %s: %v",
			r.at, l.rule, l.start-dawn, sum, r.asked[l.rule].total, p.name, generations))
	}
}

// safe fails the test if more was held than there is.
func (r *rig) safe() {
	r.t.Helper()
	for _, line := range r.log {
		r.t.Error(line)
	}
	if r.t.Failed() {
		r.t.FailNow()
	}
}
