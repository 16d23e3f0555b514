package agent

import (
	"cmp"
	"math"
	"slices"

	"github.com/georld/rld/quota/epoch"
)

// Status is the state of an agent for status pages.
type Status struct {
	// Failing is the error of the latest store, empty after a success.
	Failing string
	// Holds reports whether this daemon holds rights in a window that starts
	// now. Otherwise Reason is the reason.
	Holds  bool
	Reason epoch.Reason
	// Since is Since of the table of daemons.
	Since int64
	// Regions and Daemons are the two tables, from the settled epoch on.
	Regions, Daemons []EpochStatus
}

// EpochStatus is the state of one epoch.
type EpochStatus struct {
	ID      string
	Settled bool
	// Since is the time of its proposal in Unix milliseconds, 0 for the
	// genesis.
	Since int64
	// Members, and all other names, are ordered by name.
	Members []MemberStatus
	// Missing are the participants that it waits for: see epoch.WaitsFor.
	Missing []string
	// NoVote are the daemons without a known vote for an epoch of regions that
	// this region has not acknowledged.
	NoVote []string
	Rules  int
}

// MemberStatus is a region and its weight for rules without own shares, in
// parts per million, or a daemon and its weight.
type MemberStatus struct {
	Name   string
	Weight uint64
}

// Status returns the current state.
func (a *Agent) Status() Status {
	s := Status{Regions: a.epochs(regionTable), Daemons: a.epochs(daemonTable)}
	if a.disk.failing != nil {
		s.Failing = a.disk.failing.Error()
	}
	blocked := a.blocked
	_, s.Reason = a.Allotment(0, epoch.Whole, a.now, 0, false)
	a.blocked = blocked
	s.Holds, s.Since = s.Reason == epoch.ReasonEpoch, a.local.Since()
	return s
}

// Weights returns the shares of a rule's total by the newest settled epoch, in
// parts per million, by name of region.
func (a *Agent) Weights(rule uint64) []MemberStatus {
	e, _ := a.region.Settled()
	var out []MemberStatus
	for _, r := range a.regions.all {
		if e.Has(r.ID) {
			out = append(out, MemberStatus{r.Name, e.AmountOf(rule, r.ID)})
		}
	}
	return out
}

// epochs returns the state of the epochs of a table, from the settled one on.
func (a *Agent) epochs(table int) []EpochStatus {
	t := a.table(table)
	settled := settledID(t)
	var out []EpochStatus
	for i := range t.Len() {
		if k := t.At(i); !k.Epoch.ID.Before(settled) {
			s := a.describe(table, &k)
			for _, id := range t.WaitsFor(i) {
				s.Missing = append(s.Missing, a.names.of(table, id))
			}
			slices.Sort(s.Missing)
			out = append(out, s)
		}
	}
	return out
}

func (a *Agent) describe(table int, k *epoch.EntryView) EpochStatus {
	s := EpochStatus{ID: k.Epoch.ID.String(), Settled: k.Settled, Rules: len(k.Epoch.Rules)}
	if k.Epoch.ID != (epoch.ID{}) {
		s.Since = k.Epoch.ID.Stamp.Millis()
	}
	for _, m := range k.Epoch.Members {
		s.Members = append(s.Members, MemberStatus{a.names.of(table, m.ID), m.Amount})
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Name, b.Name) })
	if table == daemonTable || k.Settled || hasAck(k, a.cfg.Generation) {
		return s
	}
	votes := a.votes.of(k.Epoch.ID)
	daemons, _ := a.local.Settled()
	for _, m := range daemons.Members {
		if !slices.ContainsFunc(votes, func(v epoch.Vote) bool { return v.Daemon == m.ID }) {
			s.NoVote = append(s.NoVote, a.names.of(daemonTable, m.ID))
		}
	}
	slices.Sort(s.NoVote)
	return s
}

// Held returns the end of the windows, in Unix milliseconds, in which a daemon
// may use its rights without another message of its peers. It is
// math.MaxInt64 for a daemon without a horizon, and for one that holds nothing.
func Held(a *Agent) int64 {
	if _, barred := a.barred(); barred {
		return math.MaxInt64
	}
	return a.local.Horizon(a.now)
}

// Holders returns the participants of the region of a daemon that may hold
// rights, in ascending order. It is nil if the daemon may not know all of them:
// it holds nothing, or its horizon is over.
func Holders(a *Agent) []uint64 {
	if _, barred := a.barred(); barred {
		return nil
	}
	return slices.DeleteFunc(a.local.Holders(a.now), func(id uint64) bool {
		from, dead := a.members.deadFrom(id)
		return dead && from <= a.now
	})
}

// Stranded reports whether a daemon is left out of the epoch of its region, and
// reaches none of those that hold the rights of the region. Only these know
// which daemons they let in since, and what the region promised. So it holds
// nothing until it reaches one of them, or the region begins again: also after
// the record states that all of them that it knows are dead, since they may
// have let in another one.
func Stranded(a *Agent) bool {
	e, _ := a.local.Settled()
	if _, barred := a.barred(); barred || a.ready || e.Has(a.cfg.Self) {
		return false
	}
	return !slices.ContainsFunc(a.links, func(l *link) bool {
		return l.local && l.alive(a.at) && (l.ready || e.Has(l.member))
	})
}
