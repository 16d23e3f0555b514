//go:build e2e

package demo

import (
	"testing"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/load"
	"github.com/georld/rld/sim/scenario"
)

// trial is one scenario for the demo and for the simulator: clients ask for a
// while, and meanwhile a region is cut off from all others.
type trial struct {
	options Options
	// edge and phase are when the clients begin: so long after a multiple of
	// edge, on the wall clock.
	edge, phase time.Duration
	lasts       time.Duration
	cut         string        // region
	from, to    time.Duration // of the cut, since the clients began
	reopened    time.Duration // how much later the demo's streams were open again
	// surge is the factor of the call rate in a burst: high enough that the
	// limit is reached before the regions receive each other's counts.
	surge float64
}

// newTrial returns the trial that compares the simulator with the demo.
//
// It begins with a window of every rule and has three windows of 10 s. In the
// second a region is partitioned while spread and login are used up. The
// partition heals before the burst. So spread and login show the effect of the
// partition, and burst, which is faster than replication, that of the delays.
func newTrial() *trial {
	o := Default()
	o.GRPC, o.HTTP, o.Admin = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.Log = discard()
	return &trial{
		options: o, edge: 20 * time.Second, phase: 10 * time.Second,
		// Not to its very end, so that nothing is counted in a fourth.
		lasts: 30*time.Second - 100*time.Millisecond,
		cut:   "eu-west", from: 8 * time.Second, to: 12500 * time.Millisecond,
		surge: 3,
	}
}

// next returns when the clients may begin at the earliest.
func (x *trial) next(now time.Time) time.Time {
	began := now.Truncate(x.edge).Add(x.phase)
	if began.Before(now) {
		began = began.Add(x.edge)
	}
	return began
}

// rules returns the limits of the trial: those of the demo, with logins counted
// like the others, in windows of 20 s. Strict limits are kept anyway and need
// no comparison.
func (x *trial) rules() []Rule {
	all := NewRules(x.options.Traffic)
	r := &all[login]
	r.Strict, r.Window, r.Limit = false, 20, uint32(x.options.Traffic/50)
	return all
}

// clients returns the clients before their first call.
func (x *trial) clients() *Traffic {
	t := NewTraffic(x.options.Traffic, len(x.options.Regions), x.options.Seed)
	t.Surge(0, burst, x.surge)
	return t
}

// config returns the trial for the simulator. seed draws all but the clients:
// the daemons that they call, the delay of each frame, the turns of the
// daemons.
func (x *trial) config(t *testing.T, began time.Time, seed uint64) *sim.Config {
	t.Helper()
	o := &x.options
	text := []byte(limitsText(x.rules()))
	set, found := limits.Parse([]limits.File{{Name: "demo.yaml", Data: text}}, limits.Options{})
	if set == nil {
		t.Fatal(found)
	}
	cfg, err := scenario.Replay(x.trace(began), set, o.Regions, o.Daemons)
	if err != nil {
		t.Fatal(err)
	}
	c := o.base("")
	cfg.Seed, cfg.Duration, cfg.Shards, cfg.Node.MaxKeys = seed, x.lasts, c.Shards, c.MaxKeys
	cfg.Node.Gossip = gossip.Config{
		Interval: c.Gossip.Interval, WANInterval: c.Gossip.WANInterval, Quiet: c.Gossip.Quiet,
		ReadyWithin: c.Gossip.ReadyWithin,
	}
	for i, a := range o.Regions {
		for _, b := range o.Regions[i+1:] {
			link := simLink(o.WAN.Link(a, b))
			cfg.Network.Links = append(cfg.Network.Links,
				sim.LinkRule{From: a, To: b, Link: link}, sim.LinkRule{From: b, To: a, Link: link})
		}
	}
	cfg.Faults = []sim.Fault{{Kind: sim.Cut, At: x.from, For: x.to + x.reopened - x.from, From: []string{x.cut}}}
	return cfg
}

