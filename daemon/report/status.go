package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/gossip/link"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
)

// Status answers /v1/status.
func (r *Report) Status() api.StatusAnswer {
	out := api.StatusAnswer{
		Alone: r.Cluster == nil, Daemon: r.daemonState(), Denied: r.mostDenied(), Degraded: r.degradations(),
	}
	if r.Cluster == nil {
		return out
	}
	streams, _ := r.Cluster.Stats()
	out.Daemon.Certificate, out.Daemon.Keyring = certificateState(&streams.Certified), r.Keyring()
	links, live := r.Engine.Links(r.Engine.Now()), r.Cluster.Members()
	for _, name := range r.newExplainer().regions {
		out.Regions = append(out.Regions, r.region(name, live, links))
	}
	for _, off := range r.Engine.Offsets() {
		if far := off.Abs().Seconds(); out.Daemon.PeerOffsetSeconds == nil || far > *out.Daemon.PeerOffsetSeconds {
			out.Daemon.PeerOffsetSeconds = &far
		}
	}
	out.Worst = r.WorstRule()
	if r.Control != nil {
		out.Cluster = r.clusterState()
	}
	if r.Strict != nil {
		for _, c := range r.Strict.Circuits() {
			if b := r.breaker(&c); b.State != api.BreakerClosed || b.Calls > 0 {
				out.Breakers = append(out.Breakers, b)
			}
		}
		out.Strict = r.strictState(live)
	}
	return out
}

// daemonState describes this daemon.
func (r *Report) daemonState() api.DaemonState {
	stats, set := r.Engine.Stats(), r.Engine.Rules()
	out := api.DaemonState{
		DaemonRef: r.self(), Version: r.Version, UptimeSeconds: r.Engine.Now().Mono.Seconds(), Shadow: r.Settings.Shadow,
		LiveKeys: stats.LiveKeys, MaxKeys: stats.MaxKeys, OverflowKeys: stats.OverflowKeys,
		ClockOffsetSeconds: time.Duration(stats.ClockOffset).Seconds(),
		Rules:              api.RulesHash(set.Hash()), RuleCount: len(set.Rules()), LimitsFault: r.LimitsFault(), NextSecret: r.NextSecret(),
	}
	err := r.Ready()
	if out.Ready = err == nil; err != nil {
		out.WhyNot = err.Error()
	}
	return out
}

// certificateState describes the certificate for peers, nil for plain streams.
func certificateState(c *link.Certified) *api.CertificateState {
	if !c.On {
		return nil
	}
	out := &api.CertificateState{Names: []string{}, NotAfter: c.NotAfter.UTC(), Soon: c.Soon, Fault: c.Fault, Peer: c.Peer}
	for _, n := range c.Names {
		out.Names = append(out.Names, n.String())
	}
	if c.Peer != "" {
		out.PeerNotAfter = new(c.PeerNotAfter.UTC())
	}
	return out
}

// region describes a region by its live daemons and the views of them.
func (r *Report) region(name string, live []gossip.Member, links []node.Link) api.RegionState {
	// Settings may name a region that the log does not have, and the members of
	// a removed one stay for a while.
	there, reached := true, false
	latest := time.Duration(-1) // the youngest view
	if r.Control != nil {
		s := r.Control.State()
		switch {
		case s.Record != nil:
			there = s.Record.Region(name) != nil
		case r.Cluster != nil:
			there = slices.Contains(r.Cluster.Regions(), name)
		}
		if r.Witness { // it has no counts of others
			reached, latest = s.reaches(name)
		}
	}
	out := api.RegionState{Region: name, Self: name == r.Region, Partitioned: name != r.Region && there && !reached}
	views := byPeer(links)
	for _, m := range live {
		if m.Region != name {
			continue
		}
		state := api.MemberState{Name: m.Name, Incarnation: m.ID.String(), Ready: r.memberReady(&m), Self: m.ID == r.Engine.Incarnation()}
		if l := views[m.ID]; l != nil && l.Age >= 0 {
			age := l.Expected(l.Age)
			state.StalenessSeconds = api.Seconds(age)
			if latest < 0 || age < latest {
				latest = age
			}
			if out.StalenessSeconds == nil || *state.StalenessSeconds > *out.StalenessSeconds {
				out.StalenessSeconds = state.StalenessSeconds
			}
			out.Partitioned = out.Partitioned && l.Silent
		}
		out.Members = append(out.Members, state)
	}
	slices.SortFunc(out.Members, func(a, b api.MemberState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	if out.Partitioned && latest >= 0 {
		out.PartitionedSince = new(r.Wall().Add(-latest).UTC())
	}
	return out
}

// reaches reports whether a daemon of a region is live in the control log, and
// returns the age of the latest message of that region, -1 for none.
func (s *ControlState) reaches(region string) (live bool, latest time.Duration) {
	latest = -1
	for i := range s.Status.Peers {
		if p := &s.Status.Peers[i]; p.Region == region && p.Age >= 0 {
			live = live || p.Live
			if latest < 0 || p.Age < latest {
				latest = p.Age
			}
		}
	}
	return live, latest
}
