package node

import (
	"math"
	"time"

	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sticky"
)

// desk is a node's part in strict keys: the ledgers it knows, as a home or as one
// that asks homes, and what is to be done about them.
type desk struct {
	of       map[ledgerID]*ledger // bounded by Config.MaxKeys
	byTerm   map[uint64]*ledger   // those with a bank, by the term of its keeper
	all      []*ledger
	hand     int       // next of all to sweep
	active   []*ledger // that wait for something
	out      []sticky.Message
	answered []uint64
	asked    uint64 // ID of the latest ask
	leaving  bool   // keep nothing
	banks    uint64 // that were made so far
	terms    []terms
	counts   StrictStats
}

// StrictStats counts what a node did about strict keys, since its start.
type StrictStats struct {
	// Ledgers is how many are known now.
	Ledgers int
	// Local counts hits that were decided at once, Sought those that waited.
	Local, Sought uint64
	// Requests, Grants and Denials are what was sent: asks to homes, and the answers
	// of this one. Cached counts the hits refused by a denial heard before.
	Requests, Grants, Denials, Cached uint64
	// Granted sums up the rights that this home gave, Returned those that came back.
	Granted, Returned uint64
	// Replayed counts asks that had been answered already, Refused those that could
	// not be, by reason, and Rejected items of other keys, labels or daemons.
	Replayed, Rejected uint64
	Refused            [sticky.MaxReason + 1]uint64
	// Accepts counts what was sent to replicas, Accepted what a majority holds, and Lost
	// how often another home prevailed.
	Accepts, Accepted, Lost uint64
}

// Add adds another shard's numbers.
func (s *StrictStats) Add(o StrictStats) {
	s.Ledgers += o.Ledgers
	s.Local += o.Local
	s.Sought += o.Sought
	s.Requests += o.Requests
	s.Grants += o.Grants
	s.Denials += o.Denials
	s.Cached += o.Cached
	s.Granted += o.Granted
	s.Returned += o.Returned
	s.Replayed += o.Replayed
	s.Rejected += o.Rejected
	for i := range s.Refused {
		s.Refused[i] += o.Refused[i]
	}
	s.Accepts += o.Accepts
	s.Accepted += o.Accepted
	s.Lost += o.Lost
}

// terms are the limits that the ledgers of a rule are kept under.
type terms struct {
	of             *rules.Limit
	regions        int // of the layout
	owner, reserve rules.Limit
	// Where rights sit in each region, home holds what the region has of the
	// label, by the epochs of version.
	window  int64
	version uint64
}

// ledgerID names a ledger: a key may be that of another rule after a reload, and of
// the former again after one more.
type ledgerID struct {
	key  crdt.Key
	rule uint64 // as daemons name it
	own  bool   // each region has one for itself
}

// nameOf names the ledger that a key has under a rule.
func nameOf(key crdt.Key, r *rules.Rule, reserve bool) ledgerID {
	return ledgerID{key, SharedRule(r), !reserve && r.Limit.HomeInRegion()}
}

// ledger is what a node knows of the rights to one key that a home grants: of the
// key itself, or of the floor that its region falls back to.
type ledger struct {
	key     crdt.Key // of the ledger
	name    ledgerID
	id      rules.ID
	shared  uint64 // as daemons name the rule
	reserve bool
	active  bool
	bank    *bank // nil where this daemon was never home of it
	credit  credit
	// waiters are calls that wait for rights or have not charged them yet, in the
	// order in which they came.
	waiters []waiter
}

// deskEvery is the time between two looks at ledgers that wait for something.
const deskEvery = 20 * time.Millisecond

// maxWaiters bounds the calls that wait for one ledger.
const maxWaiters = 4_096

// waiting says how things stand for a waiter.
type waiting uint8

const (
	stillWaiting waiting = iota
	granted              // rights are set aside
	denied
	unanswered // the home could not say
)

// waiter is one call that sought rights.
type waiter struct {
	ticket uint64
	hits   uint64 // granted: that are set aside
	ask    uint64 // ID of the ask that covers it, 0 for none yet
	first  uint64 // ID of the first one
	state  waiting
	banked bool  // set aside by the bank, not of the credit
	again  bool  // asked again, as a label had ended
	window int64 // that they are of
	report quota.Report
}

// ledgerAt returns a ledger, nil for one that is not known.
func (n *Node) ledgerAt(h *Hit, reserve bool) *ledger {
	return n.desk.of[nameOf(ledgerKey(h.Key, reserve), h.Rule, reserve)]
}

func ledgerKey(k crdt.Key, reserve bool) crdt.Key {
	if reserve {
		return reserveKey(k)
	}
	return k
}

// regionTerms brings the terms of a rule whose rights sit in each region up to what the
// region holds of the label: the greatest it held of it.
func (n *Node) regionTerms(t *terms, r *rules.Rule, now int64) {
	x, carry := quota.Of(r.Limit).RightsWindow(now)
	version := n.cfg.Allotments.Version()
	if t.window == x && t.version == version {
		return
	}
	if t.window != x {
		t.owner.Requests, t.owner.Burst = 0, 0
	}
	t.window, t.version = x, version
	requests, _ := n.cfg.Allotments.RegionAllotment(SharedRule(r), r.Limit.Total(), x, carry)
	burst, _ := n.cfg.Allotments.RegionAllotment(SharedRule(r), r.Limit.TotalBurst(), x, carry)
	t.owner.Requests = max(t.owner.Requests, uint32(min(requests, math.MaxUint32)))
	t.owner.Burst = max(t.owner.Burst, uint32(min(burst, math.MaxUint32)))
}

