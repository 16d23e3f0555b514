package audit

import (
	"slices"
	"time"

	"github.com/georld/rld/node"
	"github.com/georld/rld/quota"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// statusAuditor reads what daemons state for status pages, and checks that it
// agrees with itself and with the decisions that were made.
type statusAuditor struct {
	finding
	processes []stated // by Daemon.Index
}

// stated is the latest status that a process stated.
type stated struct {
	next        time.Duration // when its status is read again
	pause       time.Duration // from the latest reading until then
	readings    int
	descriptors uint64 // of limits, that it decided
}

// The first two readings of a process are statusAtLeast apart, and each pause
// is a quarter longer than the one before, up to statusAtMost. One reading in
// busyEvery has the busiest keys too, which cost as much as hundreds of
// decisions.
const (
	statusAtLeast = 500 * time.Millisecond
	statusAtMost  = 10 * time.Second
	busyEvery     = 8
)

func status(a *sim.Auditor, t *truth) {
	s := &statusAuditor{finding{a, t}, make([]stated, len(t.world.Daemons()))}
	a.Decided = s.decided
	a.Restarted = func(d *sim.Daemon) { s.processes[d.Index] = stated{} }
}

func (a *statusAuditor) decided(d *sim.Decided) {
	p := &a.processes[d.Daemon.Index]
	if d.Limit != nil {
		p.descriptors++
	}
	if d.At < p.next || d.Limit == nil || d.Rule == nil || d.Rule.Limit != d.Limit || !d.Daemon.Up {
		return
	}
	p.pause = max(statusAtLeast, min(p.pause+p.pause/4, statusAtMost))
	p.next = d.At + p.pause
	p.readings++
	n := d.Daemon.Nodes[a.entry.shard]
	a.explained(d, n)
	if p.readings%busyEvery == 1 {
		a.busy(d, n)
	}
	a.tallies(d, p)
	if r := d.Daemon.RightsAgent(); r != nil {
		a.epochs(d, r)
	}
	a.owners(d)
}

// explained checks the account of the key of a decision.
func (a *statusAuditor) explained(d *sim.Decided, n *node.Node) {
	x := n.Explain(d.Instant, &node.Hit{Key: d.Key, Rule: d.Rule, Limit: d.Limit, N: d.Hits})
	if r := x.Rights; r != nil {
		a.check(r.Used <= r.Allotment+r.Received && r.Why.String() != "", "%s states rights of %+v", d.Daemon.Name, *r)
	}
	if x.Ledger == nil {
		return
	}
	if l := x.Ledger.Lease; l != nil {
		a.check(l.Used+l.Returned+l.Left <= l.Granted, "%s states a lease of %+v", d.Daemon.Name, *l)
	}
	if o := x.Ledger.Owned; o != nil {
		for _, g := range o.Grantees {
			a.check(g.Returned <= g.Granted, "%s states that %v returned %d of %d", d.Daemon.Name, g.Lessee, g.Returned, g.Granted)
		}
	}
}

// busy checks the keys that are asked for most.
func (a *statusAuditor) busy(d *sim.Decided, n *node.Node) {
	for _, k := range n.Hottest(d.Instant) {
		a.check(k.Asked >= k.Denied && (k.Rule == nil || k.Capacity == quota.Of(k.Rule.Limit).Capacity()),
			"%s states %+v", d.Daemon.Name, k)
	}
	var hits []node.RegionHits
	n.Busiest(d.Instant, func(b *node.Busy) {
		a.check(b.Stranded <= b.Rights && b.Count > 0 && b.Length > 0, "%s states %+v", d.Daemon.Name, *b)
		for _, r := range n.Admitted(hits[:0], b) {
			a.check(slices.Contains(a.world.Regions(), r.Region), "%s states hits of a region %q", d.Daemon.Name, r.Region)
		}
	})
}

// sameCall bounds the descriptors of a call behind the one at hand.
const sameCall = 16

// tallies checks the numbers of decisions.
func (a *statusAuditor) tallies(d *sim.Decided, p *stated) {
	var sum quota.Tally
	for _, n := range d.Daemon.Nodes {
		n.Tallies(func(_ *rules.Rule, t quota.Tally) { sum = sum.Plus(t) })
	}
	a.check(sum.Allowed+sum.Denied+sum.Shadowed <= p.descriptors+sameCall && sum.Stranded <= sum.DeniedRights,
		"%s states %+v of %d descriptors", d.Daemon.Name, sum, p.descriptors)
}

// epochs checks the epochs of a rights agent.
func (a *statusAuditor) epochs(d *sim.Decided, r *agent.Agent) {
	s := r.Status()
	a.check(s.Holds == (s.Reason == epoch.ReasonEpoch) && len(s.Regions) > 0 && len(s.Daemons) > 0,
		"%s states epochs of %+v", d.Daemon.Name, s)
	for _, e := range slices.Concat(s.Regions, s.Daemons) {
		a.check(e.ID != "" && (!e.Settled || len(e.Missing) == 0),
			"%s states an epoch of %+v", d.Daemon.Name, e)
	}
	sum := uint64(0)
	for _, m := range r.Weights(d.Rule.Shared()) {
		sum += m.Weight
	}
	a.check(sum <= epoch.Whole, "%s states weights of %d parts per million", d.Daemon.Name, sum)
}

// owners checks an acceptor, the paths to owners and the clocks of peers.
func (a *statusAuditor) owners(d *sim.Decided) {
	for _, c := range d.Daemon.Circuits(a.world.Now()) {
		a.check(c.Failed <= c.Calls && c.Name != "" && c.State.String() != "", "%s states a path of %+v", d.Daemon.Name, c)
	}
	if v := d.Daemon.Acceptor(); v != nil {
		s := v.Status()
		a.check(s.Voting == (s.Reason == "") && (s.Layout.Number == 0 || s.Layout.Validate() == nil), "%s states %+v", d.Daemon.Name, s)
	}
	n := d.Daemon.Nodes[0]
	stamps := n.Stamps()
	for id := range n.Offsets() {
		a.check(a.byIncarnation[id] != nil && stamps[id] > 0, "%s states a clock of %v, which never ran", d.Daemon.Name, id)
	}
}
