package node

import (
	"math"
	"time"

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
	// Asks, Grants and Denials are what was sent: asks to homes, and the answers
	// of this one. Cached counts the hits refused by a denial heard before.
	Asks, Grants, Denials, Cached uint64
	// Granted sums up the rights that this home gave, Returned those that came back.
	Granted, Returned uint64
	// Replayed counts asks that had been answered already, Refused those that could
	// not be, by reason, and Strange items of other keys, labels or daemons.
	Replayed, Strange uint64
	Refused           [sticky.MaxWhy + 1]uint64
	// Raises counts what was sent to replicas, Raised what a majority holds, and Lost
	// how often another home prevailed.
	Raises, Raised, Lost uint64
}

// Add adds another shard's numbers.
func (s *StrictStats) Add(o StrictStats) {
	s.Ledgers += o.Ledgers
	s.Local += o.Local
	s.Sought += o.Sought
	s.Asks += o.Asks
	s.Grants += o.Grants
	s.Denials += o.Denials
	s.Cached += o.Cached
	s.Granted += o.Granted
	s.Returned += o.Returned
	s.Replayed += o.Replayed
	s.Strange += o.Strange
	for i := range s.Refused {
		s.Refused[i] += o.Refused[i]
	}
	s.Raises += o.Raises
	s.Raised += o.Raised
	s.Lost += o.Lost
}

// terms are the limits that the ledgers of a rule are kept under.
type terms struct {
	of          *rules.Limit
	regions     int // of the layout
	home, floor rules.Limit
	// Where rights sit in each region, home holds what the region has of the
	// label, by the epochs of version.
	label   int64
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
func nameOf(key crdt.Key, r *rules.Rule, floor bool) ledgerID {
	return ledgerID{key, SharedRule(r), !floor && r.Limit.HomeInRegion()}
}

// ledger is what a node knows of the rights to one key that a home grants: of the
// key itself, or of the floor that its region falls back to.
type ledger struct {
	key    crdt.Key // of the ledger
	name   ledgerID
	id     rules.ID
	shared uint64 // as daemons name the rule
	floor  bool
	active bool
	bank   *bank // nil where this daemon was never home of it
	credit credit
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
	label  int64 // that they are of
	report quota.Report
}

// ledgerAt returns a ledger, nil for one that is not known.
func (n *Node) ledgerAt(h *Hit, floor bool) *ledger {
	return n.desk.of[nameOf(ledgerKey(h.Key, floor), h.Rule, floor)]
}

func ledgerKey(k crdt.Key, floor bool) crdt.Key {
	if floor {
		return floorKey(k)
	}
	return k
}

// regionTerms brings the terms of a rule whose rights sit in each region up to what the
// region holds of the label: the greatest it held of it.
func (n *Node) regionTerms(t *terms, r *rules.Rule, now int64) {
	x, carry := quota.RightsLabel(r.Limit, now)
	version := n.cfg.Rights.Version()
	if t.label == x && t.version == version {
		return
	}
	if t.label != x {
		t.home.Requests, t.home.Burst = 0, 0
	}
	t.label, t.version = x, version
	requests, _ := n.cfg.Rights.RegionBase(SharedRule(r), r.Limit.Total(), x, carry)
	burst, _ := n.cfg.Rights.RegionBase(SharedRule(r), r.Limit.TotalBurst(), x, carry)
	t.home.Requests = max(t.home.Requests, uint32(min(requests, math.MaxUint32)))
	t.home.Burst = max(t.home.Burst, uint32(min(burst, math.MaxUint32)))
}

// open returns a ledger, which is made when there is none; nil when there is no
// room for another.
func (n *Node) open(key crdt.Key, r *rules.Rule, floor bool) *ledger {
	d := &n.desk
	id := nameOf(key, r, floor)
	if l := d.of[id]; l != nil {
		return l
	}
	if len(d.all) >= n.cfg.MaxKeys && n.sweepLedgers(sweepOnInsert) == 0 {
		return nil
	}
	if d.of == nil {
		d.of = map[ledgerID]*ledger{}
	}
	l := &ledger{key: key, name: id, id: r.ID, shared: SharedRule(r), floor: floor}
	d.of[id] = l
	d.all = append(d.all, l)
	return l
}

// isOf reports whether a ledger is that of a rule in force, nil for none.
func (l *ledger) isOf(r *rules.Rule) bool {
	return r != nil && r.Limit != nil && nameOf(l.key, r, l.floor) == l.name
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
func (n *Node) termsOf(r *rules.Rule, floor bool, now int64) *rules.Limit {
	i := n.ruleIndex(r)
	if i < 0 || r.Limit == nil || !r.Limit.Homed() {
		return nil
	}
	r = n.set.Rules()[i]
	d := &n.desk
	if len(d.terms) != len(n.set.Rules()) {
		d.terms = make([]terms, len(n.set.Rules()))
	}
	t := &d.terms[i]
	regions := 1
	if v := n.cfg.Homes.View(); v != nil {
		regions = v.Regions()
	}
	if t.of != r.Limit || t.regions != regions {
		*t = terms{of: r.Limit, regions: regions, home: r.Limit.HomeLimit(regions), floor: r.Limit.FloorLimit(regions)}
	}
	switch {
	case floor && r.Limit.OnFailure != rules.Share:
		return nil
	case floor:
		return &t.floor
	case r.Limit.HasRights() && r.Limit.HomeInRegion() && r.Limit.Scope != rules.Region && n.cfg.Rights != nil:
		n.regionTerms(t, r, now)
	}
	return &t.home
}

// regional reports whether the home of a ledger is in each daemon's own region.
func regional(l *rules.Limit, floor bool) bool { return floor || l.HomeInRegion() }

// homeOf returns who is home of a ledger.
func (n *Node) homeOf(key crdt.Key, id rules.ID, regional bool) (sticky.Home, *sticky.View) {
	v := n.cfg.Homes.View()
	if v == nil {
		return sticky.Home{}, nil
	}
	return v.Home(key, uint64(id), regional), v
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
func (n *Node) send(to crdt.Slot) *sticky.Message {
	out := n.desk.out
	for i := range out {
		if m := &out[i]; m.To == to && max(len(m.Asks), len(m.Grants), len(m.Raises), len(m.Votes)) < sticky.MaxItems {
			return m
		}
	}
	n.desk.out = append(out, sticky.Message{From: n.slot, To: to})
	return &n.desk.out[len(out)]
}