// open returns a ledger, which is made when there is none; nil when there is no
// room for another.
func (n *Node) open(key crdt.Key, r *rules.Rule, reserve bool) *ledger {
	d := &n.desk
	id := nameOf(key, r, reserve)
	if l := d.of[id]; l != nil {
		return l
	}
	if len(d.all) >= n.cfg.MaxKeys && n.sweepLedgers(sweepOnInsert) == 0 {
		return nil
	}
	if d.of == nil {
		d.of = map[ledgerID]*ledger{}
	}
	l := &ledger{key: key, name: id, id: r.ID, shared: SharedRule(r), reserve: reserve}
	d.of[id] = l
	d.all = append(d.all, l)
	return l
}

// isOf reports whether a ledger is that of a rule in force, nil for none.
func (l *ledger) isOf(r *rules.Rule) bool {
	return r != nil && r.Limit != nil && nameOf(l.key, r, l.reserve) == l.name
}

// attend has Errands and Tick look at a ledger.
func (n *Node) attend(l *ledger) {
	if !l.active {
		l.active = true
		n.desk.active = append(n.desk.active, l)
	}
}

// sweepLedgers looks at some ledgers and forgets those that can no longer matter.
func (n *Node) sweepLedgers(budget int) (dropped int) {
	d := &n.desk
	for range min(budget, len(d.all)) {
		if d.hand >= len(d.all) {
			d.hand = 0
		}
		l := d.all[d.hand]
		if !l.active {
			n.tidy(l)
		}
		if l.active || !l.over(n.now) {
			d.hand++
			continue
		}
		delete(d.of, l.name)
		n.closeBank(l)
		last := len(d.all) - 1
		d.all[d.hand] = d.all[last]
		d.all[last] = nil
		d.all = d.all[:last]
		dropped++
	}
	return dropped
}

// over reports whether nothing of the ledger can matter any more.
func (l *ledger) over(now int64) bool {
	if len(l.waiters) > 0 || now < l.credit.until+ledgerKept {
		return false
	}
	return l.bank == nil || l.bank.over(now)
}

// ledgerKept is for how long beyond its end the last credit is kept, in
// milliseconds: what a late grant adds to.
const ledgerKept = 5_000

// termsOf returns the limit that a ledger of a rule is kept under; nil when the
// rule has no such ledger.
func (n *Node) termsOf(r *rules.Rule, reserve bool, now int64) *rules.Limit {
	i := n.rules.index(r)
	if i < 0 || r.Limit == nil || !r.Limit.Homed() {
		return nil
	}
	r = n.rules.set.Rules()[i]
	d := &n.desk
	if len(d.terms) != len(n.rules.set.Rules()) {
		d.terms = make([]terms, len(n.rules.set.Rules()))
	}
	t := &d.terms[i]
	regions := 1
	if v := n.cfg.Owners.Routing(); v != nil {
		regions = v.Regions()
	}
	if t.of != r.Limit || t.regions != regions {
		*t = terms{of: r.Limit, regions: regions, owner: r.Limit.OwnerLimit(regions), reserve: r.Limit.ReserveLimit(regions)}
	}
	switch {
	case reserve && r.Limit.OnFailure != rules.Share:
		return nil
	case reserve:
		return &t.reserve
	case r.Limit.HasRights() && r.Limit.HomeInRegion() && r.Limit.Scope != rules.Region && n.cfg.Allotments != nil:
		n.regionTerms(t, r, now)
	}
	return &t.owner
}

// regional reports whether the home of a ledger is in each daemon's own region.
func regional(l *rules.Limit, reserve bool) bool { return reserve || l.HomeInRegion() }

// ownerOf returns who is home of a ledger.
func (n *Node) ownerOf(key crdt.Key, id rules.ID, regional bool) (route.Owner, *route.Routing) {
	v := n.cfg.Owners.Routing()
	if v == nil {
		return route.Owner{}, nil
	}
	return v.Owner(key, uint64(id), regional), v
}

// waiter finds the waiter of a ticket, -1 for none.
func (l *ledger) waiter(ticket uint64) int {
	for i := range l.waiters {
		if l.waiters[i].ticket == ticket {
			return i
		}
	}
	return -1
}

// send puts an item into the message to a daemon.
func (n *Node) send(to crdt.Incarnation) *sticky.Message {
	out := n.desk.out
	for i := range out {
		if m := &out[i]; m.To == to && max(len(m.Requests), len(m.Grants), len(m.Accepts), len(m.Accepted)) < sticky.MaxItems {
			return m
		}
	}
	n.desk.out = append(out, sticky.Message{From: n.incarnation, To: to})
	return &n.desk.out[len(out)]
}
