package scenario

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/sim"
)

// rolling is the word of scenarios for crashes of one daemon after the other.
const rolling = "rolling_restart"

// faultItem reads one entry of faults. Repeat makes several of it, one each
// Every.
func (s *scenario) faultItem(n *yamlpos.Node) {
	before := s.faultCount()
	f := sim.Fault{Link: s.cfg.Network.Across, Offset: time.Hour, PPM: 200}
	kind, repeat := -1, 1
	every := 10 * time.Second
	kinds := append(words(sim.FaultKinds()), rolling)
	s.fields(
		n, "a fault",
		field{"fault", s.word("fault", kinds, func(i int) { kind = i })},
		field{"at", s.duration(&f.At, "at", 0, sim.MaxDuration)},
		field{"for", s.duration(&f.For, "for", 0, sim.MaxDuration)},
		field{"where", s.placeList(&f.From)},
		field{"from", s.placeList(&f.From)},
		field{"to", s.placeList(&f.To)},
		field{"one_way", s.flag(&f.OneWay, "one_way")},
		field{"rename", s.flag(&f.Rename, "rename")},
		field{"stay", s.flag(&f.Stay, "stay")},
		field{"offset", s.duration(&f.Offset, "offset", -sim.MaxDuration, sim.MaxDuration)},
		field{"ppm", s.drift(&f.PPM)},
		field{"link", func(v *yamlpos.Node) { s.fields(v, "a link", s.linkFields(&f.Link)...) }},
		field{"every", s.duration(&every, "every", time.Millisecond, sim.MaxDuration)},
		field{"repeat", s.int(&repeat, "repeat", 1, sim.MaxFaults)},
	)
	if s.faultCount() > before {
		return
	}
	if kind < 0 {
		s.fault(n, "add fault: and one of "+suggest.List(kinds), "a fault without its kind")
		return
	}
	if f.At >= s.cfg.Duration {
		s.fault(n, "let it begin before", "a fault at %v of a run of %v", f.At, s.cfg.Duration)
		return
	}
	for range repeat {
		s.addFault(n, f, kind, every)
		f.At += every
	}
}

// addFault adds a fault, or the crashes that a rolling restart is.
func (s *scenario) addFault(n *yamlpos.Node, f sim.Fault, kind int, every time.Duration) {
	c := &s.cfg
	if len(c.Faults) >= sim.MaxFaults {
		s.fault(n, fmt.Sprintf("at most %d", sim.MaxFaults), "too many faults")
		return
	}
	if kind < len(sim.FaultKinds()) {
		f.Kind = sim.FaultKind(kind)
		if f.Kind == sim.NewRules {
			if f.Rules = s.next; f.Rules == nil {
				s.fault(n, "add next_limits: beside limits:", "new rules, but none are given")
			}
		}
		c.Faults = append(c.Faults, f)
		return
	}
	for _, r := range c.Regions {
		for i := range r.Daemons {
			d := r.Daemon(i)
			if len(f.From) > 0 && !slices.Contains(f.From, r.Name) && !slices.Contains(f.From, d) {
				continue
			}
			one := f
			one.Kind, one.From = sim.Crash, []string{d}
			if one.For == 0 {
				one.For = time.Second
			}
			c.Faults = append(c.Faults, one)
			f.At += every
		}
	}
}

// drift reads parts per million, of either sign.
func (s *scenario) drift(out *int64) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		f := math.NaN()
		if s.number(&f, "ppm", -100_000, 100_000)(n); !math.IsNaN(f) {
			*out = int64(f)
		}
	}
}

// expect reads the claims of a scenario.
func (s *scenario) expect(n *yamlpos.Node) {
	x := &s.cfg.Expect
	claim := func(out **float64, what string) func(*yamlpos.Node) {
		return func(v *yamlpos.Node) {
			f := 0.0
			*out = &f
			s.share(&f, what, math.Inf(1))(v)
		}
	}
	within := func(out **time.Duration, what string) func(*yamlpos.Node) {
		return func(v *yamlpos.Node) {
			var d time.Duration
			*out = &d
			s.duration(&d, what, 0, time.Hour)(v)
		}
	}
	count := func(out **uint64, what string) func(*yamlpos.Node) {
		return s.whole(what, 0, math.MaxUint64, func(v uint64) { *out = &v })
	}
	s.fields(
		n, "expect",
		field{"overage_ratio_max", claim(&x.OverageMax, "overage_ratio_max")},
		field{"overage_ratio_mean", claim(&x.OverageMean, "overage_ratio_mean")},
		field{"overage_at_least", claim(&x.OverageMaxLeast, "overage_at_least")},
		field{"false_denial_ratio", claim(&x.FalseDenial, "false_denial_ratio")},
		field{"bound", s.flag(&x.Bound, "bound")},
		field{"in_region_p99", within(&x.InRegion, "in_region_p99")},
		field{"across_p99", within(&x.Across, "across_p99")},
		field{"bytes_per_decision", func(v *yamlpos.Node) {
			f := 0.0
			x.BytesPerDecision = &f
			s.number(&f, "bytes_per_decision", 0, 1e9)(v)
		}},
		field{"admitted", count(&x.Admitted, "admitted")},
		field{"denied", count(&x.Denied, "denied")},
		field{"degraded", count(&x.Degraded, "degraded")},
		field{"local_ratio", claim(&x.LocalRatio, "local_ratio")},
		field{"under_ratio", claim(&x.UnderRatio, "under_ratio")},
		field{"requests_per_second", count(&x.RequestsPerSecond, "requests_per_second")},
		field{"seen", func(v *yamlpos.Node) { x.Seen = s.kinds(v) }},
		field{"not_seen", func(v *yamlpos.Node) { x.NotSeen = s.kinds(v) }},
	)
}

// kinds reads names of the replicas' events.
func (s *scenario) kinds(n *yamlpos.Node) []gossip.EventKind {
	var names []string
	for _, k := range gossip.EventKinds() {
		names = append(names, k.String())
	}
	var out []gossip.EventKind
	s.list(n, "a list of events", len(names), func(item *yamlpos.Node) {
		s.word("event", names, func(i int) { out = append(out, gossip.EventKind(i)) })(item)
	})
	return out
}
