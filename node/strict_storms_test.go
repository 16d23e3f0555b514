package node

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// strictStorm harms a world in more ways than storm does: clocks are apart and step,
// layouts change, rules are read again, the office that says what regions hold
// wavers, circuits open, calls are refunded or refused by another limit, and keys
// are more than there is room for.
type strictStorm struct {
	*strictWorld
	most     int64 // that two clocks were apart, in milliseconds
	receipts []strictReceipt
	parts    uint64 // version of the office
	layouts  int
	apart    int64 // 1 for clocks within the greatest offset, more for others
}

type strictReceipt struct {
	d   *strictDaemon
	n   *Node
	r   Receipt
	hit strictHit
}

// waveringRegion says that a region holds its even part of total, or less for a while.
type waveringRegion struct{ s *strictStorm }

func (o *waveringRegion) Version() uint64 { return o.s.parts }
func (o *waveringRegion) Allotment(_, total uint64, _, _ int64, _ bool) (uint64, epoch.Reason) {
	return 0, epoch.ReasonEpoch
}
func (o *waveringRegion) PartOf(_ string, _, _ uint64, _, _ int64, _ bool) uint64 { return 0 }
func (o *waveringRegion) RegionPart(_ string, _, _ uint64, _, _ int64) uint64     { return 0 }
func (o *waveringRegion) RegionAllotment(_, total uint64, _, _ int64) (uint64, epoch.Reason) {
	return total / uint64(o.s.regions) * (4 - o.s.parts%5) / 4, epoch.ReasonEpoch
}

const stormRules = strictRules + `
  - key: placed
    rate_limit: {unit: second, requests_per_unit: 30, consistency: partition, placement: region}
  - key: meter
    rate_limit: {unit: second, requests_per_unit: 60, burst: 40, algorithm: token_bucket, consistency: partition, placement: region}
  - key: own
    rate_limit: {unit: second, requests_per_unit: 9, consistency: strict, scope: region}
  - key: halves
    rate_limit: {unit: second, requests_per_unit: 24, algorithm: sliding_log, consistency: strict, on_failure: {share: 50%}}
  - key: none
    rate_limit: {unit: day, requests_per_unit: 1}
`

func newStrictStorm(t testing.TB, seed uint64) *strictStorm {
	s := &strictStorm{strictWorld: newStrictWorld(t, seed, stormRules, 3, 1+2*int(seed%2))}
	s.loss, s.apart = float64(seed%4)/10, 1
	if seed%5 == 4 {
		s.apart = 20
	}
	s.rights = func() Allotments { return &waveringRegion{s} }
	if seed%4 == 3 {
		s.maxKeys = 5
	}
	for _, d := range s.daemons {
		d.node.cfg.Allotments = s.rights()
		if s.maxKeys > 0 {
			d.node.keys.max = s.maxKeys
		}
	}
	s.passed = s.keep
	return s
}

// keep notes the receipts of a call.
func (s *strictStorm) keep(p *parkedCall) {
	n, hits := p.d.node, p.c.Hits()
	to := make([]Receipt, len(hits))
	n.Receipts(s.at(p.d), hits, p.c.Statuses, to)
	for i := range to {
		if to[i].Hits > 0 && p.c.Statuses[i].homed {
			s.receipts = append(s.receipts, strictReceipt{p.d, n, to[i], strictHit{n.now, hits[i].N}})
		}
	}
}

// refund gives the hits of a receipt back.
func (s *strictStorm) refund() {
	if len(s.receipts) == 0 {
		return
	}
	i := s.rng.IntN(len(s.receipts))
	r := s.receipts[i]
	s.receipts = slices.Delete(s.receipts, i, i+1)
	if r.d.node != r.n || r.d.paused {
		return
	}
	got := r.n.Refund(s.at(r.d), &r.r, r.r.Hits)
	s.drain(r.d)
	if got.Hits < r.r.Hits || s.limits[r.r.Key].Algorithm.Bucket() {
		return // what was used of a bucket stays used
	}
	hits := s.hits[r.r.Key]
	if i := slices.Index(hits, r.hit); i >= 0 {
		s.hits[r.r.Key] = slices.Delete(hits, i, i+1)
	}
}

