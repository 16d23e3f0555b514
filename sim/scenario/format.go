package scenario

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/load"
)

// version is the version of the language: a file that names another one is not
// read. Raise it when a field goes, or a file that leaves a field out, or has a
// value of it, is another run than before.
const version = 1

// Format returns a run as a file that Parse reads, without fields that have
// their defaults. Grids, traces, claims and links between single places are not
// written. It returns an error for rules whose text is not known.
func Format(c *sim.Config) ([]byte, error) {
	def := sim.Default()
	limits, err := limitsNode(c.Limits)
	if err != nil {
		return nil, err
	}
	f := fieldsOf{}
	f.number("version", version, 0)
	f.text("name", c.Name, "")
	f.text("title", c.Title, "")
	f.number("seed", c.Seed, -1)
	f.time("duration", c.Duration, 0)
	f.time("settle", c.Settle, def.Settle)
	f.time("liveness", c.Liveness, def.Liveness)
	if c.Epoch != 0 {
		f.text("start", time.Unix(0, c.Epoch).UTC().Format(time.RFC3339Nano), "")
	}
	f.add("regions", regionsNode(c))
	f.number("shards", c.Shards, def.Shards)
	f.number("max_keys", c.Node.MaxKeys, def.Node.MaxKeys)
	f.flag("naive", c.Node.Naive)
	f.text("policy", c.Policy.String(), def.Policy.String())
	f.group("clock", clockFields(c))
	f.group("gossip", gossipNode(c))
	f.group("members", membersNode(c, &def))
	f.group("daemons", settingsNode(c))
	f.group("rights", rightsNode(c, &def))
	f.group("strict", strictNode(c, &def))
	if n := controlNode(c); n != nil {
		f.add("control", n)
	}
	f.group("links", linksNode(c, &def))
	f.add("limits", limits)
	var workloads, faults []*yamlpos.Node
	for i := range c.Workloads {
		workloads = append(workloads, workloadNode(c, &c.Workloads[i]))
	}
	f.add("workloads", yamlpos.NewList(workloads...))
	for i := range c.Faults {
		n, err := faultNode(&c.Faults[i])
		if err != nil {
			return nil, err
		}
		faults = append(faults, n)
	}
	if len(faults) > 0 {
		f.add("faults", yamlpos.NewList(faults...))
	}
	outside := fieldsOf{}
	for _, o := range c.Outside {
		outside.text(o.Region, outsideWords[o.State], "")
	}
	f.group("outside", outside)
	return yamlpos.Format(yamlpos.NewMap(f...)), nil
}

// fieldsOf is the fields of a map in their order.
type fieldsOf []yamlpos.Pair

func (f *fieldsOf) add(name string, value *yamlpos.Node) {
	*f = append(*f, yamlpos.Pair{Key: yamlpos.TextNode(name), Value: value})
}

// group adds a map that is not empty.
func (f *fieldsOf) group(name string, fields fieldsOf) {
	if len(fields) > 0 {
		f.add(name, yamlpos.NewMap(fields...))
	}
}

// The next ones add a value that is not the default.

func (f *fieldsOf) text(name, value, def string) {
	if value != def {
		f.add(name, yamlpos.TextNode(value))
	}
}

func (f *fieldsOf) time(name string, value, def time.Duration) {
	if value != def {
		f.add(name, yamlpos.TextNode(value.String()))
	}
}

// number adds a whole number of any type.
func (f *fieldsOf) number(name string, value, def any) {
	if v, d := fmt.Sprint(value), fmt.Sprint(def); v != d {
		f.add(name, yamlpos.TextNode(v))
	}
}

func (f *fieldsOf) fraction(name string, value, def float64) {
	if value != def {
		f.add(name, yamlpos.TextNode(strconv.FormatFloat(value, 'f', -1, 64)))
	}
}

