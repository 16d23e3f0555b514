package node

import (
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

func (w *strictWorld) reload(yaml string) {
	w.t.Helper()
	names := []string{}
	for i := range w.regions {
		names = append(names, string(rune('a'+i)))
	}
	set, found := limits.Parse([]limits.File{{Name: "l.yaml", Data: []byte(yaml)}}, limits.Options{
		Regions: names, Daemons: len(w.daemons), DaemonsOfRegion: 3,
	})
	if err := found.Err(); err != nil {
		w.t.Fatal(err)
	}
	w.set = set
	w.front = NewMatcher(w.set, NewHasher([SecretBytes]byte{1}), MatcherOptions{})
	for _, d := range w.daemons {
		if d.node != nil {
			d.node.SetRules(w.at(), set)
		}
	}
}

func user(v string, n uint64) rules.Descriptor {
	return rules.Descriptor{Entries: []rules.Entry{{Key: "user", Value: v}}, Hits: n}
}

// Reload adds a rule for one value: same key, other rule.
func TestAttackStrictRuleOfAKeyChanges(t *testing.T) {
	const generic = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 1000, consistency: strict}
`
	const specific = generic + `
  - key: user
    value: bob
    rate_limit: {unit: day, requests_per_unit: 5, consistency: strict}
`
	w := newStrictWorld(t, 1, generic, 3)
	for _, d := range w.daemons {
		w.ask(d, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	t.Logf("before %d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	w.reload(specific)
	w.allowed, w.failed, w.denied = 0, 0, 0
	for i := range 3000 {
		w.ask(w.daemons[i%3], user("bob", 1))
		if i%7 == 0 {
			w.pass(100 * time.Millisecond)
		}
	}
	w.pass(time.Second)
	t.Logf("after %d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	if w.failed > 0 {
		t.Errorf("%d calls found no home", w.failed)
	}
	if w.allowed > 5 {
		t.Errorf("%d allowed, want at most 5", w.allowed)
	}
}

// Buckets of fewer than 50 with slow disks.
func TestAttackStrictSmallBucketIsServed(t *testing.T) {
	const y = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 20, burst: 10, algorithm: token_bucket, consistency: strict}
`
	w := newStrictWorld(t, 1, y, 3)
	w.fsync = 5 * time.Millisecond
	for i := range 30 {
		w.ask(w.daemons[i%3], user("bob", 1))
		w.pass(200 * time.Millisecond)
	}
	t.Logf("%d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	for _, d := range w.daemons {
		t.Logf("%s %+v", d.name, d.node.StrictStats())
	}
	if w.failed > 0 || w.allowed < 30 {
		t.Errorf("%d of 30 allowed, %d calls found no home", w.allowed, w.failed)
	}
}

var _ = sticky.MaxItems

func (w *strictWorld) ownerDaemon(d *strictDaemon, desc rules.Descriptor) (*strictDaemon, Hit) {
	c := &Call{Domain: "d", Descriptors: []rules.Descriptor{desc}}
	if err := w.front.Resolve(c); err != nil {
		w.t.Fatal(err)
	}
	h := c.Hits()[0]
	owner := d.replica.Routing().Owner(h.Key, uint64(h.Rule.ID), h.Limit.HomeInRegion())
	for _, o := range w.daemons {
		if o.node != nil && o.node.Incarnation() == owner.Incarnation {
			return o, h
		}
	}
	w.t.Fatal("no home")
	return nil, h
}

// A1b: rule is gone, another one has the key.
func TestAttackStrictRuleOfAKeyIsReplaced(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 1000, consistency: strict}
`, 3)
	for _, d := range w.daemons {
		w.ask(d, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	w.reload(`
domain: d
descriptors:
  - key: user
    value: bob
    rate_limit: {unit: day, requests_per_unit: 1000, consistency: strict}