var stormKeys = []string{"fixed", "sliding", "log", "bucket", "leaky", "share", "big", "placed", "meter", "own", "halves"}

func (s *strictStorm) call(d *strictDaemon) {
	key := stormKeys[s.rng.IntN(len(stormKeys))]
	n := uint64(s.rng.IntN(4))
	switch s.rng.IntN(8) {
	case 0:
		s.ask(d, strictly(key, max(n, 1)), strictly(stormKeys[s.rng.IntN(len(stormKeys))], 1))
	case 1: // refused by another limit, but for the first
		s.ask(d, strictly(key, max(n, 1)), strictly("none", 1))
	case 2:
		c := &Call{Domain: "d", Descriptors: []rules.Descriptor{strictly(key, 1)}, Peek: true}
		if err := s.front.Resolve(c); err != nil {
			s.t.Fatal(err)
		}
		allowed := s.allowed
		hits := s.hits
		s.hits = map[crdt.Key][]strictHit{}
		p := &parkedCall{d: d, c: c, rounds: 8} // never waits
		s.decide(p)
		s.drain(d)
		s.hits, s.allowed = hits, allowed
	default:
		s.ask(d, strictly(key, max(n, 1)))
	}
}

func (s *strictStorm) run(steps int) {
	for range steps {
		d := s.daemons[s.rng.IntN(len(s.daemons))]
		switch r := s.rng.IntN(1000); {
		case r < 400:
			if d.node != nil && !d.paused {
				s.call(d)
			}
		case r < 930:
			s.pass(time.Duration(1+s.rng.IntN(4)) * time.Millisecond)
		case r < 936:
			s.crashOrStart(d)
		case r < 942:
			d.paused = !d.paused && d.node != nil
		case r < 950:
			if o := s.daemons[s.rng.IntN(len(s.daemons))]; o != d {
				d.believed[o.name] = !d.believed[o.name]
				s.members()
			}
		case r < 958:
			d.skew = []int64{0, 0, 30, -30, 90, -90, 120}[s.rng.IntN(7)] * s.apart
			for _, o := range s.daemons {
				s.most = max(s.most, d.skew-o.skew, o.skew-d.skew)
			}
		case r < 963:
			s.parts++
		case r < 970:
			if o := s.daemons[s.rng.IntN(len(s.daemons))]; o.node != nil {
				d.openCircuits[o.node.Incarnation()] = !d.openCircuits[o.node.Incarnation()]
			}
		case r < 985:
			s.refund()
		case r < 988:
			s.change(d)
		case r < 990:
			if d.node != nil {
				d.node.SetRules(s.at(d), s.set)
			}
		default:
			s.pass(time.Duration(s.rng.IntN(300)) * time.Millisecond)
		}
		s.marked()
	}
}

// marked checks that no home consumed more of a window than a majority holds,
// beside what others did.
func (s *strictStorm) marked() {
	s.t.Helper()
	for _, d := range s.daemons {
		if d.node == nil {
			continue
		}
		for _, led := range d.node.desk.all {
			r := s.set.Find(led.id)
			if b := led.bank; b == nil || !b.taken || r.Limit.Algorithm != rules.FixedWindow || b.row.Window != b.window {
				continue
			}
			b := led.bank
			used, held := b.row.Used-min(b.row.Used, b.row.Back), max(b.marked(b.window), b.others.Amount(b.window))
			if used > held {
				s.t.Fatalf("%s consumed %d of what is marked up to %d: %+v", d.name, used, held, b)
			}
		}
	}
}

// crashOrStart is that of the world, but that no disk is lost which would leave a
// region without votes for good.
func (s *strictStorm) crashOrStart(d *strictDaemon) {
	if d.node != nil {
		s.strictWorld.crashOrStart(d)
		return
	}
	lose := s.rng.IntN(3) == 0
	others := 0
	for _, o := range s.daemons {
		if o != d && o.region == d.region {
			others++
			if o.replica == nil || !votes(o) {
				lose = false
			}
		}
	}
	s.restart(d, lose && others > 0 && s.layouts == 0)
}

