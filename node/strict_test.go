package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
	"github.com/georld/rld/sticky/route"
)

// strictPair is two nodes of one region: the owner of every strict key, which
// is the only strict voter, and a lessee. Messages arrive at once.
type strictPair struct {
	t             *testing.T
	now           time.Duration
	matcher       *Matcher
	owner, lessee *Node
	breakerOpen   bool
	tickets       uint64
}

// strictOwners is the owners as one node of a pair knows them.
type strictOwners struct {
	*strictPair
	routing *route.Routing
}

func (o *strictOwners) Routing() *route.Routing { return o.routing }

func (o *strictOwners) Reach(crdt.Incarnation) (time.Duration, bool) {
	return 50 * time.Millisecond, !o.breakerOpen
}

func newStrictPair(t *testing.T, yaml string) *strictPair {
	return newFullStrictPair(t, yaml, 1000, 1000)
}

// newFullStrictPair is newStrictPair with room for so many keys.
func newFullStrictPair(t *testing.T, yaml string, ownerKeys, lesseeKeys int) *strictPair {
	return newReservedStrictPair(t, yaml, ownerKeys, lesseeKeys, 0)
}

// newReservedStrictPair is newFullStrictPair with a reserve.
func newReservedStrictPair(t *testing.T, yaml string, ownerKeys, lesseeKeys int, reserve rules.PPM) *strictPair {
	p := &strictPair{t: t, now: time.Second}
	set, found := limits.Parse([]limits.File{{Name: "l.yaml", Data: []byte(yaml)}}, limits.Options{
		Regions: []string{"r"}, Daemons: 2, DaemonsOfRegion: 2,
	})
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	p.matcher = NewMatcher(set, rules.NewHasher([rules.SecretBytes]byte{1}), MatcherOptions{})
	cfg := Default()
	cfg.Region = "r"
	cfg.Strict.Headroom, cfg.KeyReserve = 20, reserve
	var live route.Peers
	var peers []gossip.Peer
	for i, name := range []string{"owner", "lessee"} {
		cfg.Name, cfg.Owners, cfg.MaxKeys = name, &strictOwners{strictPair: p}, []int{ownerKeys, lesseeKeys}[i]
		n, err := New(cfg, rand.New(rand.NewPCG(uint64(i), 7)))
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, route.Peer{ID: n.Incarnation(), Name: name, Region: "r", Ready: true})
		peers = append(peers, gossip.Peer{ID: n.Incarnation(), Name: name, Region: "r", Ready: true})
		p.owner, p.lessee = p.lessee, n
	}
	live.Sort()
	layout := &route.Layout{Number: 1, Regions: []route.Region{{Name: "r", Weight: 1, Replicas: []string{"owner"}}}}
	for _, n := range []*Node{p.owner, p.lessee} {
		n.cfg.Owners.(*strictOwners).routing = route.New(layout, "r", n.cfg.Name, n.Incarnation(), live)
		n.Peers(p.at(), peers)
		n.SetRules(p.at(), set)
	}
	return p
}

func (p *strictPair) at() Instant {
	return Instant{Mono: p.now, Wall: (scriptEpoch*int64(time.Millisecond) + int64(p.now))}
}

// drain delivers all messages; the voter accepts every watermark.
func (p *strictPair) drain() {
	for p.owner.HasLeaseReady() || p.lessee.HasLeaseReady() {
		for _, n := range []*Node{p.owner, p.lessee} {
			for _, m := range n.LeaseReady(p.at()).Messages {
				to := p.owner
				if m.To == p.lessee.Incarnation() {
					to = p.lessee
				}
				for _, a := range m.Accepts {
					to.StepLease(p.at(), &sticky.Message{From: m.To, To: m.From, Stamp: m.Stamp, Accepted: []sticky.Accepted{{
						Key: a.Key, Ballot: a.Ballot, Seq: a.Seq, Voter: route.NameHash("owner"), OK: true,
					}}})
				}
				to.StepLease(p.at(), &m)
			}
		}
	}
}

// ask decides a call at a node as a driver does.
func (p *strictPair) ask(n *Node, values ...string) *Call {
	p.t.Helper()
	c := &Call{Domain: "d"}
	for _, v := range values {
		c.Descriptors = append(c.Descriptors, rules.Descriptor{Entries: []rules.Entry{{Key: v, Value: "x"}}, Hits: 1})
	}
	return p.decide(n, c)
}

