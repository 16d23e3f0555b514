package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/server/admin/api"
	"github.com/georld/rld/sticky/quorum"
	"github.com/georld/rld/sticky/route"
)

// StrictPage answers /v1/strict.
func (r *Report) StrictPage() api.StrictAnswer {
	out := api.StrictAnswer{Self: r.self(), Alone: r.Cluster == nil}
	if r.Strict != nil && r.Cluster != nil {
		out.Strict = r.strictState(r.Cluster.Members())
	}
	return out
}

// daemonName is the region and the name of a daemon.
type daemonName struct{ region, name string }

// voters counts the voters of a region: all, those that are live and not
// silent, and those that vote under the latest layout.
type voters struct{ all, reachable, voting int }

func (v voters) majority() int { return v.all/2 + 1 }

// waits reports whether a layout is not in force in the region. The votes of an
// unreachable region are unknown, so only the own region waits for them.
func (v voters) waits(own bool) bool {
	return v.voting < v.majority() && v.all > 0 && (own || v.reachable >= v.majority())
}

// strictState describes the layout, its voters, and this daemon's acceptor.
func (r *Report) strictState(live []gossip.Member) *api.StrictState {
	var status quorum.Status
	voting := map[daemonName]*bool{} // nil if unknown
	r.Strict.Acceptor(func(a *quorum.Acceptor) {
		status = a.Status()
		for _, region := range status.Layout.Regions {
			for _, name := range region.Replicas {
				if votes, known := a.Votes(region.Name, name); known {
					voting[daemonName{region.Name, name}] = &votes
				}
			}
		}
	})
	out := &api.StrictState{Keys: r.Engine.StrictStats().Entries, MaxKeys: r.MaxKeys, Pins: r.pins(&status.Layout)}
	weights := uint64(0)
	for _, region := range status.Layout.Regions {
		weights += uint64(region.Weight)
	}
	waiting := map[string]bool{}
	silent := r.silent()
	for _, region := range status.Layout.Regions {
		row := api.StrictRegion{Region: region.Name, Weight: float64(region.Weight) / float64(max(weights, 1))}
		n := voters{all: len(region.Replicas)}
		for _, name := range region.Replicas {
			at := daemonName{region.Name, name}
			x := r.voter(live, at, voting[at])
			age, isSilent := silent[at]
			if isSilent && x.Live {
				x.Voting, x.WhyNot = nil, fmt.Sprintf("silent for %v", age.Round(time.Second))
			}
			if x.Self {
				x.WhyNot = status.Reason
			}
			if x.Live && !isSilent {
				n.reachable++
			}
			if x.Voting != nil && *x.Voting {
				n.voting++
			}
			row.Voters = append(row.Voters, x)
		}
		if n.waits(region.Name == r.Region) {
			waiting[region.Name] = true
		}
		out.Regions = append(out.Regions, row)
		if region.Weight > 0 {
			out.Warnings = append(out.Warnings, warningsOf(region.Name, n)...)
		}
	}
	out.Warnings = append(out.Warnings, r.misplaced(&status.Layout)...)
	r.setLayout(out, &status, waiting)
	r.setAcceptor(out, &status)
	return out
}

// silent returns for how long silent daemons have sent nothing.
func (r *Report) silent() map[daemonName]time.Duration {
	out := map[daemonName]time.Duration{}
	for _, l := range r.Engine.Links(r.Engine.Now()) {
		if l.Silent {
			out[daemonName{l.Peer.Region, l.Peer.Name}] = max(l.Age, 0)
		}
	}
	return out
}

// reachable returns the daemons that are live and not silent.
func (r *Report) reachable() map[daemonName]bool {
	silent, out := r.silent(), map[daemonName]bool{{r.Region, r.Name}: true}
	for _, m := range r.Cluster.Members() {
		at := daemonName{m.Region, m.Name}
		if _, is := silent[at]; !is {
			out[at] = true
		}
	}
	return out
}

// voter describes a voter. voting is nil if unknown.
func (r *Report) voter(live []gossip.Member, at daemonName, voting *bool) api.StrictVoter {
	out := api.StrictVoter{Name: at.name, Self: at == daemonName{r.Region, r.Name}, Voting: voting}
	for _, m := range live {
		if m.Region == at.region && m.Name == at.name {
			out.Live, out.Ready = true, out.Ready || m.Ready
		}
	}
	if out.Self {
		out.Live, out.Ready = true, r.Cluster.Ready()
	}
	if !out.Live {
		out.Voting = nil
	}
	return out
}

