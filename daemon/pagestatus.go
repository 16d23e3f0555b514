package daemon

import (
	"cmp"
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
)

// overview answers /v1/status.
func (d *daemon) overview() api.StatusAnswer {
	out := api.StatusAnswer{
		Alone: d.cluster == nil, Daemon: d.daemonState(), Denied: d.recent.mostDenied(),
		Degraded: d.recent.degradations(),
	}
	if d.cluster == nil {
		return out
	}
	at := d.engine.Now()
	links, live := d.engine.Links(at), d.cluster.all()
	for _, name := range d.newExplainer().regions {
		out.Regions = append(out.Regions, d.region(name, live, links))
	}
	for _, off := range d.engine.Offsets() {
		if far := off.Abs().Seconds(); out.Daemon.PeerOffsetSeconds == nil || far > *out.Daemon.PeerOffsetSeconds {
			out.Daemon.PeerOffsetSeconds = &far
		}
	}
	out.Worst = d.monitor.WorstRule()
	if d.strict != nil {
		out.Breakers = d.circuits()
		out.Strict = d.strictState(live)
	}
	return out
}

// daemonState describes this daemon.
func (d *daemon) daemonState() api.DaemonState {
	stats, set := d.engine.Stats(), d.engine.Rules()
	out := api.DaemonState{
		DaemonRef: d.self(), Version: d.version, UptimeSeconds: d.engine.Now().Mono.Seconds(), Shadow: d.cfg.Shadow,
		LiveKeys: stats.LiveKeys, MaxKeys: stats.MaxKeys, OverflowKeys: stats.OverflowKeys,
		ClockOffsetSeconds: time.Duration(stats.ClockOffset).Seconds(),
		Rules:              api.RulesHash(set.Hash()), RuleCount: len(set.Rules()),
	}
	if err := d.ready(); err != nil {
		out.WhyNot = err.Error()
	} else {
		out.Ready = true
	}
	out.LimitsFault = d.limits.fault()
	return out
}

// region describes a region by who lives and what is heard of them.
func (d *daemon) region(name string, live []gossip.Member, links []node.Link) api.RegionState {
	out := api.RegionState{Region: name, Self: name == d.cfg.Region, Partitioned: name != d.cfg.Region}
	news := byPeer(links)
	latest := time.Duration(-1) // the youngest view of one there
	for _, m := range live {
		if m.Region != name {
			continue
		}
		state := api.MemberState{Name: m.Name, Incarnation: m.ID.String(), Ready: m.Ready, Self: m.ID == d.engine.Incarnation()}
		if state.Self {
			state.Ready = d.cluster.ready.Load()
		}
		if l := news[m.ID]; l != nil && l.Age >= 0 {
			state.StalenessSeconds = api.Seconds(l.Age)
			if latest < 0 || l.Age < latest {
				latest = l.Age
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
		out.PartitionedSince = new(d.now().Add(-latest).UTC())
	}
	return out
}

// circuits describes the breakers to homes that say something.
func (d *daemon) circuits() []api.Breaker {
	var out []api.Breaker
	for _, c := range d.strict.circuits() {
		if x := d.circuitOf(&c); x.State != api.BreakerClosed || x.Calls > 0 {
			out = append(out, x)
		}
	}
	return out
}