// decide is ask for a call with its descriptors.
func (p *strictPair) decide(n *Node, c *Call) *Call {
	p.t.Helper()
	if err := p.matcher.Resolve(c); err != nil {
		p.t.Fatal(err)
	}
	p.tickets++
	for round := 0; ; round++ {
		n.Probe(p.at(), c.Hits(), c.Statuses)
		p.matcher.Decide(c)
		if !c.Decision.Allowed || !slices.ContainsFunc(c.Statuses, func(st Status) bool { return st.Wait }) {
			break
		}
		if round == 3 {
			p.t.Fatalf("%v waits forever", c.Descriptors)
		}
		n.RequestLease(p.at(), c.Hits(), c.Statuses, p.tickets)
		p.drain()
		for i := range c.Hits() {
			c.Hits()[i].Ticket = p.tickets
		}
	}
	n.Charge(p.at(), c.Hits(), c.Statuses)
	n.CancelLease(p.at(), c.Hits(), p.tickets)
	p.drain()
	return c
}

const strictTen = `
domain: d
descriptors:
  - key: ten
    rate_limit: {unit: day, requests_per_unit: 10, consistency: strict, on_failure: allow}
  - key: one
    rate_limit: {unit: day, requests_per_unit: 1}
`

// TestStrictCall counts a strict limit at a lessee and its owner, beside one
// that each node counts for itself.
func TestStrictCall(t *testing.T) {
	p := newStrictPair(t, strictTen)
	for i := range 6 {
		n, want := p.lessee, i == 0 // all or nothing: the other limit denies
		if c := p.ask(n, "ten", "one"); c.Decision.Allowed != want || !want && c.Statuses[1].Gate != EstimateGate {
			t.Errorf("call %d at the lessee: %+v", i, c.Statuses)
		}
	}
	for i := range 12 {
		n := []*Node{p.lessee, p.owner}[i%2]
		c := p.ask(n, "ten")
		if st := &c.Statuses[0]; c.Decision.Allowed != (i < 9) || st.Over && st.Gate != OwnerGate || st.Remaining > uint64(max(9-i, 0)) {
			t.Errorf("call %d: %+v", i, st)
		}
		p.now += 100 * time.Millisecond
	}
}

// TestStrictPeek: a lessee asks the owner for the state of a key for a peek,
// and the owner grants nothing.
func TestStrictPeek(t *testing.T) {
	p := newStrictPair(t, strictTen)
	peek := &Call{Domain: "d", Peek: true, Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: "ten", Value: "x"}}, Hits: 1}}}
	if st := &p.decide(p.lessee, peek).Statuses[0]; st.Over || st.Degraded != NotDegraded {
		t.Errorf("peek: %+v", st)
	}
	if n := p.owner.LeaseStats().Granted; n > 0 {
		t.Errorf("the owner granted %d hits for a peek", n)
	}
}

// TestStrictRefund refunds a strict call, which returns its rights to the
// lease, and calls that on_failure admitted, which have no receipt.
func TestStrictRefund(t *testing.T) {
	p := newStrictPair(t, strictTen)
	receipt := func(c *Call) Receipt {
		r := make([]Receipt, 1)
		p.lessee.Receipts(p.at(), c.Hits(), c.Statuses, r)
		return r[0]
	}
	r := receipt(p.ask(p.lessee, "ten"))
	if got := p.lessee.Refund(p.at(), &r, 1); got.Hits != 1 {
		t.Errorf("refunded %+v, want 1 hit", got)
	}
	p.breakerOpen = true
	for range 3 {
		c := p.ask(p.lessee, "ten")
		if st := &c.Statuses[0]; !c.Decision.Allowed || st.Degraded != NotDegraded && st.Degraded != CircuitOpen {
			t.Fatalf("%+v", st)
		}
		r := receipt(c)
		if want := c.Statuses[0].probed.lease.Granted(); (r.Hits > 0) != want {
			t.Errorf("receipt %+v of a call with rights: %v", r, want)
		}
	}
	p.breakerOpen = false
	allowed := 0
	for range 15 {
		if p.ask(p.lessee, "ten").Decision.Allowed {
			allowed++
		}
	}
	if allowed != 9 {
		t.Errorf("%d of the 9 rights left were used", allowed)
	}
}

// TestStrictShadowRefund checks that calls beyond a limit in shadow mode, which
// use no rights, have no receipts to give rights back with.
func TestStrictShadowRefund(t *testing.T) {
	p := newStrictPair(t, `
domain: d
descriptors:
  - key: two
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 2, consistency: strict}
`)
	within := 0
	for i := range 8 {
		n, r := []*Node{p.lessee, p.owner}[i%2], make([]Receipt, 1)
		c := p.ask(n, "two")
		n.Receipts(p.at(), c.Hits(), c.Statuses, r)
		st := &c.Statuses[0]
		if !c.Decision.Allowed || st.Over == (r[0].Hits > 0) {
			t.Fatalf("call %d has receipt %+v: %+v", i, r[0], st)
		}
		if !st.Over {
			within++
		}
		p.now += 100 * time.Millisecond
	}
	if within != 2 {
		t.Errorf("%d calls within a limit of 2", within)
	}
}

