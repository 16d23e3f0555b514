package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
	"github.com/georld/rld/quota/overage"
	"github.com/georld/rld/rules"
)

// balance turns the demand of the regions into rows. The leaders of all
// regions follow it alike; the one whose region has the lowest name proposes.
type balance struct {
	// regions are those it is for: the members of the epoch, as places among
	// the configured regions.
	regions []int
	rules   []*overage.Rebalancer // by rule, nil before it is needed
	done    uint64                // the period that was looked at last
	pins    bool                  // they are to be looked at
	since   time.Duration         // when the rules changed last
}

const (
	// waitRegions is how long after the end of a period the demand of the
	// other regions is waited for.
	waitRegions = 2 * time.Second
	// primes is how often a new rebalancer of a rule with a short window is
	// shown the first demand: it starts from equal demand, and would answer
	// that by half.
	primes = 3
	// keepRows is for how long after a change of rules the rows of those that
	// are not known are kept: others may know them.
	keepRows = time.Minute
)

// reset forgets what was for other rules.
func (b *balance) reset(at time.Duration) {
	b.rules, b.regions, b.pins, b.since = nil, nil, true, at
}

// rebalance looks at the demand of the last period once that of all regions
// is there, and proposes what is worth an epoch.
func (o *Agent) rebalance() {
	if !o.leading || !o.ready || o.at < o.resting[0] {
		return
	}
	b, d := &o.balance, &o.demand
	if !o.arrange() {
		return
	}
	top := newest(o.region)
	proposer := b.regions[0] == o.own
	if barren(o.region) && proposer && o.age(top.Epoch.ID) >= proposeEvery {
		o.tryPropose(0, o.successor(&top), "again, on what is settled")
		return
	}
	if b.pins && proposer && top.Settled {
		b.pins = false
		o.proposeRows(&top, o.weigh(&top, false), "pinned weights")
		return
	}
	if b.done >= d.period || d.period == 0 {
		return
	}
	for _, i := range b.regions {
		if d.regions[i].period != d.period {
			if o.at-d.closed >= waitRegions {
				b.done = d.period // one that is not heard keeps its weights
			}
			return
		}
	}
	b.done = d.period
	rows := o.weigh(&top, true)
	if proposer && top.Settled && o.age(top.Epoch.ID) >= proposeEvery {
		o.proposeRows(&top, rows, "demand")
	}
}

// arrange makes the rebalancers for the regions of the newest epoch, and
// reports whether this region is among them.
func (o *Agent) arrange() bool {
	b := &o.balance
	top := newest(o.region)
	var regions []int
	for i, id := range o.ids {
		if top.Epoch.Has(id) {
			regions = append(regions, i)
		}
	}
	if len(regions) != len(top.Epoch.Members) || !slices.Contains(regions, o.own) {
		return false // one that is not configured here is never heard
	}
	if !slices.Equal(regions, b.regions) || len(b.rules) != len(o.rules) {
		b.regions, b.rules, b.pins = regions, make([]*overage.Rebalancer, len(o.rules)), true
	}
	return true
}

// weigh asks the rebalancer of every rule, and returns the rows that are to
// change. Without demand only those of pinned rules are looked at.
func (o *Agent) weigh(top *epoch.EntryView, withDemand bool) []epoch.RuleShares {
	b, d := &o.balance, &o.demand
	n := len(b.regions)
	hits, current := make([]uint64, n), make([]rules.PPM, n)
	var rows []epoch.RuleShares
	for r := range o.rules {
		rule := &o.rules[r]
		any := len(rule.Pins) > 0
		for j, i := range b.regions {
			hits[j] = 0
			if withDemand {
				hits[j] = hitsOf(d.regions[i].rows, rule.ID)
				any = any || hits[j] > 0
			}
		}
		if !any {
			continue
		}
		amounts, hasRow := top.Epoch.SharesOf(rule.ID)
		for j, i := range b.regions {
			current[j] = rules.PPM(top.Epoch.AmountOf(rule.ID, o.ids[i]))
		}
		next := o.ask(r, withDemand, hits, current)
		if next == nil {
			continue
		}
		row := epoch.RuleShares{Rule: rule.ID, Shares: make([]uint32, n)}
		for j, i := range b.regions {
			k := slices.IndexFunc(top.Epoch.Members, func(m epoch.Member) bool { return m.ID == o.ids[i] })
			row.Shares[k] = uint32(next[j])
		}
		if !hasRow || !slices.Equal(row.Shares, amounts) {
			rows = append(rows, row)
		}
	}
	return rows
}