// simLink is a link of the demo in the simulator. The simulator loses frames
// that the demo sends again. These are so few that it makes no difference.
func simLink(l Link) sim.Link {
	return sim.Link{
		Delay: l.Delay, Jitter: l.Jitter, Uniform: true,
		Loss: rules.PPM(l.Loss * float64(100*rules.Percent)),
	}
}

// trace is the calls of the clients, observed as often as in the demo.
func (x *trial) trace(began time.Time) *load.Trace {
	out := &load.Trace{Start: began.UnixNano(), Regions: x.options.Regions}
	type name struct{ rule, key int }
	known := make(map[name]int32)
	clients, all := x.clients(), NewRules(x.options.Traffic)
	var asks []Ask
	for now := time.Duration(0); now < x.lasts; now += askTick {
		asks, _ = clients.Due(now, asks)
		for _, a := range asks {
			n := name{a.Rule, a.Key}
			key, ok := known[n]
			if !ok {
				key = int32(len(out.Keys))
				known[n] = key
				out.Keys = append(out.Keys, load.TraceKey{Domain: Domain, Descriptors: [][]rules.Entry{all[a.Rule].entries(crowds[a.Rule].key(a.Key))}})
			}
			out.Entries = append(out.Entries, load.TraceEntry{At: now, Region: int32(a.Region), Key: key, Hits: 1})
		}
	}
	return out
}

// outcome is what came of a trial.
type outcome struct {
	// worst is the greatest overage of any key, by rule and window.
	worst [ruleCount][]float64
	// mean is the average overage of the windows of keys that reached their
	// limit, by rule.
	mean [ruleCount]float64
	// near and far are how old views in a region and across were.
	near, far Quantiles
}

// newOutcome returns one in which nothing is over.
func (x *trial) newOutcome(began time.Time) *outcome {
	out := &outcome{}
	all := x.rules()
	for i := range out.worst {
		out.worst[i] = make([]float64, 1+x.window(all[i].Period(), began, x.lasts-1))
	}
	return out
}

// window returns in which window of its width, counted from the first, a time
// since the clients began is.
func (x *trial) window(width time.Duration, began time.Time, at time.Duration) int64 {
	return (began.UnixNano()+int64(at))/int64(width) - began.UnixNano()/int64(width)
}

// foretell runs the simulator.
func (x *trial) foretell(t *testing.T, cfg *sim.Config) *outcome {
	t.Helper()
	r, err := sim.Run(cfg, sim.Options{Series: true, Auditors: audit.Only("overage")})
	if err != nil {
		t.Fatal(err)
	}
	if r.Code() != sim.ExitFine {
		t.Errorf("the simulator found %+v", r.Auditors)
	}
	began := time.Unix(0, cfg.Epoch)
	out := x.newOutcome(began)
	const ms = 1000
	s := &r.Staleness
	out.near = Quantiles{P50: s.RegionP50Ms / ms, P99: s.RegionP99Ms / ms}
	out.far = Quantiles{P50: s.AcrossP50Ms / ms, P99: s.AcrossP99Ms / ms}
	places := make(map[string]int)
	all := x.rules()
	for _, rule := range cfg.Rules.Rules() {
		for i := range all[:ruleCount] {
			if all[i].Name == rule.Display() {
				places[sim.RuleName(rule)] = i
			}
		}
	}
	for _, row := range r.Rules {
		if i, ok := places[row.Rule]; ok {
			out.mean[i] = row.OverageRatioMean
		}
	}
	for _, row := range r.Series.Rules {
		i, ok := places[row.Rule]
		if !ok {
			continue
		}
		for j, over := range row.Overage {
			// A sample is of the step before it.
			at := time.Duration(r.Series.Seconds[j]*float64(time.Second)) - 1
			worst := &out.worst[i][x.window(all[i].Period(), began, at)]
			*worst = max(*worst, over)
		}
	}
	return out
}
