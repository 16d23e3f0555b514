package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/internal/eventlog"
	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// balance computes shares of rules from the demand of the regions. The leaders
// of all regions compute alike; that of the first region by name proposes.
type balance struct {
	cfg    *Config
	of     *regions
	demand *demand
	log    *eventlog.Log[EventKind]

	rules []Rule
	// regions are the members of the epoch, as places among those of the
	// cluster.
	regions     []int
	rebalancers []*overage.Rebalancer // by rule, nil before the first use
	done        uint64                // the last period that was handled
	pins        bool                  // pinned weights must be checked
	since       time.Duration         // of the latest change of rules
}

const (
	// waitRegions is how long after the end of a period the leader waits for
	// the demand of other regions.
	waitRegions = 2 * time.Second
	// primes is how often a new rebalancer of a rule with a short window
	// receives the first demand: it starts from equal demand, and would follow
	// the first demand only by half.
	primes = 3
	// keepRules is how long after a change of rules the shares of unknown rules
	// are kept: other daemons may know them.
	keepRules = time.Minute
	// smoothWindows is the number of a rule's windows that its demand is
	// smoothed over. Weights that follow the latest burst are worse than equal
	// ones.
	smoothWindows = 12
)

// setRules sets the rules and drops the state of the former ones.
func (b *balance) setRules(rules []Rule, at time.Duration) {
	b.rules, b.rebalancers, b.regions, b.pins, b.since = rules, nil, nil, true, at
}

// rebalance proposes shares from the demand of the last period once that of all
// regions is known. An epoch that others acknowledged counts also after a
// recovery of the log dropped it: that of the record takes its place.
func (a *Agent) rebalance() {
	b := &a.balance
	if a.proposal.lost(a.at) {
		a.proposal, b.pins = proposal{}, true
	}
	if !a.leading || !a.ready || a.at < a.resting[regionTable] || a.proposal.epoch != nil {
		return
	}
	top := newest(a.region)
	old, dropped := age(a.now, top.Epoch.ID) >= proposeEvery, top.Epoch.ID != a.recorded.ID
	if dropped { // by a recovery of the log, or the record is late
		top = epoch.EntryView{Epoch: a.recorded}
	}
	if !b.arrange(&top) {
		return
	}
	proposer := b.regions[0] == a.regions.own
	var shares []epoch.RuleShares
	reason := "demand"
	ended := endedMembers(a, &top)
	switch {
	case (dropped || barren(a.region) || len(ended) > 0) && proposer && old:
		a.tryPropose(regionTable, retire(successor(&top), ended), "again, on what is settled")
		return
	case b.pins && proposer && top.Settled:
		b.pins, reason = false, "pinned weights"
		shares = b.weigh(&top, false)
	case b.ready(a.at):
		shares = b.weigh(&top, true)
		proposer = proposer && top.Settled && old
	}
	if proposer && len(shares) > 0 {
		a.tryPropose(regionTable, b.with(&top, shares, a.at),
			fmt.Sprintf("%s: %d rules of %d", reason, len(shares), len(b.rules)))
	}
}

// ready reports whether the demand of the last period is complete, once for
// each period. Regions that send none in time keep their weights.
func (b *balance) ready(at time.Duration) bool {
	d := b.demand
	if b.done >= d.period || d.period == 0 {
		return false
	}
	for _, i := range b.regions {
		if d.regions[i].period != d.period {
			if at-d.closed >= waitRegions {
				b.done = d.period
			}
			return false
		}
	}
	b.done = d.period
	return true
}

// arrange makes the rebalancers for the regions of the newest epoch, except
// those that drain, and reports whether this region is among them.
func (b *balance) arrange(top *epoch.EntryView) bool {
	var regions []int
	known := 0
	for i, r := range b.of.all {
		k := placeIn(top, r.ID)
		if k < 0 {
			continue
		}
		if known++; top.Epoch.Members[k].Amount > 0 {
			regions = append(regions, i)
		}
	}
	if known != len(top.Epoch.Members) || !slices.Contains(regions, b.of.own) {
		return false // the record is on its way
	}
	if !slices.Equal(regions, b.regions) || len(b.rebalancers) != len(b.rules) {
		b.regions, b.rebalancers, b.pins = regions, make([]*overage.Rebalancer, len(b.rules)), true
	}
	return true
}

// placeIn returns the place of a participant among the members of an epoch, -1
// for none.
func placeIn(e *epoch.EntryView, id uint64) int {
	return slices.IndexFunc(e.Epoch.Members, func(m epoch.Member) bool { return m.ID == id })
}

// weigh returns the shares that change by the rebalancers, without demand only
// those of pinned rules.
func (b *balance) weigh(top *epoch.EntryView, withDemand bool) []epoch.RuleShares {
	n := len(b.regions)
	hits, current := make([]uint64, n), make([]rules.PPM, n)
	var changed []epoch.RuleShares
	for r := range b.rules {
		rule := &b.rules[r]
		relevant := len(rule.Pins) > 0
		for j, i := range b.regions {
			hits[j] = 0
			if withDemand {
				hits[j] = hitsOf(b.demand.regions[i].rows, rule.ID)
				relevant = relevant || hits[j] > 0
			}
		}
		if !relevant {
			continue
		}
		for j, i := range b.regions {
			current[j] = rules.PPM(top.Epoch.AmountOf(rule.ID, b.of.all[i].ID))
		}
		next := b.next(r, withDemand, hits, current)
		if next == nil {
			continue
		}
		shares := make([]uint32, len(top.Epoch.Members))
		for j, i := range b.regions {
			shares[placeIn(top, b.of.all[i].ID)] = uint32(next[j])
		}
		if old, ok := top.Epoch.SharesOf(rule.ID); !ok || !slices.Equal(shares, old) {
			changed = append(changed, epoch.RuleShares{Rule: rule.ID, Shares: shares})
		}
	}
	return changed
}

