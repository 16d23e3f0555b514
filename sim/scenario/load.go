package scenario

import (
	"math"
	"strings"
	"time"

	"github.com/georld/rld/internal/yamlpos"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// workload reads one entry of workloads.
func (s *scenario) workload(n *yamlpos.Node) {
	before := s.faultCount()
	l := load.Workload{Keys: 1}
	if domains := s.limits.Domains(); len(domains) == 1 {
		l.Domain = domains[0]
	}
	s.fields(
		n, "a workload",
		field{"name", s.text(&l.Name, "name")},
		field{"domain", s.text(&l.Domain, "domain")},
		field{"descriptor", func(v *yamlpos.Node) { l.Descriptors = append(l.Descriptors, s.descriptor(v)) }},
		field{"descriptors", func(v *yamlpos.Node) {
			s.list(v, "descriptors", node.MaxDescriptors, func(item *yamlpos.Node) {
				l.Descriptors = append(l.Descriptors, s.descriptor(item))
			})
		}},
		field{"hits", s.whole("hits", 1, math.MaxUint32, func(v uint64) { l.Hits = v })},
		field{"rate", s.rate(&l.Rate)},
		field{"regions", func(v *yamlpos.Node) { l.Regions = s.weights(v) }},
		field{"from", s.duration(&l.From, "from", 0, sim.MaxDuration)},
		field{"to", s.duration(&l.To, "to", 0, sim.MaxDuration)},
		field{"keys", s.int(&l.Keys, "keys", 1, load.MaxNames)},
		field{"zipf", s.number(&l.Zipf, "zipf", 0, 10)},
		field{"new_keys", s.flag(&l.NewKeys, "new_keys")},
		field{"hot", s.share(&l.Hot, "hot", 1)},
		field{"bursts", func(v *yamlpos.Node) { l.Bursts = s.bursts(v) }},
		field{"pulse", func(v *yamlpos.Node) { l.Pulse = s.pulse(v) }},
		field{"moving", func(v *yamlpos.Node) { l.Moving = s.moving(v) }},
		field{"retry", func(v *yamlpos.Node) { l.Retry = s.retry(v) }},
		field{"failover", s.flag(&l.Failover, "failover")},
		field{"pinned", s.flag(&l.Pinned, "pinned")},
	)
	if s.faultCount() == before {
		s.checkWorkload(n, &l)
	}
	s.cfg.Workloads = append(s.cfg.Workloads, l)
}

// checkWorkload looks at fields that must fit each other and the limits.
func (s *scenario) checkWorkload(n *yamlpos.Node, l *load.Workload) {
	if err := l.Validate(); err != nil {
		s.fault(n, "", "%v", err)
		return
	}
	if l.Rate == 0 && l.Pulse == nil {
		s.fault(n, "add rate: 100, requests a second of all regions together", "a workload without a rate")
	}
	domain := s.limits.Domain(l.Domain)
	if domain == nil {
		hint := suggest.Hint(l.Domain, s.limits.Domains(), "the limits have "+suggest.List(s.limits.Domains()))
		s.fault(n, hint, "a workload of domain %q, which has no limits", l.Domain)
		return
	}
	for _, entries := range l.Descriptors {
		if domain.Match(entries) != nil {
			return
		}
	}
	s.fault(n, "let a descriptor match a rule", "a workload that no rule matches")
}

// descriptor reads the entries of a descriptor: {tier: premium, user: "*"}.
func (s *scenario) descriptor(n *yamlpos.Node) []rules.Entry {
	if n.Kind != yamlpos.Map || len(n.Pairs) == 0 || len(n.Pairs) > node.MaxEntries {
		s.fault(n, `write {user: "*"}: entries, in which "*" is the drawn key`, "a descriptor is %s", n.Describe())
		return nil
	}
	var entries []rules.Entry
	for _, p := range n.Pairs {
		var e rules.Entry
		s.text(&e.Key, "an entry's key")(p.Key)
		s.text(&e.Value, "an entry's value")(p.Value)
		entries = append(entries, e)
	}
	return entries
}

// rate reads requests a second: 100, 100/s or 6000/m.
func (s *scenario) rate(out *float64) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		value := *n
		digits, unit, _ := strings.Cut(n.Text, "/")
		per := 1.0
		switch unit {
		case "", "s":
		case "m":
			per = 60
		case "h":
			per = 3600
		default:
			digits = n.Text
		}
		value.Text = digits
		f := -1.0
		if s.number(&f, "rate", 0, load.MaxRate*per)(&value); f >= 0 {
			*out = f / per
		}
	}
}

// weights reads how a rate is split over the regions.
func (s *scenario) weights(n *yamlpos.Node) []float64 {
	out := make([]float64, len(s.cfg.Regions))
	var known []field
	for i, r := range s.cfg.Regions {
		known = append(known, field{r.Name, s.number(&out[i], "the weight of "+r.Name, 0, 1e9)})
	}
	s.fields(n, "regions", known...)
	return out
}

func (s *scenario) bursts(n *yamlpos.Node) *load.Bursts {
	b := &load.Bursts{On: time.Second, Off: 5 * time.Second}
	s.fields(
		n, "bursts",
		field{"on", s.duration(&b.On, "on", time.Millisecond, sim.MaxDuration)},
		field{"off", s.duration(&b.Off, "off", 0, sim.MaxDuration)},
	)
	return b
}

func (s *scenario) pulse(n *yamlpos.Node) *load.Pulse {
	p := &load.Pulse{Every: time.Minute, Within: 100 * time.Millisecond, Requests: 100}
	s.fields(
		n, "pulse",
		field{"every", s.duration(&p.Every, "every", time.Millisecond, sim.MaxDuration)},
		field{"within", s.duration(&p.Within, "within", 0, sim.MaxDuration)},
		field{"requests", s.int(&p.Requests, "requests", 1, load.MaxPulse)},
		field{"spread", s.duration(&p.Spread, "spread", 0, sim.MaxDuration)},
		field{"solo", s.flag(&p.Solo, "solo")},
	)
	return p
}

func (s *scenario) moving(n *yamlpos.Node) *load.Moving {
	m := &load.Moving{Every: 30 * time.Second, Share: 0.8}
	s.fields(
		n, "moving",
		field{"every", s.duration(&m.Every, "every", time.Millisecond, sim.MaxDuration)},
		field{"share", s.share(&m.Share, "share", 1)},
	)
	return m
}

func (s *scenario) retry(n *yamlpos.Node) *load.Retry {
	r := &load.Retry{Attempts: 3}
	s.fields(
		n, "retry",
		field{"attempts", s.int(&r.Attempts, "attempts", 1, 1_000)},
		field{"backoff", s.duration(&r.Backoff, "backoff", time.Millisecond, sim.MaxDuration)},
		field{"jitter", s.share(&r.Jitter, "jitter", 100)},
	)
	return r
}
