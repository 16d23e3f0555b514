package lease

import (
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky/route"
)

// TestLimitHoldsInStorms checks that no limit is exceeded in seconds of lost
// messages, crashes, lost disks, pauses and wrong membership.
func TestLimitHoldsInStorms(t *testing.T) {
	seeds, allowed := 400, 0
	if testing.Short() {
		seeds = 60
	}
	for seed := range uint64(seeds) {
		w := newWorld(t, seed, strictRules, 3, 1+int(seed%3))
		w.loss = float64(seed%5) / 10
		w.storm()
		w.check(seed)
		allowed += w.allowed
	}
	if allowed < seeds*20 {
		t.Errorf("only %d calls were allowed in %d storms: they prove nothing", allowed, seeds)
	}
}

// TestCollidingKeysInStorms lets the keys of all rules have one of two hashes.
// Limits may be exceeded, but calls are still admitted.
func TestCollidingKeysInStorms(t *testing.T) {
	allowed := 0
	for seed := range uint64(30) {
		w := newWorld(t, seed, strictRules, 3, 1+int(seed%3))
		w.colliding, w.loss = true, float64(seed%5)/10
		w.storm()
		allowed += w.allowed
	}
	if allowed < 100 {
		t.Errorf("only %d calls were allowed in 30 storms", allowed)
	}
}

func (w *world) storm() {
	keys := []string{"fixed", "sliding", "log", "bucket", "leaky", "share", "big"}
	for range 1_000 {
		d := w.daemons[w.rng.IntN(len(w.daemons))]
		switch r := w.rng.IntN(1000); {
		case r < 350:
			if d.table == nil || d.paused {
				continue
			}
			key := keys[w.rng.IntN(len(keys))]
			n := uint64(1 + w.rng.IntN(3))
			if w.rng.IntN(8) == 0 {
				w.ask(d, descriptor(key, "x", n), descriptor(keys[w.rng.IntN(len(keys))], "x", 1))
			} else {
				w.ask(d, descriptor(key, "x", n))
			}
		case r < 970:
			w.pass(time.Duration(1+w.rng.IntN(4)) * time.Millisecond)
		case r < 976:
			w.crashOrStart(d)
		case r < 982:
			d.paused = !d.paused && d.table != nil
		case r < 992:
			o := w.daemons[w.rng.IntN(len(w.daemons))]
			if o != d {
				d.believedDead[o.name] = !d.believedDead[o.name]
				w.members()
			}
		default:
			w.pass(time.Duration(w.rng.IntN(400)) * time.Millisecond)
		}
	}
}

func (w *world) crashOrStart(d *daemon) {
	if d.table == nil {
		w.restart(d, w.rng.IntN(3) == 0)
		return
	}
	down := 0
	for _, o := range w.daemons {
		if o.table == nil {
			down++
		}
	}
	if down < 2 {
		w.crash(d)
	}
}

// severeStorm does more harm to a world than storm does: clocks differ and
// step, layouts change, limits are read again, the allotments of regions vary,
// circuit breakers open, calls are refunded or denied by another limit, and
// there are more keys than there is room for.
type severeStorm struct {
	*world
	most     int64 // the greatest difference of two clocks, in milliseconds
	receipts []receipt
	parts    uint64 // version of the allotments
	layouts  int
	apart    int64 // 1 for clocks within the greatest offset, more for others
}

// receipt is admitted hits that may be refunded.
type receipt struct {
	d       *daemon
	t       *Table
	hit     Hit
	reserve bool
	at      admitted
}

// varyingAllotment is an even part of the total, or less for a time.
type varyingAllotment struct{ s *severeStorm }

func (o *varyingAllotment) Version() uint64 { return o.s.parts }

