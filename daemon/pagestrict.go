package daemon

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/daemon/overage"

	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
)

// strictPage answers /v1/strict.
func (d *daemon) strictPage() api.StrictAnswer {
	out := api.StrictAnswer{Self: d.self(), Alone: d.cluster == nil}
	if d.strict != nil && d.cluster != nil {
		out.Strict = d.strictState(d.cluster.all())
	}
	return out
}

// seats is what is known of the replicas of a region: how many there are, are heard,
// and vote under the latest layout.
type seats struct{ all, heard, votes int }

func (s seats) majority() int { return s.all/2 + 1 }

// waits reports whether a layout is not in force in the region. Of one that is not
// heard nobody can say, which is no reason to wait but in the own region.
func (s seats) waits(own bool) bool {
	return s.votes < s.majority() && s.all > 0 && (own || s.heard >= s.majority())
}

// strictState describes the layout, its replicas, and this daemon's part.
func (d *daemon) strictState(live []gossip.Member) *api.StrictState {
	var status quorum.Status
	voting := map[[2]string]*bool{} // by region and name, nil for unknown
	d.strict.acceptor.do(func(r *quorum.Acceptor) {
		status = r.Status()
		for _, region := range status.Layout.Regions {
			for _, name := range region.Replicas {
				if votes, known := r.Votes(region.Name, name); known {
					voting[[2]string{region.Name, name}] = &votes
				}
			}
		}
	})
	out := &api.StrictState{
		Keys: d.engine.StrictStats().Entries, MaxKeys: d.cfg.MaxKeys, Pins: d.pins(&status.Layout),
	}
	weights := uint64(0)
	for _, r := range status.Layout.Regions {
		weights += uint64(r.Weight)
	}
	waiting := map[string]bool{}
	silent := d.silent()
	for _, r := range status.Layout.Regions {
		region := api.StrictRegion{Region: r.Name, Weight: float64(r.Weight) / float64(max(weights, 1))}
		n := seats{all: len(r.Replicas)}
		for _, name := range r.Replicas {
			x := d.replica(live, r.Name, name, voting[[2]string{r.Name, name}])
			if age, is := silent[[2]string{r.Name, name}]; is && x.Live {
				x.Voting, x.WhyNot = nil, fmt.Sprintf("not heard for %v", age.Round(time.Second))
			}
			if x.Self {
				x.WhyNot = status.Why
			}
			if _, is := silent[[2]string{r.Name, name}]; x.Live && !is {
				n.heard++
			}
			if x.Voting != nil && *x.Voting {
				n.votes++
			}
			region.Voters = append(region.Voters, x)
		}
		if n.waits(r.Name == d.cfg.Region) {
			waiting[r.Name] = true
		}
		out.Regions = append(out.Regions, region)
		out.Warnings = append(out.Warnings, warningOf(r.Name, n, r.Weight > 0)...)
	}
	out.Warnings = append(out.Warnings, d.misplaced(&status.Layout)...)
	d.layoutState(out, &status, waiting)
	d.replicaState(out, &status)
	return out
}

// silent returns for how long daemons were not heard whose streams say nothing, by
// region and name.
func (d *daemon) silent() map[[2]string]time.Duration {
	out := map[[2]string]time.Duration{}
	for _, l := range d.engine.Links(d.engine.Now()) {
		if l.Silent {
			out[[2]string{l.Peer.Region, l.Peer.Name}] = max(l.Age, 0)
		}
	}
	return out
}

// heard returns the daemons that live and are not silent, by region and name.
func (d *daemon) heard() map[[2]string]bool {
	silent, out := d.silent(), map[[2]string]bool{{d.cfg.Region, d.cfg.Name}: true}
	for _, m := range d.cluster.all() {
		at := [2]string{m.Region, m.Name}
		if _, is := silent[at]; !is {
			out[at] = true
		}
	}
	return out
}

// replica describes a replica as far as it is known here.
func (d *daemon) replica(live []gossip.Member, region, name string, voting *bool) api.StrictVoter {
	out := api.StrictVoter{Name: name, Self: region == d.cfg.Region && name == d.cfg.Name, Voting: voting}
	for _, m := range live {
		if m.Region == region && m.Name == name {
			out.Live, out.Ready = true, out.Ready || m.Ready
		}
	}
	if out.Self {
		out.Live, out.Ready = true, d.cluster.ready.Load()
	}
	if !out.Live {
		out.Voting = nil
	}
	return out
}