// warningsOf returns possible improvements of the voters of a region.
func warningsOf(region string, n voters) []string {
	const applies = "on_failure applies to its strict keys"
	switch {
	case n.all == 0:
	case n.reachable < n.majority():
		return []string{fmt.Sprintf("%d of the %d voters of %s are reachable, want at least %d: %s",
			n.reachable, n.all, region, n.majority(), applies)}
	case n.reachable == n.majority() && n.all > 2:
		return []string{fmt.Sprintf("%d of the %d voters of %s are reachable: after one more failure %s",
			n.reachable, n.all, region, applies)}
	case n.all < 3:
		return []string{fmt.Sprintf("%s has %s: after one failure %s", region, plural(n.all, "voter"), applies)}
	}
	return nil
}

// setLayout sets the layout in force: the latest one under which a majority of
// the voters of each region voted when this daemon looked. waiting are the
// regions without such a majority.
func (r *Report) setLayout(out *api.StrictState, s *quorum.Status, waiting map[string]bool) {
	number := s.Layout.Number
	if out.Layout = r.inForce(number, len(waiting) == 0); out.Layout >= number {
		return
	}
	if out.Layout == 0 { // none was since the start of this daemon
		out.Layout = number - 1
	}
	out.Next = &api.NextLayout{Number: number}
	for _, region := range out.Regions {
		for _, x := range region.Voters {
			if waiting[region.Region] && (x.Voting == nil || !*x.Voting) {
				out.Next.WaitsFor = append(out.Next.WaitsFor, api.Missing{Region: region.Region, Name: x.Name, Why: whyNotVoting(&x)})
			}
		}
	}
}

// whyNotVoting returns why a vote is missing.
func whyNotVoting(x *api.StrictVoter) string {
	switch {
	case x.WhyNot != "":
		return x.WhyNot
	case !x.Live:
		return "it is down"
	case x.Voting == nil:
		return "its state is unknown"
	}
	return "it does not vote yet"
}

// setAcceptor describes the acceptor of this daemon if it is a voter.
func (r *Report) setAcceptor(out *api.StrictState, s *quorum.Status) {
	if !r.Strict.Routing().IsVoter() {
		return
	}
	bytes, fault := r.Strict.Journal()
	out.Acceptor = &api.AcceptorState{
		Voting: s.Voting, WhyNot: s.Reason, Keys: s.Keys, JournalFault: fault, JournalBytes: uint64(max(0, bytes)),
	}
	if s.Generation > 0 && s.Generation < 1<<52 { // the time of the loss, in Unix milliseconds
		out.Acceptor.DiskLost = new(time.UnixMilli(int64(s.Generation)).UTC())
	}
}

// pins lists the rules with a home region, in the order of the files.
func (r *Report) pins(l *route.Layout) []api.Pin {
	set := r.Engine.Rules()
	all := slices.Clone(l.Pins)
	place := func(p route.Pin) int {
		if rule := set.Find(rules.ID(p.Rule)); rule != nil {
			return rule.Index
		}
		return len(set.Rules())
	}
	slices.SortStableFunc(all, func(a, b route.Pin) int { return place(a) - place(b) })
	out := make([]api.Pin, 0, len(all))
	for _, p := range all {
		pin := api.Pin{ID: fmt.Sprintf("%016x", p.Rule), Region: p.Region}
		if rule := set.Find(rules.ID(p.Rule)); rule != nil {
			pin.Domain, pin.Rule = rule.Domain, rule.Path
		}
		out = append(out, pin)
	}
	return out
}

// pinned returns the home region of each pinned rule.
func pinned(l *route.Layout) map[uint64]string {
	out := make(map[uint64]string, len(l.Pins))
	for _, p := range l.Pins {
		out[p.Rule] = p.Region
	}
	return out
}

// maxMisplaced bounds the rules named in warnings.
const maxMisplaced = 5

// misplaced returns warnings about rules whose home region in the limits is not
// that of the layout. The limits count only at the first start.
func (r *Report) misplaced(l *route.Layout) []string {
	pins := pinned(l)
	var out []string
	for _, rule := range r.Engine.Rules().Rules() {
		if rule.Limit == nil || rule.Limit.Home == "" || pins[uint64(rule.ID)] == rule.Limit.Home {
			continue
		}
		if len(out) == maxMisplaced {
			return append(out, "the home regions of more rules differ from the limits")
		}
		is := "the hash of each key chooses it"
		if region := pins[uint64(rule.ID)]; region != "" {
			is = "it is pinned to " + region
		}
		out = append(out, fmt.Sprintf("the limits have the home region %s for %s, but %s: rld strict pin %s %s changes it",
			rule.Limit.Home, overage.RuleName(rule), is, shellQuote(rule.Path), rule.Limit.Home))
	}
	return out
}
