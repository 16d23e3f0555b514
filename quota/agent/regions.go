package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// regions are the regions of the cluster, ascending by name.
type regions struct {
	all []Region
	own int // place of this daemon's generation of its region, -1 for none
}

// newRegions returns the regions of a list.
func newRegions(all []Region, generation uint64) regions {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Region) int { return cmp.Compare(a.Name, b.Name) })
	return regions{all, slices.IndexFunc(all, func(r Region) bool { return r.ID == generation })}
}

// index returns the place of a region by its name, -1 for none.
func (r *regions) index(name string) int {
	return slices.IndexFunc(r.all, func(g Region) bool { return g.Name == name })
}

// ended returns the retirements in epochs of the record, of regions that are
// not in it.
func (r *regions) ended(epochs []epoch.Epoch) []epoch.Retirement {
	var all []epoch.Retirement
	for i := range epochs {
		for _, d := range epochs[i].Retired {
			is := func(o epoch.Retirement) bool { return o.ID == d.ID }
			if !slices.ContainsFunc(all, is) && !slices.ContainsFunc(r.all, func(g Region) bool { return g.ID == d.ID }) {
				all = append(all, d)
			}
		}
	}
	return all
}

// Confirm states that the latest call of Regions and Dead was with a record
// that is current as of after the start of this agent. Before it the daemon
// holds nothing: its region or its own participant may have ended while it was
// down.
func (a *Agent) Confirm() {
	if !a.confirmed {
		a.confirmed = true
		a.version++
	}
}

// Regions sets the regions of the cluster, 1 to 64, and adds the latest epochs
// of regions, both as a record of the control log has them. While the regions
// are without the generation of this daemon, it holds nothing. A bad list
// changes nothing and is an Event.
func (a *Agent) Regions(all []Region, epochs []epoch.Epoch) {
	if err := validateRegions(all); err != nil {
		a.refused("", fmt.Errorf("regions of the record: %w", err))
		return
	}
	if next := newRegions(all, a.cfg.Generation); !slices.Equal(next.all, a.regions.all) {
		a.regions = next
		a.names.regions = append(next.all, a.names.regions...)
		a.names.regions = a.names.regions[:min(len(a.names.regions), 2*epoch.MaxMembers)]
		a.demand.regions = make([]periodDemand, len(next.all))
		a.balance.setRules(a.balance.rules, a.at)
		a.version++
	}
	if n := len(epochs); n > 0 {
		a.recorded = epochs[n-1]
	} else if genesis, err := a.cfg.regions(); err == nil {
		a.recorded = genesis
	}
	a.ended = a.regions.ended(epochs)
	for i := range epochs {
		e := &epochs[i]
		if a.proposal.epoch != nil && !e.ID.Before(a.proposal.epoch.ID) {
			a.proposal = proposal{}
		}
		if a.region.Knows(e.ID) {
			continue
		}
		err := plausible(regionTable, e)
		if err == nil {
			err = a.region.Learn(*e)
		}
		if err != nil && !errors.Is(err, epoch.ErrStale) {
			a.refused("", fmt.Errorf("record: %w", err))
			continue
		}
		a.learned[regionTable] = a.at
		a.changes++
	}
	a.advance()
}

// Settled returns the greatest epoch of regions that is settled here. An entry
// of the control log with a new epoch names it as its predecessor: an epoch on
// one that is never settled is not settled either.
func (a *Agent) Settled() epoch.ID { return settledID(a.region) }

// Newest returns the newest epoch of regions that is known here. The caller
// must not change it.
func Newest(a *Agent) epoch.Epoch { return newest(a.region).Epoch }

// Dead sets the dead participants of the region's epochs, as the record of the
// control log has them: none admits anything in a window that starts at its
// From or later. The leader of the region proposes an epoch without them. If
// this daemon is one of them, it holds nothing.
func (a *Agent) Dead(dead []epoch.Retirement) {
	m := &a.members
	m.dead = slices.Clone(dead)
	slices.SortFunc(m.dead, func(a, b epoch.Retirement) int { return cmp.Compare(a.ID, b.ID) })
	_, a.dead = m.deadFrom(a.cfg.Self)
	a.version++
}

// barred returns whether the daemon holds nothing, whatever its tables contain,
// and the reason.
func (a *Agent) barred() (reason epoch.Reason, barred bool) {
	switch {
	case !a.confirmed:
		return epoch.ReasonWaiting, true
	case a.dead || a.regions.own < 0:
		return epoch.ReasonLeftOut, true
	}
	return epoch.ReasonEpoch, false
}

// proposeAgain is how long an epoch of regions is waited for that was proposed:
// a recovery of the control log may have dropped it.
const proposeAgain = 30 * time.Second

// ProposalDone is the result of Ready.Proposal: nil if the control log has the
// epoch, which comes with Regions, or the error.
func (a *Agent) ProposalDone(err error) {
	if err != nil && a.proposal.epoch != nil {
		a.proposal, a.resting[regionTable] = proposal{}, a.at+retryPropose
		a.balance.pins = true
		a.refused("", fmt.Errorf("the proposed epoch of regions: %w", err))
	}
}

// proposal is an epoch of regions that this agent proposed and waits for.
type proposal struct {
	epoch  *epoch.Epoch // nil for none
	at     time.Duration
	unsent bool // until Ready returned it
}

// lost reports whether the epoch does not come any more.
func (p *proposal) lost(at time.Duration) bool { return p.epoch != nil && at-p.at >= proposeAgain }