func (f *fieldsOf) share(name string, value, def rules.PPM) {
	if value != def {
		f.add(name, yamlpos.TextNode(percent(value)))
	}
}

func (f *fieldsOf) flag(name string, value bool) {
	if value {
		f.add(name, yamlpos.TextNode("true"))
	}
}

func percent(p rules.PPM) string {
	return strconv.FormatFloat(float64(p)/float64(rules.Percent), 'f', -1, 64) + "%"
}

// ppmOf returns a fraction of 1 in parts per million.
func ppmOf(f float64) rules.PPM { return rules.PPM(math.Round(f * float64(rules.Whole))) }

// limitsNode returns the text of limits as a tree.
func limitsNode(text string) (*yamlpos.Node, error) {
	if text == "" {
		return nil, fmt.Errorf("scenario: the text of the limits is not known")
	}
	root, _, fault := yamlpos.Parse("limits", []byte(text), yamlpos.Options{MaxBytes: maxScenarioBytes})
	if fault != nil {
		return nil, yamlpos.Diagnostics{*fault}.Err()
	}
	return root, nil
}

func regionsNode(c *sim.Config) *yamlpos.Node {
	f := fieldsOf{}
	for _, r := range c.Regions {
		f.number(r.Name, r.Daemons, 0)
	}
	return yamlpos.NewMap(f...)
}

func clockFields(c *sim.Config) (f fieldsOf) {
	def := sim.Default().Node.Clock
	f.time("max_offset", c.Node.Clock.MaxOffset, def.MaxOffset)
	f.number("slew_divisor", c.Node.Clock.SlewDivisor, def.SlewDivisor)
	return f
}

func gossipNode(c *sim.Config) (f fieldsOf) {
	g, def := &c.Node.Gossip, sim.Default().Node.Gossip
	f.time("interval", g.Interval, def.Interval)
	f.time("wan_interval", g.WANInterval, def.WANInterval)
	f.time("min_gap", g.MinGap, def.MinGap)
	f.time("quiet", g.Quiet, def.Quiet)
	f.number("max_cells", g.MaxCells, def.MaxCells)
	f.number("frame_cells", g.FrameCells, def.FrameCells)
	f.number("frame_bytes", g.FrameBytes, def.FrameBytes)
	f.time("ready_within", g.ReadyWithin, def.ReadyWithin)
	f.time("grace", g.Grace, def.Grace)
	f.time("digest_every", g.DigestEvery, def.DigestEvery)
	return f
}

func settingsNode(c *sim.Config) (f fieldsOf) {
	for _, s := range c.Settings {
		g := fieldsOf{}
		g.number("shards", s.Shards, 0)
		g.number("max_keys", s.MaxKeys, 0)
		g.number("max_cells", s.MaxCells, 0)
		g.time("interval", s.Interval, 0)
		g.time("wan_interval", s.WANInterval, 0)
		g.flag("newer", s.Newer)
		f.group(s.Place, g)
	}
	return f
}

func membersNode(c, def *sim.Config) (f fieldsOf) {
	f.time("join", c.Members.Join, def.Members.Join)
	f.time("leave", c.Members.Leave, def.Members.Leave)
	f.time("spread", c.Members.Spread, def.Members.Spread)
	return f
}

func rightsNode(c, def *sim.Config) (f fieldsOf) {
	r, d := &c.Rights, &def.Rights
	f.time("period", r.Period, d.Period)
	if r.DaemonHorizon == 0 {
		f.text("daemon_horizon", "off", "")
	} else {
		f.time("daemon_horizon", r.DaemonHorizon, d.DaemonHorizon)
	}
	f.time("interval", r.Interval, d.Interval)
	f.time("wan_interval", r.WANInterval, d.WANInterval)
	f.time("ahead", r.Ahead, d.Ahead)
	weights := fieldsOf{}
	for i, n := range r.Weights {
		weights.number(c.Regions[i].Name, n, -1)
	}
	f.group("weights", weights)
	return f
}

