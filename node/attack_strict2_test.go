package node

import (
	"testing"
	"time"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// othersOf returns the daemons that are not home.
func (w *strictWorld) othersOf(owner *strictDaemon) (out []*strictDaemon) {
	for _, d := range w.daemons {
		if d != owner && d.region == owner.region {
			out = append(out, d)
		}
	}
	return out
}

// A descriptor without hits waits beside one that has rights.
func TestAttackStrictHitlessBesideHits(t *testing.T) {
	w := newStrictWorld(t, 1, dayOf, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.othersOf(owner)[0]
	w.ask(x, user("bob", 1))
	w.pass(20 * time.Millisecond)
	led := x.node.desk.of[nameOf(h.Key, h.Rule, false)]
	a := x.node.newAsk(led, h.Rule, owner.node.Incarnation(), w.at().Wall/1e6) // a batch, as after a burst
	x.node.desk.asked++
	a.ID, a.Want, a.Need = x.node.desk.asked, 8, 8
	w.receive(owner, &sticky.Message{From: x.node.Incarnation(), To: owner.node.Incarnation(), Number: 1, Requests: []sticky.LeaseRequest{a}})
	w.drain(owner)
	for range 7 {
		w.pass(180 * time.Millisecond)
		w.ask(x, user("bob", 1))
	}
	t.Logf("left %d heard %v ago", led.credit.left(h.Limit, w.at().Wall/1e6), w.at().Mono-led.credit.heard)
	w.ask(x, user("bob", 0), user("bob", 1))
	w.ask(x, user("bob", 1))
	w.pass(20 * time.Millisecond)
	for range 10 {
		w.ask(owner, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	sum := uint64(0)
	for _, hit := range w.hits[h.Key] {
		sum += hit.n
	}
	t.Logf("%d hits", sum)
	if sum > 10 {
		t.Errorf("%d hits admitted, want at most 10", sum)
	}
}

const bobGeneric = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 20, consistency: strict}
`
const bobSpecific = bobGeneric + `
  - key: user
    value: bob
    rate_limit: {unit: day, requests_per_unit: 5, consistency: strict}
`

// A daemon reads other limits for a while, and then the former ones again.
func TestAttackStrictRulesThereAndBack(t *testing.T) {
	w := newStrictWorld(t, 1, bobGeneric, 3)
	owner, _ := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.othersOf(owner)[0]
	for range 10 {
		w.ask(x, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	t.Logf("%d allowed at %s", w.allowed, x.name)
	was, front := w.set, w.front
	all := w.daemons
	w.daemons = []*strictDaemon{x}
	w.reload(bobSpecific)
	w.daemons = all
	w.ask(x, user("bob", 1))
	w.pass(200 * time.Millisecond)
	w.set, w.front = was, front
	x.node.SetRules(w.at(), was)
	for range 40 {
		w.ask(x, user("bob", 1))
		w.ask(owner, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	t.Logf("%d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	if w.allowed > 20 {
		t.Errorf("%d allowed, want at most 20", w.allowed)
	}
}

// A home loses its ballot while the rule is not strict.
func TestAttackStrictLostWhileEventual(t *testing.T) {
	const strict = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 40, consistency: strict}
`
	const eventual = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 40}
`
	w := newStrictWorld(t, 1, strict, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	o := w.othersOf(owner)[0]
	w.ask(owner, user("bob", 15))
	w.pass(20 * time.Millisecond)
	// o believes the home dead, and is home.
	for _, d := range w.daemons {
		if d != owner {
			d.believed[owner.name] = true
		}
	}
	w.members()
	next, _ := w.ownerDaemon(o, user("bob", 1))
	w.ask(next, user("bob", 25))
	w.ask(next, user("bob", 10))
	w.ask(next, user("bob", 10))
	w.pass(20 * time.Millisecond)
	before := w.hits[h.Key]
	t.Logf("%v by %s", before, next.name)
	for _, d := range w.daemons {
		d.believed = map[string]bool{}
	}
	w.members()
	w.fsync = 30 * time.Millisecond
	w.ask(owner, user("bob", 20)) // raises
	set := w.set
	w.reload(eventual)
	w.pass(20 * time.Millisecond)
	w.set = set
	w.reload(strict)
	for range 40 {
		w.ask(owner, user("bob", 1))
		w.pass(50 * time.Millisecond)
	}
	sum := uint64(0)
	for _, hit := range w.hits[h.Key] {
		sum += hit.n
	}
	b := owner.node.desk.of[nameOf(h.Key, h.Rule, false)].bank
	t.Logf("%d hits %v, %d denied %d failed %+v %+v %+v", sum, w.hits[h.Key], w.denied, w.failed, b, b.keeper, owner.node.StrictStats())
	if sum > 40 {
		t.Errorf("%d hits admitted, want at most 40", sum)
	}
}

// What on_failure let pass is refunded.
func TestAttackStrictRefundOfFailure(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10, consistency: strict, on_failure: allow}
`, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.othersOf(owner)[0]
	w.ask(x, user("bob", 1))
	w.pass(20 * time.Millisecond)
	w.ask(owner, user("bob", 1))
	w.pass(20 * time.Millisecond)
	owner.openCircuits = map[crdt.Incarnation]bool{}
	x.openCircuits[owner.node.Incarnation()] = true
	for range 5 {
		p := w.ask(x, user("bob", 1))
		r := make([]Receipt, 1)
		x.node.Receipts(w.at(), p.c.Hits(), p.c.Statuses, r)
		t.Logf("%+v", r[0])
		if !p.c.Decision.Allowed {
			t.Fatal("refused")
		}
		got := x.node.Refund(w.at(), &r[0], 1)
		t.Logf("%+v", got)
		w.drain(x)
	}
	x.openCircuits = map[crdt.Incarnation]bool{}
	w.hits[h.Key] = w.hits[h.Key][:2]
	for range 30 {
		w.ask(x, user("bob", 1))
		w.pass(20 * time.Millisecond)
		w.ask(owner, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	if n := len(w.hits[h.Key]); n > 10 {
		t.Errorf("%d admitted with rights and not refunded, want at most 10", n)
	}
}

// A home that lost its ballot and was swept grants into totals that its holders have.
func TestAttackStrictSweptOwnerStillServes(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 400, consistency: strict}
`, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.othersOf(owner)[0]
	for range 4 {
		w.ask(x, user("bob", 25))
		w.pass(20 * time.Millisecond)
	}
	for range 3 {
		w.ask(owner, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	for _, d := range w.daemons {
		if d != owner {
			d.believed[owner.name] = true
		}
	}
	w.members()
	next, _ := w.ownerDaemon(w.othersOf(owner)[1], user("bob", 1))
	w.ask(next, user("bob", 90))
	w.pass(50 * time.Millisecond)
	for _, d := range w.daemons {
		d.believed = map[string]bool{}
	}
	w.members()
	t.Logf("next %s %+v %v", next.name, next.node.StrictStats(), w.hits[h.Key])
	for range 30 { // the home raises ahead of need, and loses
		w.ask(owner, user("bob", 1))
		if b := owner.node.desk.of[nameOf(h.Key, h.Rule, false)].bank; b != nil && b.keeper.Busy() {
			break
		}
	}
	w.pass(10 * time.Second)
	if l := owner.node.desk.of[nameOf(h.Key, h.Rule, false)]; l != nil {
		t.Logf("%v %+v until %d", l.active, l.bank.keeper, l.credit.until)
	}
	t.Logf("ledger still there: %v", owner.node.desk.of[nameOf(h.Key, h.Rule, false)] != nil)
	before, failed := w.allowed, w.failed
	for range 20 {
		w.ask(x, user("bob", 1))
		w.pass(100 * time.Millisecond)
	}
	t.Logf("%d of 20 allowed, %d failed, left %v granted %d", w.allowed-before, w.failed-failed, owner.node.desk.of[nameOf(h.Key, h.Rule, false)].bank.row, owner.node.StrictStats().Granted)
	if w.allowed-before < 20 {
		t.Errorf("%d of 20 allowed", w.allowed-before)
	}
	_ = rules.Strict
}

// A region that holds nothing yet does not lock its daemons out of a bucket.
func TestAttackStrictBucketOfARegionThatWaits(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 36000, burst: 60, algorithm: token_bucket, consistency: partition, placement: region}
`, 3, 3)
	base := &regionOf{}
	for _, d := range w.daemons {
		d.node.cfg.Allotments = base
	}
	owner, _ := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.othersOf(owner)[0]
	w.ask(x, user("bob", 1))
	w.pass(300 * time.Millisecond)
	t.Logf("%d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	base.part, base.version = 2, 1
	w.pass(5 * time.Second)
	w.allowed, w.denied = 0, 0
	for range 20 {
		w.ask(x, user("bob", 1))
		w.pass(500 * time.Millisecond)
	}
	t.Logf("%d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	if w.allowed < 20 {
		t.Errorf("%d of 20 allowed", w.allowed)
	}
}

// regionOf says that each region has a part of total, 0 for nothing.
type regionOf struct{ part, version uint64 }

func (r *regionOf) Version() uint64 { return r.version }
func (r *regionOf) Allotment(_, total uint64, x, carry int64, regional bool) (uint64, epoch.Reason) {
	return 0, epoch.ReasonEpoch
}
func (r *regionOf) PartOf(_ string, _, total uint64, _, _ int64, _ bool) uint64 { return 0 }
func (r *regionOf) RegionPart(_ string, _, total uint64, _, _ int64) uint64     { return 0 }
func (r *regionOf) RegionAllotment(_, total uint64, _, _ int64) (uint64, epoch.Reason) {
	if r.part == 0 {
		return 0, epoch.ReasonEpoch
	}
	return total / r.part, epoch.ReasonEpoch
}

// propose puts a layout in force at a daemon and waits until all go by it.
func (w *strictWorld) propose(d *strictDaemon, change func(l *route.Layout)) {
	w.t.Helper()
	l := d.replica.Layout()
	change(&l)
	if err := d.replica.Propose(l); err != nil {
		w.t.Fatal(err)
	}
	w.drain(d)
	w.pass(2 * time.Second)
}

// A change of layout leaves what regions have of their own as it is.
func TestAttackStrictLayoutAndRegionalLimits(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 20, consistency: strict, scope: region}
`, 3, 3)
	w.pass(time.Second)
	for range 10 {
		w.ask(w.daemons[0], user("bob", 2))
		w.pass(20 * time.Millisecond)
	}
	w.ask(w.daemons[3], user("bob", 1))
	w.pass(20 * time.Millisecond)
	t.Logf("%d allowed", w.allowed)
	w.propose(w.daemons[0], func(l *route.Layout) { l.Regions[0].Weight = 2 })
	w.allowed = 0
	for range 19 {
		w.ask(w.daemons[3], user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	t.Logf("%d allowed %d denied %d failed, layout %d", w.allowed, w.denied, w.failed, w.daemons[3].replica.Layout().Number)
	if w.allowed < 10 {
		t.Errorf("%d of 19 allowed in the other region", w.allowed)
	}
}
