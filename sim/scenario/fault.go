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
	known := []field{
		{"bound", s.flag(&x.Bound, "bound")},
		{"seen", listOf(s, "a list of events", "event", gossip.EventKinds(), &x.Seen)},
		{"not_seen", listOf(s, "a list of events", "event", gossip.EventKinds(), &x.NotSeen)},
	}
	for i := range sim.Figures {
		known = append(known, field{sim.Figures[i].Name, func(v *yamlpos.Node) {
			x.Claims = append(x.Claims, sim.Claim{Figure: &sim.Figures[i], Value: s.figure(v, &sim.Figures[i])})
		}})
	}
	s.fields(n, "expect", known...)
}

// figure reads the value of a claim in the unit of its figure.
func (s *scenario) figure(n *yamlpos.Node, f *sim.Figure) (out float64) {
	switch f.Unit {
	case "ratio":
		s.share(&out, f.Name, math.Inf(1))(n)
	case "ms":
		var d time.Duration
		s.duration(&d, f.Name, 0, time.Hour)(n)
		out = float64(d) / float64(time.Millisecond)
	case "count":
		s.whole(f.Name, 0, math.MaxUint64, func(v uint64) { out = float64(v) })(n)
	default:
		s.number(&out, f.Name, 0, 1e9)(n)
	}
	return out
}