func (o *varyingAllotment) RegionAllotment(_, total uint64, _, _ int64) (uint64, epoch.Reason) {
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

func newSevereStorm(t testing.TB, seed uint64) *severeStorm {
	s := &severeStorm{world: newWorld(t, seed, stormRules, 3, 1+2*int(seed%2))}
	s.loss, s.apart = float64(seed%4)/10, 1
	if seed%5 == 4 {
		s.apart = 20
	}
	s.allotments = func() Allotments { return &varyingAllotment{s} }
	if seed%4 == 3 {
		s.maxKeys = 5
	}
	for _, d := range s.daemons {
		d.table.env.Allotments = s.allotments()
		if s.maxKeys > 0 {
			d.table.env.MaxKeys = s.maxKeys
		}
	}
	s.charged = s.keep
	return s
}

// keep records the receipts of a call.
func (s *severeStorm) keep(c *call) {
	for i, h := range c.hits {
		if c.answers[i].Granted() && h.N > 0 && !h.Peek {
			s.receipts = append(s.receipts, receipt{c.d, c.d.table, h, c.answers[i].Reserve(), admitted{s.clocks(c.d).Millis, h.N}})
		}
	}
}

// refund refunds the hits of a receipt.
func (s *severeStorm) refund() {
	if len(s.receipts) == 0 {
		return
	}
	i := s.rng.IntN(len(s.receipts))
	r := s.receipts[i]
	s.receipts = slices.Delete(s.receipts, i, i+1)
	f := quota.Of(r.hit.Rule.Limit)
	if r.d.table != r.t || r.d.paused || f.Drains() {
		return // the used rights of a bucket stay used
	}
	window, now := r.at.at, s.clocks(r.d)
	if f.Windowed() {
		window -= window % f.Window()
	}
	if !f.Refundable(now.Millis, window) {
		return
	}
	r.t.Refund(now, &r.hit, r.reserve, window, r.hit.N)
	s.drain(r.d)
	hits := s.hits[r.hit.Key]
	if i := slices.Index(hits, r.at); i >= 0 {
		s.hits[r.hit.Key] = slices.Delete(hits, i, i+1)
	}
}

var stormKeys = []string{"fixed", "sliding", "log", "bucket", "leaky", "share", "big", "placed", "meter", "own", "halves"}

func (s *severeStorm) call(d *daemon) {
	key := stormKeys[s.rng.IntN(len(stormKeys))]
	n := uint64(s.rng.IntN(4))
	switch s.rng.IntN(8) {
	case 0:
		s.ask(d, descriptor(key, "x", max(n, 1)), descriptor(stormKeys[s.rng.IntN(len(stormKeys))], "x", 1))
	case 1: // denied by another limit, except for the first one
		s.ask(d, descriptor(key, "x", max(n, 1)), descriptor("none", "x", 1))
	case 2:
		c := s.newCall(d, descriptor(key, "x", 1))
		c.hits[0].Peek, c.rounds = true, 8 // never waits
		allowed := s.allowed
		s.decide(c)
		s.drain(d)
		s.allowed = allowed
	default:
		s.ask(d, descriptor(key, "x", max(n, 1)))
	}
}

func (s *severeStorm) run(steps int) {
	for range steps {
		d := s.daemons[s.rng.IntN(len(s.daemons))]
		switch r := s.rng.IntN(1000); {
		case r < 400:
			if d.table != nil && !d.paused {
				s.call(d)
			}
		case r < 930:
			s.pass(time.Duration(1+s.rng.IntN(4)) * time.Millisecond)
		case r < 936:
			s.crashOrStart(d)
		case r < 942:
			d.paused = !d.paused && d.table != nil
		case r < 950:
			if o := s.daemons[s.rng.IntN(len(s.daemons))]; o != d {
				d.believedDead[o.name] = !d.believedDead[o.name]
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
			if o := s.daemons[s.rng.IntN(len(s.daemons))]; o.table != nil {
				d.openBreakers[o.id] = !d.openBreakers[o.id]
			}
		case r < 985:
			s.refund()
		case r < 988:
			s.change(d)
		case r < 990:
			if d.table != nil {
				d.table.SetRules(s.set)
			}
		default:
			s.pass(time.Duration(s.rng.IntN(300)) * time.Millisecond)
		}
		s.belowWatermarks()
	}
}

// belowWatermarks checks that no owner consumed more of a window than a
// majority stored, beside the consumption by others.
func (s *severeStorm) belowWatermarks() {
	s.t.Helper()
	for _, d := range s.daemons {
		if d.table == nil {
			continue
		}
		for _, e := range d.table.all {
			r, o := s.set.Find(e.rule), e.owner
			if o == nil || !o.ready || !quota.Of(r.Limit).Resets() || o.account.Window != o.window {
				continue
			}
			used, held := o.account.Used-min(o.account.Used, o.account.Back), max(o.watermark(o.window), o.others.Amount(o.window))
			if used > held {
				s.t.Fatalf("%s consumed %d with a watermark of %d: %+v", d.name, used, held, o)
			}
		}
	}
}

// crashOrStart is that of the world, but loses no disk that would leave a
// region without votes for good.
func (s *severeStorm) crashOrStart(d *daemon) {
	if d.table != nil {
		s.world.crashOrStart(d)
		return
	}
	lose := s.rng.IntN(3) == 0
	others := 0
	for _, o := range s.daemons {
		if o != d && o.region == d.region {
			others++
			if o.table == nil || !votes(o) {
				lose = false
			}
		}
	}
	s.restart(d, lose && others > 0 && s.layouts == 0)
}

func votes(d *daemon) bool { return d.disk != nil && d.disk.Meta.Voting && d.disk.Next == nil }

// change puts another layout in force where that is possible.
func (s *severeStorm) change(d *daemon) {
	if d.table == nil || d.paused {
		return
	}
	for _, o := range s.daemons {
		if o.table == nil || o.acceptor.Layout().Number != d.acceptor.Layout().Number || o.disk.Next != nil {
			return // one at a time
		}
	}
	l := d.acceptor.Layout()
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
	if s.world.layouts.Announce(l, s.report) == nil {
		s.layouts++
	}
}

// calm ends all harm and waits.
func (s *severeStorm) calm() {
	s.loss, s.parts = 0, s.parts/5*5+5
	for _, d := range s.daemons {
		d.believedDead, d.openBreakers, d.paused = map[string]bool{}, map[crdt.Incarnation]bool{}, false
		if d.table == nil {
			s.restart(d, false)
		}
	}
	s.members()
	s.pass(4 * time.Second)
}

// within checks all limits, with as much tolerance as the clocks differed.
func (s *severeStorm) within(seed uint64) {
	s.t.Helper()
	for k, hits := range s.hits {
		l := *s.limits[k]
		if !l.Homed() {
			continue
		}
		f := quota.Of(&l)
		hits = slices.Clone(hits)
		slices.SortStableFunc(hits, func(a, b admitted) int { return int(a.at - b.at) })
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
				case f.Drains():
					t := span + f.Step() + 2*s.most
					limit = uint64(l.Burst) + (uint64(l.Requests)*uint64(t)+uint64(l.Window())-1)/uint64(l.Window())
				case f.Stamped() && span >= l.Window()-s.most:
					continue
				case f.Windowed() && h.at/l.Window() != hits[i].at/l.Window():
					continue
				}
				if sum += h.n; sum > limit {
					s.t.Fatalf("seed %d: %v of %d, %v %v: %d admitted in %d ms from %d on, want at most %d", seed, l.Algorithm, l.Requests, l.Consistency, l.Placed, sum, span, hits[i].at, limit)
				}
			}
		}
	}
}

