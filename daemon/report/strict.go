package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/control"
	"github.com/georld/rld/daemon/overage"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/suggest"
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

// voters counts the voters of a region: all, and those that are live, not
// silent and have their watermarks. lost are those that run without them.
type voters struct {
	all, reachable int
	lost           []string
}

// add counts a voter.
func (v *voters) add(name string, reachable, lost bool) {
	switch {
	case lost:
		v.lost = append(v.lost, name)
	case reachable:
		v.reachable++
	}
}

func (v voters) majority() int { return v.all/2 + 1 }

// strictState describes the layout, its voters, and this daemon's acceptor.
func (r *Report) strictState(live []gossip.Member) *api.StrictState {
	var status quorum.Status
	var own quorum.Report
	r.Strict.Acceptor(func(a *quorum.Acceptor) { status, own = a.Status(), a.Report() })
	reports := r.acceptorReports(own)
	l := &status.Layout
	out := &api.StrictState{
		Layout: status.Active, Keys: r.Engine.StrictStats().Entries, MaxKeys: r.MaxKeys, Pins: r.pins(l),
	}
	if l.Number > status.Active {
		out.Next = &api.NextLayout{Number: l.Number}
	}
	weights := uint64(0)
	for _, region := range l.Regions {
		weights += uint64(region.Weight)
	}
	silent := r.silent()
	for _, region := range l.Regions {
		row := api.StrictRegion{Region: region.Name, Weight: float64(region.Weight) / float64(max(weights, 1))}
		n := voters{all: len(region.Replicas)}
		for _, name := range region.Replicas {
			at := daemonName{region.Name, name}
			x, copied, lost := r.voter(live, at), false, false
			if report, known := reports[at]; known && x.Live {
				copied = report.Copied && report.Number == l.Number
				x.Voting = new(copied && out.Next == nil)
				if lost = report.Number == l.Number && !copied && report.Store != l.Generation(region.Name, name); lost {
					x.WhyNot = "its disk was lost: it copies from all other voters"
				}
			}
			age, isSilent := silent[at]
			if isSilent && x.Live {
				x.Voting, x.WhyNot = nil, fmt.Sprintf("silent for %v", age.Round(time.Second))
			}
			if x.Self {
				x.WhyNot = status.Reason
			}
			n.add(name, x.Live && !isSilent, lost)
			if out.Next != nil && !copied {
				out.Next.WaitsFor = append(out.Next.WaitsFor, api.Missing{Region: region.Name, Name: name, Why: whyNotVoting(&x)})
			}
			row.Voters = append(row.Voters, x)
		}
		out.Regions = append(out.Regions, row)
		if region.Weight > 0 {
			out.Warnings = append(out.Warnings, warningsOf(region.Name, n)...)
		}
	}
	out.Warnings = append(out.Warnings, r.misplaced(l)...)
	r.setAcceptor(out, &status)
	return out
}

// acceptorReports returns the state of all acceptors, as the daemons reported
// it by the control log.
func (r *Report) acceptorReports(own quorum.Report) map[daemonName]control.AcceptorReport {
	out := map[daemonName]control.AcceptorReport{{r.Region, r.Name}: {Number: own.Number, Copied: own.Copied, Store: own.Generation}}
	if r.Control != nil {
		for _, p := range r.Control.State().Status.Peers {
			if p.Live && p.Sender.Acceptor != nil {
				out[daemonName{p.Region, p.Name}] = *p.Sender.Acceptor
			}
		}
	}
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

// voter describes a voter.
func (r *Report) voter(live []gossip.Member, at daemonName) api.StrictVoter {
	out := api.StrictVoter{Name: at.name, Self: at == daemonName{r.Region, r.Name}}
	for _, m := range live {
		if m.Region == at.region && m.Name == at.name {
			out.Live, out.Ready = true, out.Ready || r.memberReady(&m)
		}
	}
	if out.Self {
		out.Live, out.Ready = true, r.Cluster.Ready()
	}
	return out
}

// warningsOf returns possible improvements of the voters of a region.
func warningsOf(region string, n voters) []string {
	const applies = "on_failure applies to its strict keys"
	switch {
	case n.all == 0:
	case n.all-len(n.lost) < n.majority():
		return []string{fmt.Sprintf("%d of the %d voters of %s run without their watermarks, and a majority has none to copy: %s. "+
			"Start voters with their disks, or run rld strict recover %s --stopped %s",
			len(n.lost), n.all, region, applies, region, strings.Join(n.lost, ","))}
	case n.reachable < n.majority() && len(n.lost) > 0:
		return []string{fmt.Sprintf("%d of the %d voters of %s are reachable with their watermarks, want at least %d: %s. "+
			"Start the others with their disks, or name them too in rld strict recover %s --stopped %s",
			n.reachable, n.all, region, n.majority(), applies, region, strings.Join(n.lost, ","))}
	case n.reachable < n.majority():
		return []string{fmt.Sprintf("%d of the %d voters of %s are reachable, want at least %d: %s",
			n.reachable, n.all, region, n.majority(), applies)}
	case n.reachable == n.majority() && n.all > 2:
		return []string{fmt.Sprintf("%d of the %d voters of %s are reachable: after one more failure %s",
			n.reachable, n.all, region, applies)}
	case n.all < 3:
		return []string{fmt.Sprintf("%s has %s: after one failure %s", region, suggest.Plural(n.all, "voter"), applies)}
	}
	return nil
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
	return "it copies from the former voters"
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
	if s.Lost && s.Generation < 1<<52 { // the time of the loss, in Unix milliseconds
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

// misplaced returns warnings about rules whose home region in the limits has no
// strict voters: the hash of each key chooses another one.
func (r *Report) misplaced(l *route.Layout) []string {
	pins := pinned(l)
	var out []string
	for _, rule := range r.Engine.Rules().Rules() {
		if rule.Limit == nil || !rule.Limit.Homed() || rule.Limit.Home == "" || l.Region(rule.Limit.Home) != nil || pins[uint64(rule.ID)] != "" {
			continue
		}
		if len(out) == maxMisplaced {
			return append(out, "the home regions of more rules have no strict voters")
		}
		out = append(out, fmt.Sprintf("the home region %s of %s has no strict voters: the hash of each key chooses another one",
			rule.Limit.Home, overage.RuleName(rule)))
	}
	return out
}
