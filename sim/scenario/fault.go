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

// defaultFault holds the fields of a fault that are left out.
var defaultFault = sim.Fault{Offset: time.Hour, PPM: 200}

// faultItem reads one entry of faults. Repeat makes several of it, one each
// Every.
func (s *scenario) faultItem(n *yamlpos.Node) bool {
	f := defaultFault
	f.Link = s.cfg.Network.Across
	kind, command, repeat := -1, -1, 1
	every := 10 * time.Second
	graceful := false
	kinds := append(words(sim.FaultKinds()), rolling)
	good := s.fields(
		n, "a fault",
		field{"fault", yamlpos.Word(&s.Collector, &kind, kinds)},
		field{"at", s.Duration(&f.At, 0, sim.MaxDuration)},
		field{"for", s.Duration(&f.For, 0, sim.MaxDuration)},
		field{"when", s.trigger(&f)},
		field{"where", s.placeList(&f.From)},
		field{"from", s.placeList(&f.From)},
		field{"to", s.placeList(&f.To)},
		field{"one_way", s.Bool(&f.OneWay)},
		field{"rename", s.Bool(&f.Rename)},
		field{"stay", s.Bool(&f.Stay)},
		field{"graceful", s.Bool(&graceful)},
		field{"offset", s.Duration(&f.Offset, -sim.MaxDuration, sim.MaxDuration)},
		field{"ppm", s.drift(&f.PPM)},
		field{"delay", s.Duration(&f.Delay, 0, time.Minute)},
		field{"share", yamlpos.Percent(&s.Collector, &f.Share, "30%")},
		field{"command", yamlpos.Word(&s.Collector, &command, f.Commands())},
		field{"link", s.link(&f.Link)},
		field{"limits", s.limitsOf(&f.Rules, &f.Limits)},
		field{"every", s.Duration(&every, time.Millisecond, sim.MaxDuration)},
		field{"repeat", whole(s, &repeat, 1, sim.MaxFaults)},
	)
	switch {
	case !good:
		return false
	case kind < 0:
		return s.Errorf(n.Pos, "add fault: and one of "+suggest.List(kinds), "a fault without its kind")
	case graceful && kind != len(kinds)-1:
		return s.Errorf(n.Pos, "leave it out, or use fault: leave", "graceful is of "+rolling+" alone")
	case f.At >= s.cfg.Duration:
		return s.Errorf(n.Pos, "let it begin before", "a fault at %v of a run of %v", f.At, s.cfg.Duration)
	}
	if command >= 0 {
		f.Command = f.Commands()[command]
	}
	if f.Kind = sim.Crash; graceful {
		f.Kind = sim.Leave
	}
	for range repeat {
		s.addFault(n, f, kind, every)
		f.At += every
	}
	return true
}

// trigger returns a Reader of the event that a fault waits for.
func (s *scenario) trigger(f *sim.Fault) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		t, event := &f.When, -1
		events := t.Events()
		good := s.fields(
			n, name,
			field{"event", yamlpos.Word(&s.Collector, &event, events)},
			field{"where", s.placeList(&t.Where)},
			field{"count", whole(s, &t.Count, 1, sim.MaxFaults)},
			field{"after", s.Duration(&t.After, 0, sim.MaxDuration)},
		)
		switch {
		case !good:
			return false
		case event < 0:
			return s.Errorf(n.Pos, "add event: and one of "+suggest.List(events), "a fault that waits for no event")
		}
		t.Event = events[event]
		return true
	}
}

// addFault adds a fault, or the ones of f.Kind that a rolling restart is.
func (s *scenario) addFault(n *yamlpos.Node, f sim.Fault, kind int, every time.Duration) {
	c := &s.cfg
	if len(c.Faults) >= sim.MaxFaults {
		s.Errorf(n.Pos, fmt.Sprintf("at most %d", sim.MaxFaults), "too many faults")
		return
	}
	if kind < len(sim.FaultKinds()) {
		f.Kind = sim.FaultKind(kind)
		if f.Kind == sim.NewRules || f.Kind == sim.MixedLimits {
			if f.Rules == nil {
				f.Rules, f.Limits = s.next, s.nextText
			}
			if f.Rules == nil {
				s.Errorf(n.Pos, "add limits: to the fault, or next_limits: beside limits:", "new rules, but none are given")
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
			one.From = []string{d}
			if one.For == 0 {
				one.For = time.Second
			}
			c.Faults = append(c.Faults, one)
			f.At += every
		}
	}
}

// drift returns a Reader of parts per million, of either sign.
func (s *scenario) drift(out *int64) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		f := 0.0
		good := s.Number(&f, -100_000, 100_000)(n, name)
		if good {
			*out = int64(f)
		}
		return good
	}
}

// expect reads the claims of a scenario.
func (s *scenario) expect(n *yamlpos.Node, name string) bool {
	x := &s.cfg.Expect
	known := []field{
		{"bound", s.Bool(&x.Bound)},
		{"seen", listOf(s, "event", gossip.EventKinds(), &x.Seen)},
		{"not_seen", listOf(s, "event", gossip.EventKinds(), &x.NotSeen)},
	}
	for i := range sim.Figures {
		known = append(known, field{sim.Figures[i].Name, s.claim(&sim.Figures[i])})
	}
	return s.fields(n, name, known...)
}

// claim returns a Reader of a claim, whose value is in the unit of its figure.
func (s *scenario) claim(f *sim.Figure) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) (good bool) {
		c := sim.Claim{Figure: f}
		switch f.Unit {
		case "ratio":
			good = s.share(&c.Value, math.Inf(1))(n, name)
		case "ms":
			var d time.Duration
			good = s.Duration(&d, 0, time.Hour)(n, name)
			c.Value = float64(d) / float64(time.Millisecond)
		case "count":
			var count uint64
			good = whole(s, &count, 0, math.MaxUint64)(n, name)
			c.Value = float64(count)
		default:
			good = s.Number(&c.Value, 0, 1e9)(n, name)
		}
		s.cfg.Expect.Claims = append(s.cfg.Expect.Claims, c)
		return good
	}
}