func votes(d *strictDaemon) bool { return d.disk != nil && d.disk.Meta.Voting && d.disk.Next == nil }

// change puts another layout in force, where that may be.
func (s *strictStorm) change(d *strictDaemon) {
	if d.replica == nil || d.paused {
		return
	}
	for _, o := range s.daemons {
		if o.replica == nil || o.replica.Layout().Number != d.replica.Layout().Number || o.disk.Next != nil {
			return // one at a time
		}
	}
	l := d.replica.Layout()
	r := &l.Regions[s.rng.IntN(len(l.Regions))]
	switch s.rng.IntN(3) {
	case 0:
		r.Weight = uint32(1 + s.rng.IntN(3))
	case 1:
		rule := s.set.Rules()[s.rng.IntN(len(s.set.Rules()))]
		l.Pins = []route.Pin{{Rule: uint64(rule.ID), Region: r.Name}}
	case 2:
		var names []string
		for _, o := range s.daemons {
			if o.region == r.Name {
				names = append(names, o.name)
			}
		}
		if s.rng.IntN(2) == 0 {
			names = names[:1]
		}
		r.Replicas = names
	}
	if d.replica.Propose(l) == nil {
		s.layouts++
	}
	s.drain(d)
}

// calm ends all harm and waits.
func (s *strictStorm) calm() {
	s.loss, s.parts = 0, s.parts/5*5+5
	for _, d := range s.daemons {
		d.believed, d.openCircuits, d.paused = map[string]bool{}, map[crdt.Incarnation]bool{}, false
		if d.node == nil {
			s.restart(d, false)
		}
	}
	s.members()
	s.pass(4 * time.Second)
}

// within checks all limits, with as much slack as the clocks were apart.
func (s *strictStorm) within(seed uint64) {
	s.t.Helper()
	for k, hits := range s.hits {
		l := *s.limits[k]
		if !l.Homed() {
			continue
		}
		hits = slices.Clone(hits)
		slices.SortStableFunc(hits, func(a, b strictHit) int { return int(a.at - b.at) })
		regions := uint64(1)
		if l.Scope == rules.Region {
			regions = uint64(s.regions)
		}
		for i := range hits {
			sum := uint64(0)
			for _, h := range hits[i:] {
				span := h.at - hits[i].at
				limit := uint64(l.Requests) * regions
				switch {
				case l.Algorithm.Bucket():
					t := span + quota.Of(&l).Step() + 2*s.most
					limit = uint64(l.Burst) + (uint64(l.Requests)*uint64(t)+uint64(l.Window())-1)/uint64(l.Window())
				case l.Algorithm == rules.SlidingLog && span >= l.Window()-s.most:
					continue
				case l.Algorithm != rules.SlidingLog && h.at/l.Window() != hits[i].at/l.Window():
					continue
				}
				if sum += h.n; sum > limit {
					s.t.Fatalf("seed %d: %v of %d, %v %v: %d admitted in %d ms from %d on, want at most %d", seed, l.Algorithm, l.Requests, l.Consistency, l.Placed, sum, span, hits[i].at, limit)
				}
			}
		}
	}
}

// rested checks that nothing is left of what the storm began.
func (s *strictStorm) rested(seed uint64) {
	s.t.Helper()
	for _, p := range s.parked {
		s.t.Errorf("seed %d: a call still waits: %v", seed, p)
	}
	for _, d := range s.daemons {
		for _, l := range d.node.desk.all {
			if len(l.waiters) > 0 || l.credit.reserved > 0 || len(l.credit.asks) > 0 || l.bank != nil && (l.bank.reserved > 0 || len(l.bank.queue) > 0) {
				s.t.Errorf("seed %d: %s: a ledger is not at rest: %+v %+v", seed, d.name, l, l.bank)
			}
		}
	}
}