func strictNode(c, def *sim.Config) (f fieldsOf) {
	t, d := &c.Strict, &def.Strict
	f.number("headroom", t.Headroom, d.Headroom)
	f.number("prefetch", t.Prefetch, d.Prefetch)
	f.time("forward", t.Forward, d.Forward)
	f.time("margin", t.Margin, d.Margin)
	f.time("sync", t.Sync, d.Sync)
	breaker := fieldsOf{}
	breaker.number("calls", t.Breaker.Calls, d.Breaker.Calls)
	breaker.share("errors", rules.PPM(t.Breaker.Errors), rules.PPM(d.Breaker.Errors))
	breaker.time("window", t.Breaker.Window, d.Breaker.Window)
	breaker.time("open", t.Breaker.Open, d.Breaker.Open)
	f.group("breaker", breaker)
	f.number("waiters", t.Waiters, d.Waiters)
	f.number("queue", t.Queue, d.Queue)
	f.number("voter_keys", t.VoterKeys, d.VoterKeys)
	return f
}

func linksNode(c, def *sim.Config) (f fieldsOf) {
	f.group("region", linkFields(&c.Network.Region, &def.Network.Region))
	f.group("across", linkFields(&c.Network.Across, &def.Network.Across))
	return f
}

func linkFields(l, def *sim.Link) (f fieldsOf) {
	f.time("delay", l.Delay, def.Delay)
	f.time("jitter", l.Jitter, def.Jitter)
	f.text("shape", shapes[shapeOf(l)], shapes[shapeOf(def)])
	f.share("loss", l.Loss, def.Loss)
	f.share("duplicate", l.Duplicate, def.Duplicate)
	f.share("reorder", l.Reorder, def.Reorder)
	f.share("corrupt", l.Corrupt, def.Corrupt)
	f.share("truncate", l.Truncate, def.Truncate)
	f.number("bandwidth", l.Bandwidth, def.Bandwidth)
	return f
}

func workloadNode(c *sim.Config, l *load.Workload) *yamlpos.Node {
	f := fieldsOf{}
	f.text("name", l.Name, "")
	f.text("domain", l.Domain, "")
	var descriptors []*yamlpos.Node
	for _, entries := range l.Descriptors {
		d := fieldsOf{}
		for _, e := range entries {
			d.add(e.Key, yamlpos.TextNode(e.Value))
		}
		descriptors = append(descriptors, yamlpos.NewMap(d...))
	}
	f.add("descriptors", yamlpos.NewList(descriptors...))
	f.number("hits", l.Hits, 1)
	f.fraction("rate", l.Rate, 0)
	regions := fieldsOf{}
	for i, w := range l.Regions {
		regions.fraction(c.Regions[i].Name, w, -1)
	}
	f.group("regions", regions)
	f.time("from", l.From, 0)
	f.time("to", l.To, 0)
	f.number("keys", l.Keys, 1)
	f.fraction("zipf", l.Zipf, 0)
	f.flag("new_keys", l.NewKeys)
	f.share("hot", ppmOf(l.Hot), 0)
	f.patterns(l)
	f.asks(l)
	f.time("patience", l.Patience, 0)
	f.flag("failover", l.Failover)
	f.flag("pinned", l.Pinned)
	return yamlpos.NewMap(f...)
}