// ask returns the weights that a rule is to have, nil for those it has.
func (o *Agent) ask(r int, withDemand bool, hits []uint64, current []rules.PPM) []rules.PPM {
	b := &o.balance
	fresh := b.rules[r] == nil
	if fresh {
		b.rules[r] = o.rebalancer(&o.rules[r])
	}
	if fresh && withDemand && o.alpha(&o.rules[r]) == overage.DefaultRebalance(len(b.regions)).Alpha {
		for range primes {
			_, _ = b.rules[r].Propose(hits, current)
		}
	}
	next, err := b.rules[r].Propose(hits, current)
	if err != nil {
		o.event(PinsUnfit, "", fmt.Sprintf("rule %016x: %v", o.rules[r].ID, err))
		return nil
	}
	return next
}

// smoothWindows is over how many windows of a rule its demand is smoothed.
// Weights that chase the last burst are worse than equal ones.
const smoothWindows = 12

// alpha is how much of the way smoothed demand goes to that of a period.
func (o *Agent) alpha(rule *Rule) rules.PPM {
	most := overage.DefaultRebalance(len(o.balance.regions)).Alpha
	if rule.Window <= 0 {
		return most
	}
	periods := smoothWindows*uint64(rule.Window)/uint64(o.cfg.Period) + 1
	return max(1, min(most, rules.PPM(epoch.Whole/periods)))
}

// rebalancer returns that of a rule: without its pins where they do not fit
// the regions there are.
func (o *Agent) rebalancer(rule *Rule) *overage.Rebalancer {
	b := &o.balance
	cfg := overage.DefaultRebalance(len(b.regions))
	cfg.Alpha = o.alpha(rule)
	for _, p := range rule.Pins {
		i := o.regionIndex(p.Region)
		if j := slices.Index(b.regions, i); i >= 0 && j >= 0 {
			cfg.Pins = append(cfg.Pins, overage.Pin{Region: j, Share: rules.PPM(p.Share)})
		}
	}
	made, err := overage.NewRebalancer(cfg)
	if err != nil {
		o.event(PinsUnfit, "", fmt.Sprintf("rule %016x: %v", rule.ID, err))
		cfg.Pins = nil
		made, _ = overage.NewRebalancer(cfg) // the defaults are valid for any number of regions
	}
	return made
}

// proposeRows proposes the newest epoch with other rows, if there are any.
func (o *Agent) proposeRows(top *epoch.EntryView, rows []epoch.RuleShares, why string) {
	if len(rows) == 0 {
		return
	}
	e := o.successor(top)
	next := make([]epoch.RuleShares, 0, len(e.Rules)+len(rows))
	for _, old := range e.Rules {
		_, known := slices.BinarySearch(o.demand.ids, old.Rule)
		changed := slices.ContainsFunc(rows, func(r epoch.RuleShares) bool { return r.Rule == old.Rule })
		if !changed && (known || o.at-o.balance.since < keepRows) {
			next = append(next, old)
		}
	}
	most := min(epoch.MaxRules, epoch.MaxAmounts/len(e.Members))
	next = append(next, rows[:min(len(rows), most)]...)
	if len(next) > most { // rows of rules that are gone make room
		next = slices.DeleteFunc(next, func(r epoch.RuleShares) bool {
			_, known := slices.BinarySearch(o.demand.ids, r.Rule)
			return !known
		})
	}
	slices.SortFunc(next, func(a, b epoch.RuleShares) int { return cmp.Compare(a.Rule, b.Rule) })
	e.Rules = next[:min(len(next), most)]
	o.tryPropose(0, e, fmt.Sprintf("%s: %d rules of %d", why, len(rows), len(o.rules)))
}

// successor returns an epoch like the newest one, to be changed and proposed.
func (o *Agent) successor(top *epoch.EntryView) epoch.Epoch {
	e := epoch.Epoch{Members: slices.Clone(top.Epoch.Members), Rules: slices.Clone(top.Epoch.Rules)}
	if !top.Settled {
		e.Retired = slices.Clone(top.Epoch.Retired)
	}
	return e
}
