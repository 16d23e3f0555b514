package scenario

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// workload reads one entry of workloads.
func (s *scenario) workload(n *yamlpos.Node) bool {
	l := load.Workload{Keys: 1, Hits: 1}
	if domains := s.limits.Domains(); len(domains) == 1 {
		l.Domain = domains[0]
	}
	descriptor := func(v *yamlpos.Node) bool {
		entries, ok := s.descriptor(v)
		l.Descriptors = append(l.Descriptors, entries)
		return ok
	}
	good := s.fields(
		n, "a workload",
		field{"name", s.Text(&l.Name)},
		field{"domain", s.Text(&l.Domain)},
		field{"descriptor", func(v *yamlpos.Node, _ string) bool { return descriptor(v) }},
		field{"descriptors", s.list(node.MaxDescriptors, descriptor)},
		field{"hits", whole(s, &l.Hits, 0, math.MaxUint32)},
		field{"heavy", s.group(
			field{"share", s.share(&l.Heavy, 1)},
			field{"hits", whole(s, &l.HeavyHits, 0, math.MaxUint32)},
		)},
		field{"peek", s.share(&l.Peek, 1)},
		field{"override", s.override(&l)},
		field{"refund", s.refund(&l)},
		field{"rate", s.rate(&l.Rate)},
		field{"regions", func(v *yamlpos.Node, name string) bool {
			l.Regions = make([]float64, len(s.cfg.Regions))
			return s.byRegion(v, name, func(i int) yamlpos.Reader { return s.Number(&l.Regions[i], 0, 1e9) })
		}},
		field{"from", s.Duration(&l.From, 0, sim.MaxDuration)},
		field{"to", s.Duration(&l.To, 0, sim.MaxDuration)},
		field{"keys", whole(s, &l.Keys, 1, load.MaxNames)},
		field{"zipf", s.Number(&l.Zipf, 0, 10)},
		field{"new_keys", s.Bool(&l.NewKeys)},
		field{"hot", s.share(&l.Hot, 1)},
		field{"bursts", s.bursts(&l.Bursts)},
		field{"pulse", s.pulse(&l.Pulse)},
		field{"moving", s.moving(&l.Moving)},
		field{"retry", s.retry(&l.Retry)},
		field{"patience", s.Duration(&l.Patience, 0, sim.MaxDuration)},
		field{"failover", s.Bool(&l.Failover)},
		field{"pinned", s.Bool(&l.Pinned)},
	)
	if good {
		s.checkWorkload(n, &l)
	}
	s.cfg.Workloads = append(s.cfg.Workloads, l)
	return good
}

// checkWorkload looks at fields that must fit each other and the limits.
func (s *scenario) checkWorkload(n *yamlpos.Node, l *load.Workload) {
	if err := l.Validate(); err != nil {
		s.Errorf(n.Pos, "", "%v", err)
		return
	}
	if l.Rate == 0 && l.Pulse == nil {
		s.Errorf(n.Pos, "add rate: 100, requests a second of all regions together", "a workload without a rate")
	}
	domain := s.limits.Domain(l.Domain)
	if domain == nil {
		hint := suggest.Hint(l.Domain, s.limits.Domains(), "the limits have "+suggest.List(s.limits.Domains()))
		s.Errorf(n.Pos, hint, "a workload of domain %q, which has no limits", l.Domain)
		return
	}
	matches := func(entries []rules.Entry) bool { return domain.Match(entries) != nil }
	if !slices.ContainsFunc(l.Descriptors, matches) {
		s.Errorf(n.Pos, "let a descriptor match a rule", "a workload that no rule matches")
	}
}