`)
	w.pass(10 * time.Second)
	w.allowed, w.failed, w.denied = 0, 0, 0
	for i := range 60 {
		w.ask(w.daemons[i%3], user("bob", 1))
		w.pass(50 * time.Millisecond)
	}
	w.pass(time.Second)
	t.Logf("after %d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	if w.failed > 0 || w.allowed < 60 {
		t.Errorf("%d of 60 allowed, %d calls found no home", w.allowed, w.failed)
	}
}

const dayOf = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10, consistency: strict}
  - key: other
    rate_limit: {unit: second, requests_per_unit: 1000, consistency: strict}
`

// A member gives back what another one was granted.
func TestAttackStrictReturnOfAnother(t *testing.T) {
	w := newStrictWorld(t, 1, dayOf, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	var x, m *strictDaemon
	for _, d := range w.daemons {
		switch {
		case d == owner:
		case x == nil:
			x = d
		default:
			m = d
		}
	}
	for range 40 {
		w.ask(x, user("bob", 1))
		w.pass(20 * time.Millisecond)
		now := w.at().Wall / int64(time.Millisecond)
		msg := sticky.Message{From: m.node.Incarnation(), To: owner.node.Incarnation(), Number: 1, Requests: []sticky.LeaseRequest{{
			Lessee: x.node.Incarnation(), Owner: owner.node.Incarnation(), Key: h.Key, Rule: SharedRule(h.Rule),
			Window: now - now%h.Limit.Window(), Returned: uint64(w.allowed), Hops: 1,
		}}}
		w.receive(owner, &msg)
		w.drain(owner)
	}
	if w.allowed > 10 {
		t.Errorf("%d allowed, want at most 10", w.allowed)
	}
}

// A member of another region grants what it is not home of.
func TestAttackStrictGrantOfAStranger(t *testing.T) {
	w := newStrictWorld(t, 1, dayOf, 3, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	var x, m *strictDaemon
	for _, d := range w.daemons {
		switch {
		case d == owner:
		case d.region == owner.region:
			x = d
		default:
			m = d
		}
	}
	w.ask(x, user("bob", 1))
	w.pass(20 * time.Millisecond)
	now := w.at().Wall / int64(time.Millisecond)
	window := now - now%h.Limit.Window()
	msg := sticky.Message{From: m.node.Incarnation(), To: x.node.Incarnation(), Number: 1, Grants: []sticky.LeaseGrant{{
		Owner: m.node.Incarnation(), Key: h.Key, Rule: SharedRule(h.Rule), Window: window, Until: window + h.Limit.Window(), Total: 1000,
	}}}
	w.receive(x, &msg)
	w.drain(x)
	for range 40 {
		w.ask(x, user("bob", 1))
		w.pass(20 * time.Millisecond)
	}
	if w.allowed > 10 {
		t.Errorf("%d allowed, want at most 10", w.allowed)
	}
}

// A member of another region votes in the name of replicas.
func TestAttackStrictVoteOfAStranger(t *testing.T) {
	w := newStrictWorld(t, 1, dayOf, 3, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	m := w.daemons[3]
	if owner.region == m.region {
		m = w.daemons[0]
	}
	w.loss = 1 // the home is cut off from the other replicas
	p := w.ask(owner, user("bob", 1))
	led := owner.node.desk.of[nameOf(h.Key, h.Rule, false)]
	k := &led.bank.keeper
	for _, s := range owner.replica.Routing().Voters() {
		msg := sticky.Message{From: m.node.Incarnation(), To: owner.node.Incarnation(), Number: 1, Accepted: []sticky.Accepted{{
			Key: h.Key, Ballot: k.Ballot(), Seq: 1, Voter: s.ID, OK: true,
		}}}
		w.receive(owner, &msg)
		w.drain(owner)
	}
	_ = p
	if w.allowed > 0 {
		t.Errorf("%d allowed on forged votes", w.allowed)
	}
}

// A member opens the ledger of a key under another rule.
func TestAttackStrictLedgerUnderAnotherRule(t *testing.T) {
	w := newStrictWorld(t, 1, dayOf, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	_, o := w.ownerDaemon(w.daemons[0], rules.Descriptor{Entries: []rules.Entry{{Key: "other", Value: "x"}}, Hits: 1})
	m := w.daemons[0]
	if m == owner {
		m = w.daemons[1]
	}
	msg := sticky.Message{From: m.node.Incarnation(), To: owner.node.Incarnation(), Number: 1, Requests: []sticky.LeaseRequest{{
		ID: 1, Lessee: m.node.Incarnation(), Key: h.Key, Rule: SharedRule(o.Rule), Window: 0, Want: 0,
	}}}
	w.receive(owner, &msg)
	w.drain(owner)
	for range 100 {
		w.ask(owner, user("bob", 1))
		w.pass(300 * time.Millisecond)
		now := w.at().Wall / int64(time.Millisecond)
		msg.Requests[0].ID++
		msg.Requests[0].Window = now - now%1000
		msg2 := msg
		w.receive(owner, &msg2)
		w.drain(owner)
	}
	t.Logf("%d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	if w.allowed > 10 {
		t.Errorf("%d allowed, want at most 10", w.allowed)
	}
}

// Rights of a bucket used at the end of their time.
func TestAttackStrictBucketGrantsUsedLate(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 1000, burst: 400, algorithm: token_bucket, consistency: strict}
  - key: none
    rate_limit: {unit: day, requests_per_unit: 1, consistency: strict}
`, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.daemons[0]
	if x == owner {
		x = w.daemons[1]
	}
	none := rules.Descriptor{Entries: []rules.Entry{{Key: "none", Value: "x"}}, Hits: 1}
	w.ask(owner, user("bob", 1)) // taken
	for _, d := range w.daemons {
		if d != x { // which does not know that none is left
			w.ask(d, none)
		}
	}
	w.pass(time.Second)
	// A call that another limit refuses in the end leaves what it was granted.
	for try := range 3 {
		w.ask(x, user("bob", uint64(300)), none)
		w.pass(7 * time.Millisecond)
		if c := &x.node.desk.of[nameOf(h.Key, h.Rule, false)].credit; c.left(h.Limit, w.at().Wall/1e6) > 0 {
			t.Logf("try %d: left %d until %d now %d", try, c.left(h.Limit, w.at().Wall/1e6), c.until, w.at().Wall/1e6)
			break
		}
	}
	c := &x.node.desk.of[nameOf(h.Key, h.Rule, false)].credit
	left := c.left(h.Limit, w.at().Wall/1e6)
	if left == 0 {
		t.Fatal("nothing is held")
	}
	for w.at().Wall/1e6 < c.until-1 {
		w.pass(time.Millisecond)
	}
	before := w.allowed
	w.ask(x, user("bob", left))
	for range 8 {
		w.ask(owner, user("bob", 50))
	}
	w.pass(100 * time.Millisecond)
	t.Logf("left %d; %d allowed %d denied %d failed", left, w.allowed-before, w.denied, w.failed)
	w.check(1)
}

// Hits of a log that are given back in a later step.
func TestAttackStrictLogRefund(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 8, algorithm: sliding_log, consistency: strict}
`, 3)
	owner, _ := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.daemons[0]
	if x == owner {
		x = w.daemons[1]
	}
	call := func(n uint64) *parkedCall {
		p := w.ask(x, user("bob", n))
		for range 20 {
			if !p.c.Decision.Allowed || p.rounds == 0 {
				break
			}
			w.pass(time.Millisecond)
		}
		return p
	}
	w.ask(owner, user("bob", 1))
	w.pass(1500 * time.Millisecond)
	w.hits = map[crdt.Key][]strictHit{}
	p := call(4)
	h := p.c.Hits()[0]
	first := w.at().Wall / 1e6
	w.pass(500 * time.Millisecond)
	call(4)
	half := w.at().Wall / 1e6
	got := x.node.Refund(w.at(), &Receipt{Key: h.Key, ID: h.Rule.ID, Rule: SharedRule(h.Rule), Window: w.hits[h.Key][0].at, Length: 1, Until: first + 1000, Hits: 4, Alone: true}, 4)
	w.hits[h.Key] = w.hits[h.Key][1:] // given back
	t.Logf("first %d half %d refunded %+v hits %v", first, half, got, w.hits[h.Key])
	w.drain(x)
	call(4)
	w.pass(650 * time.Millisecond)
	for range 8 {
		w.ask(owner, user("bob", 1))
		w.pass(3 * time.Millisecond)
	}
	t.Logf("hits %v", w.hits[h.Key])
	w.check(1)
}

// A call that holds a bucket's rights while it waits for another home, and the home dies after.
func TestAttackStrictBucketReservedForLong(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 400, burst: 200, algorithm: token_bucket, consistency: strict}
  - key: none
    rate_limit: {unit: day, requests_per_unit: 1000, consistency: strict}
`, 3, 3)
	owner, h := w.ownerDaemon(w.daemons[0], user("bob", 1))
	c := w.ask(owner, user("bob", 150))
	_ = c
	w.pass(20 * time.Millisecond)
	t.Logf("allowed %d", w.allowed)
	w.pass(time.Second)
	w.allowed = 0
	w.hits = map[crdt.Key][]strictHit{}
	// RequestLease by hand: the other descriptor's answer takes 300 ms.
	call := &Call{Domain: "d", Descriptors: []rules.Descriptor{user("bob", 150)}}
	if err := w.front.Resolve(call); err != nil {
		t.Fatal(err)
	}
	hits := call.Hits()
	hits[0].Ticket = 9999
	n := owner.node
	n.Probe(w.at(), hits, call.Statuses)
	if !call.Statuses[0].Wait {
		t.Fatalf("does not wait: %+v", call.Statuses[0])
	}
	n.RequestLease(w.at(), hits, call.Statuses, 9999)
	w.drain(owner)
	w.pass(300 * time.Millisecond)
	n.Probe(w.at(), hits, call.Statuses)
	w.front.Decide(call)
	led := owner.node.desk.of[nameOf(h.Key, h.Rule, false)]
	t.Logf("wait %v over %v; mark %v now %d", call.Statuses[0].Wait, call.Statuses[0].Over, led.bank.keeper.Held(), w.at().Wall/1e6)
	if call.Statuses[0].Wait {
		return
	}
	n.Charge(w.at(), hits, call.Statuses)
	n.CancelLease(w.at(), hits, 9999)
	w.account(&parkedCall{d: owner, c: call})
	w.drain(owner)
	w.crash(owner)
	for _, d := range w.daemons {
		if d.node != nil && d.region == owner.region {
			for range 8 {
				w.ask(d, user("bob", 50))
				w.pass(7 * time.Millisecond)
			}
			break
		}
	}
	t.Logf("%d allowed %d denied %d failed %v", w.allowed, w.denied, w.failed, w.hits[h.Key])
	w.check(1)
}

// The way to the home gets shorter.
func TestAttackStrictNearerOwner(t *testing.T) {
	w := newStrictWorld(t, 1, `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: second, requests_per_unit: 1000, burst: 400, algorithm: token_bucket, consistency: strict}
`, 3)
	owner, _ := w.ownerDaemon(w.daemons[0], user("bob", 1))
	x := w.daemons[0]
	if x == owner {
		x = w.daemons[1]
	}
	w.ask(owner, user("bob", 60))
	w.pass(time.Second)
	x.reach = 250 * time.Millisecond
	w.ask(x, user("bob", 1))
	w.pass(20 * time.Millisecond)
	x.reach = 150 * time.Millisecond
	w.allowed = 0
	for range 10 {
		p := w.ask(x, user("bob", 5))
		w.pass(5 * time.Millisecond)
		t.Log(p.c.Statuses[0].Gate, p.c.Statuses[0].Degraded, p.c.Statuses[0].Over, x.node.StrictStats().Requests, owner.node.StrictStats().Refused, owner.node.StrictStats().Denials)
	}
	w.pass(time.Second)
	t.Logf("%d allowed %d denied %d failed", w.allowed, w.denied, w.failed)
	if w.failed > 0 {
		t.Errorf("%d calls found no home", w.failed)
	}
}