// TestStrictKeysFull fills the tables of an owner and of a lessee with keys of
// a day. More keys are decided by on_failure with the reason keys_full,
// and at once where the daemon that was called has no room. Keys with an entry
// go on as before.
func TestStrictKeysFull(t *testing.T) {
	const limits = `
domain: d
descriptors:
  - key: user
    rate_limit: {unit: day, requests_per_unit: 3, consistency: strict}
`
	user := func(i int) *Call {
		return &Call{Domain: "d", Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: "user", Value: fmt.Sprint(i)}}, Hits: 1}}}
	}
	for _, room := range []struct{ owner, lessee int }{{2, 1000}, {1000, 2}, {2, 2}} {
		p := newFullStrictPair(t, limits, room.owner, room.lessee)
		for i := range 5 {
			asked := p.lessee.LeaseStats().Requests
			c := p.decide(p.lessee, user(i))
			if st := &c.Statuses[0]; c.Decision.Allowed != (i < 2) || (st.Degraded == KeysFull) != (i >= 2) || st.Over && st.Gate != FailureGate {
				t.Errorf("room for %v: key %d: %+v", room, i, st)
			}
			if i >= 2 && room.lessee == 2 && p.lessee.LeaseStats().Requests != asked {
				t.Errorf("room for %v: key %d is requested, without room for its lease", room, i)
			}
		}
		for i := range 3 {
			c := p.decide(p.lessee, user(1))
			if st := &c.Statuses[0]; c.Decision.Allowed != (i < 2) || st.Degraded != NotDegraded {
				t.Errorf("room for %v: call %d on a key with an entry: %+v", room, i, st)
			}
		}
		p.now += 25 * time.Hour
		p.owner.Tick(p.at())
		p.lessee.Tick(p.at())
		if c := p.decide(p.lessee, user(9)); !c.Decision.Allowed || c.Statuses[0].Degraded != NotDegraded {
			t.Errorf("room for %v: a day later: %+v", room, c.Statuses[0])
		}
	}
}

// TestStrictChargeInOverflow denies a call for one limit while the strict key
// of another one would wait for its owner and has no counter of its own. A rule
// that charges denied hits charges the shared counter, and the status has the
// reason keys_full. Otherwise nothing is charged, and the status has none.
func TestStrictChargeInOverflow(t *testing.T) {
	for _, charged := range []bool{true, false} {
		p := newFullStrictPair(t, fmt.Sprintf(`
domain: d
descriptors:
  - key: ten
    rate_limit: {unit: day, requests_per_unit: 10, overage_budget: 10%%, placement: owner, charge_denied: %v}
  - key: one
    rate_limit: {unit: day, requests_per_unit: 1}
`, charged), 1000, 1)
		p.ask(p.lessee, "one")
		c := p.ask(p.lessee, "ten", "one")
		st, want := &c.Statuses[0], NotDegraded
		if charged {
			want = KeysFull
		}
		if c.Decision.Allowed || !st.Wait || st.decided.charge != charged || st.Degraded != want {
			t.Errorf("charge_denied %v: %+v", charged, st)
		}
	}
}

// TestStrictCallDoesNotAllocate checks decisions from a lease and at the owner.
func TestStrictCallDoesNotAllocate(t *testing.T) {
	p := newStrictPair(t, `
domain: d
descriptors:
  - key: hot
    rate_limit: {unit: day, requests_per_unit: 1000000, consistency: strict}
`)
	for name, n := range map[string]*Node{"owner": p.owner, "lessee": p.lessee} {
		for range 2_000 { // at a rate for which rights are leased ahead
			p.now += 100 * time.Microsecond
			p.ask(n, "hot")
		}
		c := &Call{Domain: "d", Descriptors: []rules.Descriptor{{Entries: []rules.Entry{{Key: "hot", Value: "x"}}, Hits: 1}}}
		if err := p.matcher.Resolve(c); err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(10, func() { n.Take(p.at(), c.Hits(), c.Statuses) }); got != 0 || c.Statuses[0].Wait {
			t.Errorf("%s: %v allocations, waits %v", name, got, c.Statuses[0].Wait)
		}
		p.drain()
	}
}