// rested checks that no call, request or right of the storm is left.
func (s *severeStorm) rested(seed uint64) {
	s.t.Helper()
	for _, c := range s.pending {
		s.t.Errorf("seed %d: a call still waits: %v", seed, c)
	}
	for _, d := range s.daemons {
		for _, e := range d.table.all {
			if len(e.waiters) > 0 || e.lease.reserved > 0 || len(e.lease.requests) > 0 || e.owner != nil && (e.owner.reserved > 0 || len(e.owner.queue) > 0) {
				s.t.Errorf("seed %d: %s: an entry is not at rest: %+v %+v", seed, d.name, e, e.owner)
			}
		}
	}
}

// TestLimitHoldsInSevereStorms lets everything happen at once. After a storm,
// everything comes to rest, and the limits are used up again.
func TestLimitHoldsInSevereStorms(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 16
	}
	for seed := range uint64(seeds) {
		s := newSevereStorm(t, seed)
		s.run(1_500)
		s.within(seed)
		s.calm()
		s.rested(seed)
		s.served(seed)
		s.within(seed)
		if t.Failed() {
			return
		}
	}
}

// served checks that a window after the storm is used up, and that every call
// reaches an owner.
func (s *severeStorm) served(seed uint64) {
	s.t.Helper()
	if s.maxKeys > 0 || s.apart > 1 {
		return // some have no room, or clocks beyond the greatest offset
	}
	failed := s.failed
	s.hits = map[crdt.Key][]admitted{}
	for i := range 130 {
		for _, key := range []string{"fixed", "share", "placed", "own"} {
			s.ask(s.daemons[i%len(s.daemons)], descriptor(key, "x", 1))
		}
		s.pass(20 * time.Millisecond)
	}
	if s.failed > failed {
		s.t.Errorf("seed %d: %d calls reached no owner after the storm", seed, s.failed-failed)
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