// asks adds the fields that vary from call to call, and those of refunds.
func (f *fieldsOf) asks(l *load.Workload) {
	if l.Heavy > 0 {
		g := fieldsOf{}
		g.share("share", ppmOf(l.Heavy), 0)
		g.number("hits", l.HeavyHits, 0)
		f.group("heavy", g)
	}
	f.share("peek", ppmOf(l.Peek), 0)
	if o := &l.Override; o.Share > 0 {
		g := fieldsOf{}
		g.share("share", ppmOf(o.Share), rules.Whole)
		g.number("descriptor", o.Descriptor, 0)
		g.number("requests_per_unit", o.Requests, 0)
		g.add("unit", yamlpos.TextNode(o.Unit.String()))
		f.group("override", g)
	}
	if r := &l.Refund; r.Share > 0 {
		g := fieldsOf{}
		g.add("share", yamlpos.TextNode(percent(ppmOf(r.Share))))
		g.time("after", r.After, 0)
		g.share("part", ppmOf(r.Part), 0)
		g.share("twice", ppmOf(r.Twice), 0)
		g.share("elsewhere", ppmOf(r.Elsewhere), 0)
		f.group("refund", g)
	}
}

// patterns adds the patterns of a workload in time.
func (f *fieldsOf) patterns(l *load.Workload) {
	if b := l.Bursts; b != nil {
		g := fieldsOf{}
		g.time("on", b.On, 0)
		g.time("off", b.Off, -1)
		f.group("bursts", g)
	}
	if p := l.Pulse; p != nil {
		g := fieldsOf{}
		g.time("every", p.Every, 0)
		g.time("within", p.Within, -1)
		g.number("requests", p.Requests, 0)
		g.time("spread", p.Spread, 0)
		g.flag("solo", p.Solo)
		f.group("pulse", g)
	}
	if m := l.Moving; m != nil {
		g := fieldsOf{}
		g.time("every", m.Every, 0)
		g.add("share", yamlpos.TextNode(percent(ppmOf(m.Share))))
		f.group("moving", g)
	}
	if r := l.Retry; r != nil {
		g := fieldsOf{}
		g.number("attempts", r.Attempts, 0)
		g.time("backoff", r.Backoff, 0)
		g.share("jitter", ppmOf(r.Jitter), 0)
		f.group("retry", g)
	}
}

func faultNode(x *sim.Fault) (*yamlpos.Node, error) {
	f := fieldsOf{}
	f.text("fault", x.Kind.String(), "")
	f.time("at", x.At, 0)
	f.time("for", x.For, 0)
	if t := &x.When; t.Event != "" {
		g := fieldsOf{}
		g.text("event", t.Event, "")
		g.places("where", t.Where)
		g.number("count", t.Count, 0)
		g.time("after", t.After, 0)
		f.group("when", g)
	}
	f.places("from", x.From)
	f.places("to", x.To)
	f.flag("one_way", x.OneWay)
	f.flag("rename", x.Rename)
	f.flag("stay", x.Stay)
	f.time("delay", x.Delay, 0)
	f.share("share", x.Share, 0)
	f.text("command", x.Command, "")
	switch x.Kind {
	case sim.ClockStep, sim.WrongClock:
		f.time("offset", x.Offset, defaultFault.Offset)
	case sim.ClockDrift:
		f.number("ppm", x.PPM, defaultFault.PPM)
	case sim.Degrade:
		none := sim.Link{Delay: -1, Jitter: -1, Uniform: !x.Link.Uniform, Bandwidth: -1}
		for _, p := range []*rules.PPM{&none.Loss, &none.Duplicate, &none.Reorder, &none.Corrupt, &none.Truncate} {
			*p = math.MaxUint32
		}
		f.group("link", linkFields(&x.Link, &none))
	case sim.NewRules, sim.MixedLimits:
		limits, err := limitsNode(x.Limits)
		if err != nil {
			return nil, err
		}
		f.add("limits", limits)
	default: // the fields above
	}
	return yamlpos.NewMap(f...), nil
}

// places adds a place or a list of them, nothing for everywhere.
func (f *fieldsOf) places(name string, all []string) {
	switch len(all) {
	case 0:
	case 1:
		f.text(name, all[0], "")
	default:
		items := make([]*yamlpos.Node, len(all))
		for i, p := range all {
			items[i] = yamlpos.TextNode(p)
		}
		f.add(name, yamlpos.NewList(items...))
	}
}
