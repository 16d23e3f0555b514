package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/quota/epoch"
)

// Status is what an office can tell people.
type Status struct {
	Region, Daemon string
	Ready, Leading bool
	// Failing is the error of storing, empty while it works.
	Failing string
	// Holds says whether this daemon holds base rights of a label that starts
	// now; Reason says why not.
	Holds  bool
	Reason epoch.Reason
	// StoredUntil is the last label (Unix milliseconds) that the stored record
	// covers. ExtendedUntil is the last one that enough others of the region have
	// granted, where they must (Horizon is on and the region has three or
	// more); -1 where they need not.
	StoredUntil, ExtendedUntil int64
	Horizon                    time.Duration
	// Regions and Daemons are the two tables, from the settled epoch on.
	Regions, Daemons []EpochStatus
	// Peers are the others of the region.
	Peers []PeerStatus
}

// EpochStatus is one epoch.
type EpochStatus struct {
	ID      string
	Settled bool
	// Since is when it was proposed (0 for the genesis), and From the first
	// label it is settled for (0 for all); Unix milliseconds.
	Since, From int64
	// Members, and all other names, are in the order of the names.
	Members []MemberStatus
	// Missing are the names of those who have not acknowledged it.
	Missing []string
	// NoVote are, of a regions' epoch that this region has not acknowledged,
	// the daemons whose vote is not here.
	NoVote []string
	Rules  int
}

// MemberStatus is a region and its weight for rules without a row, in parts
// per million, or a daemon and its weight.
type MemberStatus struct {
	Name   string
	Weight uint64
}

// PeerStatus is another daemon of the region.
type PeerStatus struct {
	Name string
	// Heard is how long ago, -1 for never.
	Heard time.Duration
	Ready bool
}

// Status returns what is known now.
func (o *Agent) Status() Status {
	s := Status{
		Region: o.cfg.Region, Daemon: o.cfg.Name, Ready: o.ready, Leading: o.leading,
		StoredUntil:   min(o.region.Bounds().Window, o.local.Bounds().Window),
		ExtendedUntil: -1, Horizon: max(o.cfg.DaemonHorizon, 0),
		Regions: o.epochs(0), Daemons: o.epochs(1),
	}
	if o.disk.failing != nil {
		s.Failing = o.disk.failing.Error()
	}
	if until, ok := o.local.ExtendedUntil(); ok {
		s.ExtendedUntil = max(until, 0)
	}
	blocked := o.blocked
	_, s.Reason = o.Allotment(0, epoch.Whole, o.now, 0, false)
	o.blocked = blocked
	s.Holds = s.Reason == epoch.ReasonEpoch
	for _, l := range o.links {
		if !l.local {
			continue
		}
		p := PeerStatus{Name: l.peer.Name, Heard: -1, Ready: l.ready}
		if l.heardAt >= 0 {
			p.Heard = o.at - l.heardAt
		}
		s.Peers = append(s.Peers, p)
	}
	return s
}

// Weights returns the parts per million of a rule's total that the regions
// have by the newest settled epoch, by name of region.
func (o *Agent) Weights(rule uint64) []MemberStatus {
	e, _ := o.region.Settled()
	var out []MemberStatus
	for i, r := range o.cfg.Regions {
		if e.Has(o.ids[i]) {
			out = append(out, MemberStatus{r.Name, e.AmountOf(rule, o.ids[i])})
		}
	}
	return out
}

func (o *Agent) epochs(table int) []EpochStatus {
	t := o.table(table)
	settled := settledID(t)
	var out []EpochStatus
	for i := range t.Len() {
		if k := t.At(i); !k.Epoch.ID.Before(settled) {
			out = append(out, o.describe(table, &k))
		}
	}
	return out
}

func (o *Agent) describe(table int, k *epoch.EntryView) EpochStatus {
	name := o.regionName
	if table == 1 {
		name = o.daemonName
	}
	s := EpochStatus{ID: k.Epoch.ID.String(), Settled: k.Settled, Rules: len(k.Epoch.Rules)}
	if k.Epoch.ID != (epoch.ID{}) {
		s.Since = k.Epoch.ID.Stamp.Millis()
		if k.Settled {
			s.From = max(k.From, 0)
		}
	}
	for _, m := range k.Epoch.Members {
		s.Members = append(s.Members, MemberStatus{name(m.ID), m.Amount})
		if !k.Settled && !hasAck(k, m.ID) {
			s.Missing = append(s.Missing, name(m.ID))
		}
	}
	slices.SortFunc(s.Members, func(a, b MemberStatus) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(s.Missing)
	if table == 1 || k.Settled || hasAck(k, o.ids[o.own]) {
		return s
	}
	votes := o.votesOf(k.Epoch.ID)
	daemons, _ := o.local.Settled()
	for _, m := range daemons.Members {
		voted := false
		for _, v := range votes {
			voted = voted || v.Daemon == m.ID
		}
		if !voted {
			s.NoVote = append(s.NoVote, o.daemonName(m.ID))
		}
	}
	slices.Sort(s.NoVote)
	return s
}