// next returns the next weights of a rule, nil for no change.
func (b *balance) next(r int, withDemand bool, hits []uint64, current []rules.PPM) []rules.PPM {
	fresh := b.rebalancers[r] == nil
	if fresh {
		b.rebalancers[r] = b.rebalancer(&b.rules[r])
	}
	if fresh && withDemand && b.alpha(&b.rules[r]) == overage.DefaultRebalance(len(b.regions)).Alpha {
		for range primes {
			_, _ = b.rebalancers[r].Propose(hits, current)
		}
	}
	next, err := b.rebalancers[r].Propose(hits, current)
	if err != nil {
		b.log.Add(PinsUnfit, "", fmt.Sprintf("rule %016x: %v", b.rules[r].ID, err))
		return nil
	}
	return next
}

// alpha returns how far smoothed demand moves to that of one period.
func (b *balance) alpha(rule *Rule) rules.PPM {
	most := overage.DefaultRebalance(len(b.regions)).Alpha
	if rule.Window <= 0 {
		return most
	}
	periods := smoothWindows*uint64(rule.Window)/uint64(b.cfg.Period) + 1
	return max(1, min(most, rules.PPM(epoch.Whole/periods)))
}

// rebalancer returns the rebalancer of a rule, without its pins if they do not
// fit the regions.
func (b *balance) rebalancer(rule *Rule) *overage.Rebalancer {
	cfg := overage.DefaultRebalance(len(b.regions))
	cfg.Alpha = b.alpha(rule)
	for _, p := range rule.Pins {
		i := b.of.index(p.Region)
		if j := slices.Index(b.regions, i); i >= 0 && j >= 0 {
			cfg.Pins = append(cfg.Pins, overage.Pin{Region: j, Share: p.Share})
		}
	}
	made, err := overage.NewRebalancer(cfg)
	if err != nil {
		b.log.Add(PinsUnfit, "", fmt.Sprintf("rule %016x: %v", rule.ID, err))
		cfg.Pins = nil
		made, _ = overage.NewRebalancer(cfg) // the defaults are valid for any number of regions
	}
	return made
}

// with returns the successor of an epoch with changed shares.
func (b *balance) with(top *epoch.EntryView, changed []epoch.RuleShares, at time.Duration) epoch.Epoch {
	e := successor(top)
	known := func(rule uint64) bool {
		_, ok := slices.BinarySearch(b.demand.ids, rule)
		return ok
	}
	next := slices.DeleteFunc(e.Rules, func(old epoch.RuleShares) bool {
		return slices.ContainsFunc(changed, func(r epoch.RuleShares) bool { return r.Rule == old.Rule }) ||
			!known(old.Rule) && at-b.since >= keepRules
	})
	most := min(epoch.MaxRules, epoch.MaxAmounts/len(e.Members))
	next = append(next, changed[:min(len(changed), most)]...)
	if len(next) > most { // former rules make room
		next = slices.DeleteFunc(next, func(r epoch.RuleShares) bool { return !known(r.Rule) })
	}
	slices.SortFunc(next, func(a, b epoch.RuleShares) int { return cmp.Compare(a.Rule, b.Rule) })
	e.Rules = next[:min(len(next), most)]
	return e
}

// successor returns an epoch like the newest one, to be changed and proposed.
func successor(top *epoch.EntryView) epoch.Epoch {
	e := epoch.Epoch{Members: slices.Clone(top.Epoch.Members), Rules: slices.Clone(top.Epoch.Rules)}
	if !top.Settled {
		e.Retired = slices.Clone(top.Epoch.Retired)
	}
	return e
}

// endedMembers returns a retirement of each region that has ended by the
// record and that top neither names nor retires, while an epoch that is not
// settled names it. Such an epoch is of a log that a recovery dropped. Once
// others acknowledged it, no epoch above it is settled without the retirement.
// That is from now on: the region may have used the epoch before it learned its
// end.
func endedMembers(a *Agent, top *epoch.EntryView) []epoch.Retirement {
	var all []epoch.Retirement
	settled := settledID(a.region)
	for _, r := range a.ended {
		if top.Epoch.Has(r.ID) || slices.ContainsFunc(top.Epoch.Retired, func(o epoch.Retirement) bool { return o.ID == r.ID }) {
			continue
		}
		for i := range a.region.Len() {
			if k := a.region.At(i); settled.Before(k.Epoch.ID) && k.Epoch.Has(r.ID) {
				all = append(all, epoch.Retirement{ID: r.ID, From: max(r.From, a.now)})
				break
			}
		}
	}
	return all
}

// retire adds retirements to an epoch that has none of them.
func retire(e epoch.Epoch, more []epoch.Retirement) epoch.Epoch {
	e.Retired = append(e.Retired, more...)
	slices.SortFunc(e.Retired, func(a, b epoch.Retirement) int { return cmp.Compare(a.ID, b.ID) })
	e.Retired = e.Retired[:min(len(e.Retired), epoch.MaxMembers)]
	return e
}