// TestStrictHoldsInWorseStorms lets everything happen at once.
func TestStrictHoldsInWorseStorms(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 16
	}
	sum := [4]int{}
	for seed := range uint64(seeds) {
		s := newStrictStorm(t, seed)
		s.run(1_500)
		s.within(seed)
		sum[0] += s.allowed
		sum[1] += s.denied
		sum[2] += s.failed
		sum[3] += s.layouts
		s.calm()
		s.rested(seed)
		s.served(seed)
		s.within(seed)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d allowed, %d denied, %d without a home, %d layouts", sum[0], sum[1], sum[2], sum[3])
}

// served checks that a window after the storm is used up, without a call that found
// no home.
func (s *strictStorm) served(seed uint64) {
	s.t.Helper()
	if s.maxKeys > 0 || s.apart > 1 {
		return // some find no room, or go by clocks of their own
	}
	failed := s.failed
	s.hits = map[crdt.Key][]strictHit{}
	for i := range 130 {
		for _, key := range []string{"fixed", "share", "placed", "own"} {
			s.ask(s.daemons[i%len(s.daemons)], strictly(key, 1))
		}
		s.pass(20 * time.Millisecond)
	}
	if s.failed > failed {
		s.t.Errorf("seed %d: %d calls found no home in calm", seed, s.failed-failed)
	}
	for k, hits := range s.hits {
		of := map[int64]uint64{}
		for _, h := range hits {
			of[h.at/1000] += h.n
		}
		l, full := s.limits[k], uint64(0)
		want := uint64(l.Requests)
		if l.Scope == rules.Region {
			want *= uint64(s.regions)
		}
		if l.OnFailure == rules.Share {
			want = l.Total() / 2
		}
		for _, n := range of {
			full = max(full, n)
		}
		if full < want*9/10 {
			s.t.Errorf("seed %d: %v of %d: at most %d admitted in a window after the storm, want %d: %v", seed, l.Placed, l.Requests, full, want, of)
		}
	}
}

// TestStrictLogCountsGrantsWhenTheyMayBeUsed uses what was granted of a log at the very
// end of its time, and then all that the home has a window later.
func TestStrictLogCountsGrantsWhenTheyMayBeUsed(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 8, algorithm: sliding_log, consistency: strict}
`, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.daemons[0]
	if x == owner {
		x = w.daemons[1]
	}
	w.ask(owner, user("bob", 1))
	w.ask(x, user("bob", 1))
	w.pass(1500 * time.Millisecond)
	left := func() uint64 {
		return x.node.desk.of[nameOf(h.Key, h.Rule, false)].credit.left(h.Limit, x.node.millis(w.at()))
	}
	led := x.node.desk.of[nameOf(h.Key, h.Rule, false)]
	a := x.node.newAsk(led, h.Rule, owner.node.Incarnation(), x.node.millis(w.at())) // a batch
	x.node.desk.asked++
	a.ID, a.Want, a.Need = x.node.desk.asked, 5, 5
	w.receive(owner, &sticky.Message{From: x.node.Incarnation(), To: owner.node.Incarnation(), Number: 1, Requests: []sticky.LeaseRequest{a}})
	w.drain(owner)
	for i := 0; i < 30 && left() == 0; i++ {
		w.pass(time.Millisecond)
	}
	w.ask(x, user("bob", 1)) // it is in use, and not given back
	if left() == 0 {
		t.Fatal("nothing is held")
	}
	for w.at().Wall/1e6 < x.node.desk.of[nameOf(h.Key, h.Rule, false)].credit.until-1 {
		w.pass(time.Millisecond)
	}
	used := left()
	w.ask(x, user("bob", used))
	for range 200 {
		w.ask(owner, user("bob", 1))
		w.pass(6 * time.Millisecond)
	}
	w.check(1)
	if used < 4 || w.allowed < 12 {
		t.Errorf("%d used late, %d allowed: it shows nothing", used, w.allowed)
	}
}
