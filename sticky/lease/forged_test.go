package lease

import (
	"math"
	"testing"
	"time"

	"github.com/georld/rld/sticky"
)

const dayRules = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 10, consistency: strict}
  - key: other
    rate_limit: {unit: second, requests_per_unit: 1000, consistency: strict}
`

// requests returns a message with requests.
func requests(q ...sticky.LeaseRequest) sticky.Message { return sticky.Message{Requests: q} }

// forge delivers a message in the name of a daemon, and returns how many items
// were rejected.
func (w *world) forge(from, to *daemon, m sticky.Message) (rejected int) {
	m.From, m.To, m.Number = from.id, to.id, 1
	rejected = w.receive(to, &m)
	w.drain(to)
	return rejected
}

// tenOfADay checks that no more than the ten hits of dayRules were admitted,
// and that calls were answered at all.
func (w *world) tenOfADay() {
	w.t.Helper()
	if w.allowed > 10 || w.allowed == 0 {
		w.t.Errorf("%d allowed, want 1 to 10", w.allowed)
	}
}

// TestReturnInTheNameOfAnother has a member return rights of another lessee.
func TestReturnInTheNameOfAnother(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	m := w.othersOf(owner)[1]
	for i := range 40 {
		w.ask([]*daemon{x, owner}[i%2], descriptor("user", "bob", 1)) // a lessee alone takes ten at most
		w.pass(20 * time.Millisecond)
		w.forge(m, owner, requests(sticky.LeaseRequest{
			Lessee: x.id, Owner: owner.id, Key: h.Key, Rule: h.Rule.Shared(),
			Window: w.wall() - w.wall()%h.Rule.Limit.Window(), Returned: uint64(w.allowed), Hops: 1,
		}))
	}
	w.tenOfADay()
}

// TestGrantOfAnotherRegion has a member of another region grant rights to a key
// that it does not own.
func TestGrantOfAnotherRegion(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3, 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	m := w.outsider(owner)
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(20 * time.Millisecond)
	window := w.wall() - w.wall()%h.Rule.Limit.Window()
	for _, of := range []*daemon{m, owner} { // in its own name, and in that of the owner
		rejected := w.forge(m, x, sticky.Message{Grants: []sticky.LeaseGrant{{
			Owner: of.id, Key: h.Key, Rule: h.Rule.Shared(), Window: window, Until: window + h.Rule.Limit.Window(), Total: 1,
		}}})
		if rejected != 1 {
			t.Errorf("%d items rejected, want 1", rejected)
		}
	}
	for range 40 {
		w.ask(x, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	w.tenOfADay()
}

// TestGrantOfMoreThanTheLimit has the owner of a key grant more rights than
// the limit has. Of a grant that denies as well, the denial counts alone.
func TestGrantOfMoreThanTheLimit(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3, 3)
	x, owner, h := w.roles(descriptor("user", "bob", 1))
	w.ask(x, descriptor("user", "bob", 1))
	w.pass(time.Second)
	window := w.wall() - w.wall()%h.Rule.Limit.Window()
	for _, total := range []uint64{11, 3_000, 1 << 40, math.MaxUint64} {
		for denied, want := range map[bool]int{false: 1, true: 0} {
			rejected := w.forge(owner, x, sticky.Message{Grants: []sticky.LeaseGrant{{
				Owner: owner.id, Key: h.Key, Rule: h.Rule.Shared(), Window: window, Until: window + h.Rule.Limit.Window(),
				Total: total, Denied: denied,
			}}})
			if rejected != want {
				t.Errorf("%d rights, denied %v: %d items rejected, want %d", total, denied, rejected, want)
			}
		}
	}
	for range 40 {
		w.ask(x, descriptor("user", "bob", 1))
		w.pass(20 * time.Millisecond)
	}
	w.tenOfADay()
}

// outsider returns a daemon of another region than an owner's.
func (w *world) outsider(owner *daemon) *daemon {
	for _, d := range w.daemons {
		if d.region != owner.region {
			return d
		}
	}
	w.t.Fatal("one region only")
	return nil
}

// TestAcceptedOfAnotherRegion has a member of another region vote in the name
// of the owner's strict voters.
func TestAcceptedOfAnotherRegion(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3, 3)
	_, owner, h := w.roles(descriptor("user", "bob", 1))
	m := w.outsider(owner)
	w.loss = 1 // the owner cannot reach the other voters
	w.ask(owner, descriptor("user", "bob", 1))
	o := owner.table.find(h.Key, h.Rule, false).owner
	for _, s := range owner.Routing().Voters() {
		rejected := w.forge(m, owner, sticky.Message{Accepted: []sticky.Accepted{{
			Key: h.Key, Ballot: o.proposer.Ballot(), Seq: 1, Voter: s.ID, OK: true,
		}}})
		if rejected != 1 {
			t.Errorf("%d items rejected, want 1", rejected)
		}
	}
	if w.allowed > 0 {
		t.Errorf("%d allowed on forged votes", w.allowed)
	}
}

// TestRequestUnderAnotherRule has a member request rights to a key under
// another rule than the key's.
func TestRequestUnderAnotherRule(t *testing.T) {
	w := newWorld(t, 1, dayRules, 3)
	m, owner, h := w.roles(descriptor("user", "bob", 1))
	other := w.hit(descriptor("other", "x", 1))
	q := sticky.LeaseRequest{ID: 1, Lessee: m.id, Key: h.Key, Rule: other.Rule.Shared()}
	w.forge(m, owner, requests(q))
	for range 100 {
		w.ask(owner, descriptor("user", "bob", 1))
		w.pass(300 * time.Millisecond)
		q.ID++
		q.Window = w.wall() - w.wall()%1000
		w.forge(m, owner, requests(q))
	}
	w.tenOfADay()
}