// warningOf says what could be better about the replicas of a region.
func warningOf(region string, n seats, owner bool) []string {
	switch {
	case n.all == 0 || !owner:
		return nil
	case n.heard < n.majority():
		return []string{fmt.Sprintf("%d of the %d replicas of %s are heard, and it takes %d: strict keys at home there go by on_failure",
			n.heard, n.all, region, n.majority())}
	case n.heard == n.majority() && n.all > 2:
		return []string{fmt.Sprintf("%d of the %d replicas of %s are heard: when one more is lost, strict keys at home there go by on_failure",
			n.heard, n.all, region)}
	case n.all < 3:
		return []string{fmt.Sprintf("%s has %s: when one is lost, strict keys at home there go by on_failure",
			region, plural(n.all, "replica"))}
	}
	return nil
}

// layoutState says which layout is in force: one that a majority of each region's
// replicas votes under, or did when this daemon looked. waiting are the regions in
// which it does not.
func (d *daemon) layoutState(out *api.StrictState, s *quorum.Status, waiting map[string]bool) {
	number := s.Layout.Number
	if out.Layout = d.recent.inForce(number, len(waiting) == 0); out.Layout >= number {
		return
	}
	if out.Layout == 0 { // none was since the start of this daemon
		out.Layout = number - 1
	}
	out.Next = &api.NextLayout{Number: number}
	for _, r := range out.Regions {
		for _, x := range r.Voters {
			if waiting[r.Region] && (x.Voting == nil || !*x.Voting) {
				out.Next.WaitsFor = append(out.Next.WaitsFor, api.Missing{Region: r.Region, Name: x.Name, Why: whyNotVoting(&x)})
			}
		}
	}
}

// whyNotVoting says in few words why a replica's vote is missing.
func whyNotVoting(x *api.StrictVoter) string {
	switch {
	case x.WhyNot != "":
		return x.WhyNot
	case !x.Live:
		return "it is down"
	case x.Voting == nil:
		return "it has not said whether it votes"
	}
	return "it does not vote yet"
}

// replicaState describes this daemon's replica, where the layout names it one.
func (d *daemon) replicaState(out *api.StrictState, s *quorum.Status) {
	seated := slices.ContainsFunc(s.Voters, func(x quorum.VoterStatus) bool { return x.Name == d.cfg.Name })
	if !seated {
		return
	}
	out.Acceptor = &api.AcceptorState{
		Voting: s.Voting, WhyNot: s.Why, Keys: s.Ledgers, JournalFault: d.strict.acceptor.fault(),
		JournalBytes: uint64(max(0, d.strict.acceptor.counts.size.Load())),
	}
	if s.Generation > 0 && s.Generation < 1<<52 { // it is named by the time of the loss
		out.Acceptor.DiskLost = new(time.UnixMilli(int64(s.Generation)).UTC())
	}
}

// pins lists the rules with a home region of their own, in the order of the files.
func (d *daemon) pins(l *route.Layout) []api.Pin {
	set := d.engine.Rules()
	all := slices.Clone(l.Pins)
	place := func(p route.Pin) int {
		if r := set.Find(rules.ID(p.Rule)); r != nil {
			return r.Index
		}
		return len(set.Rules())
	}
	slices.SortStableFunc(all, func(a, b route.Pin) int { return place(a) - place(b) })
	out := make([]api.Pin, 0, len(all))
	for _, p := range all {
		pin := api.Pin{ID: fmt.Sprintf("%016x", p.Rule), Region: p.Region}
		if r := set.Find(rules.ID(p.Rule)); r != nil {
			pin.Domain, pin.Rule = r.Domain, r.Path
		}
		out = append(out, pin)
	}
	return out
}

// misplaced says which rules are not pinned to the home that the limits name: those
// count at the first start alone.
func (d *daemon) misplaced(l *route.Layout) []string {
	pinned := map[uint64]string{}
	for _, p := range l.Pins {
		pinned[p.Rule] = p.Region
	}
	var out []string
	for _, r := range d.engine.Rules().Rules() {
		if r.Limit == nil || r.Limit.Home == "" || pinned[uint64(r.ID)] == r.Limit.Home {
			continue
		}
		if len(out) == maxMisplaced {
			return append(out, "more rules are not at home where the limits say")
		}
		is := "it goes by the hash of each key"
		if region := pinned[uint64(r.ID)]; region != "" {
			is = "it is pinned to " + region
		}
		out = append(out, fmt.Sprintf("the limits say home: %s for %s, and %s: rld strict home set %s %s moves it",
			r.Limit.Home, overage.RuleName(r), is, shellQuote(r.Path), r.Limit.Home))
	}
	return out
}

// maxMisplaced bounds the rules that are named.
const maxMisplaced = 5