// descriptor reads the entries of a descriptor: {tier: premium, user: "*"}.
func (s *scenario) descriptor(n *yamlpos.Node) (entries []rules.Entry, good bool) {
	if n.Kind != yamlpos.Map || len(n.Pairs) == 0 || len(n.Pairs) > node.MaxEntries {
		s.Errorf(n.Pos, `write {user: "*"}: entries, in which "*" is the drawn key`, "a descriptor is %s", n.Describe())
		return nil, false
	}
	good = true
	for _, p := range n.Pairs {
		var e rules.Entry
		good = s.Text(&e.Key)(p.Key, "an entry's key") && good
		good = s.Text(&e.Value)(p.Value, "an entry's value") && good
		entries = append(entries, e)
	}
	return entries, good
}

// rate returns a Reader of requests a second: 100, 100/s or 6000/m.
func (s *scenario) rate(out *float64) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
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
		f := 0.0
		if !s.Number(&f, 0, load.MaxRate*per)(&value, name) {
			return false
		}
		*out = f / per
		return true
	}
}

// override returns a Reader of limits that calls carry.
func (s *scenario) override(l *load.Workload) yamlpos.Reader {
	o := &l.Override
	unit := 0
	read := s.group(
		field{"share", s.share(&o.Share, 1)},
		field{"descriptor", whole(s, &o.Descriptor, 0, node.MaxDescriptors-1)},
		field{"requests_per_unit", whole(s, &o.Requests, 0, math.MaxUint32)},
		field{"unit", yamlpos.Word(&s.Collector, &unit, rules.Units())},
	)
	return func(n *yamlpos.Node, name string) bool {
		o.Share = 1
		good := read(n, name)
		o.Unit = rules.Unit(unit + 1)
		return good
	}
}

// refund returns a Reader of how clients refund hits.
func (s *scenario) refund(l *load.Workload) yamlpos.Reader {
	r := &l.Refund
	read := s.group(
		field{"share", s.share(&r.Share, 1)},
		field{"after", s.Duration(&r.After, time.Microsecond, sim.MaxDuration)},
		field{"part", s.share(&r.Part, 1)},
		field{"twice", s.share(&r.Twice, 1)},
		field{"elsewhere", s.share(&r.Elsewhere, 1)},
	)
	return func(n *yamlpos.Node, name string) bool {
		r.Share, r.After = 1, time.Second
		return read(n, name)
	}
}

// group returns a Reader of a map.
func (s *scenario) group(fields ...field) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool { return s.fields(n, name, fields...) }
}

func (s *scenario) bursts(out **load.Bursts) yamlpos.Reader {
	b := &load.Bursts{On: time.Second, Off: 5 * time.Second}
	return optional(
		s, out, b,
		field{"on", s.Duration(&b.On, time.Millisecond, sim.MaxDuration)},
		field{"off", s.Duration(&b.Off, 0, sim.MaxDuration)},
	)
}

func (s *scenario) pulse(out **load.Pulse) yamlpos.Reader {
	p := &load.Pulse{Every: time.Minute, Within: 100 * time.Millisecond, Requests: 100}
	return optional(
		s, out, p,
		field{"every", s.Duration(&p.Every, time.Millisecond, sim.MaxDuration)},
		field{"within", s.Duration(&p.Within, 0, sim.MaxDuration)},
		field{"requests", whole(s, &p.Requests, 1, load.MaxPulse)},
		field{"spread", s.Duration(&p.Spread, 0, sim.MaxDuration)},
		field{"solo", s.Bool(&p.Solo)},
	)
}

func (s *scenario) moving(out **load.Moving) yamlpos.Reader {
	m := &load.Moving{Every: 30 * time.Second, Share: 0.8}
	return optional(
		s, out, m,
		field{"every", s.Duration(&m.Every, time.Millisecond, sim.MaxDuration)},
		field{"share", s.share(&m.Share, 1)},
	)
}

func (s *scenario) retry(out **load.Retry) yamlpos.Reader {
	r := &load.Retry{Attempts: 3}
	return optional(
		s, out, r,
		field{"attempts", whole(s, &r.Attempts, 1, 1_000)},
		field{"backoff", s.Duration(&r.Backoff, time.Millisecond, sim.MaxDuration)},
		field{"jitter", s.share(&r.Jitter, 100)},
	)
}
