package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// scenario is a scenario that is being read: fields that depend on others are
// read after them, whatever their order in the file.
type scenario struct {
	yamlpos.Collector
	root         *yamlpos.Node
	cfg          sim.Config
	limits, next *rules.Set
	nextText     string // of next
}

// Parse reads a scenario: the YAML of docs/simulation.md. Fields that are left
// out are as in sim.Default. The error lists every fault with file, line,
// column and a correction.
func Parse(file string, data []byte) (*sim.Config, error) {
	s := scenario{cfg: sim.Default()}
	s.cfg.Name, _, _ = strings.Cut(file[strings.LastIndexByte(file, '/')+1:], ".")
	s.root = s.Parse(file, data, yamlpos.Options{MaxBytes: maxScenarioBytes})
	if s.root.IsNull() && !s.Failed() {
		s.Errorf(yamlpos.Position{File: file, Line: 1, Column: 1}, "begin it with duration, limits and workloads", "the file is empty")
	} else if s.root != nil {
		s.read()
	}
	if err := s.List().Err(); err != nil {
		return nil, err
	}
	if err := s.cfg.Validate(); err != nil {
		s.Errorf(s.root.Pos, "", "%v", err)
		return nil, s.List().Err()
	}
	return &s.cfg, nil
}

func (s *scenario) read() {
	c := &s.cfg
	given := make(map[string]*yamlpos.Node)
	later := func(n *yamlpos.Node, name string) bool {
		given[name] = n
		return true
	}
	s.fields(
		s.root, "a scenario",
		field{"version", s.version},
		field{"name", s.Text(&c.Name)},
		field{"title", s.Text(&c.Title)},
		field{"description", s.Text(&c.Description)},
		field{"seed", whole(s, &c.Seed, 0, math.MaxUint64)},
		field{"duration", s.Duration(&c.Duration, time.Millisecond, sim.MaxDuration)},
		field{"settle", s.Duration(&c.Settle, 0, sim.MaxDuration)},
		field{"liveness", s.Duration(&c.Liveness, 0, sim.MaxDuration)},
		field{"start", s.start},
		field{"regions", s.regions},
		field{"shards", whole(s, &c.Shards, 1, node.MaxShards)},
		field{"max_keys", whole(s, &c.Node.MaxKeys, 1, 100_000_000)},
		field{"naive", s.Bool(&c.Node.Naive)},
		field{"policy", yamlpos.Word(&s.Collector, &c.Policy, words(sim.Policies()))},
		field{"daemons", later},
		field{"rights", later},
		field{"strict", s.strict},
		field{"control", later},
		field{"grid", s.grid},
		field{"clock", s.clock},
		field{"gossip", s.gossipFields},
		field{"members", s.members},
		field{"links", later},
		field{"limits", later},
		field{"next_limits", later},
		field{"workloads", later},
		field{"faults", later},
		field{"outside", later},
		field{"expect", s.expect},
	)
	// Limits are for the regions.
	s.dependent(given, field{"limits", s.limitsOf(&s.limits, &c.Limits)}, field{"next_limits", s.limitsOf(&s.next, &s.nextText)})
	if s.Failed() {
		return
	}
	if s.limits == nil {
		s.Errorf(s.root.Pos, "add limits: and below it domain and descriptors", "a scenario without limits")
		return
	}
	c.Rules = s.limits
	if given["workloads"] == nil {
		s.Errorf(s.root.Pos, "add workloads: and below it a list", "a scenario without workloads")
	}
	s.dependent(
		given,
		field{"daemons", s.settings},
		field{"rights", s.rights},
		field{"control", s.control},
		field{"links", s.network},
		field{"workloads", s.list(sim.MaxWorkloads, s.workload)},
		field{"faults", s.list(sim.MaxFaults, s.faultItem)},
		field{"outside", s.outsideRegions},
	)
}

// version checks the version of the language that a file was written in.
func (s *scenario) version(n *yamlpos.Node, name string) bool {
	v := 0
	if !whole(s, &v, 1, math.MaxInt32)(n, name) {
		return false
	}
	if v != version {
		return s.Errorf(n.Pos, "run it with the version of rld that wrote it, or remove version: and correct what this one does not know",
			"written in version %d of the language of scenarios, and this is version %d", v, version)
	}
	return true
}

// dependent reads the given ones of some fields, in the order of these.
func (s *scenario) dependent(given map[string]*yamlpos.Node, fields ...field) {
	for _, f := range fields {
		if n := given[f.Name]; n != nil {
			f.Read(n, f.Name)
		}
	}
}

// start reads the wall time at which the load begins.
func (s *scenario) start(n *yamlpos.Node, name string) bool {
	text := ""
	if !s.Text(&text)(n, name) {
		return false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1990 || at.Year() > 2200 {
		return s.Errorf(n.Pos, "write 2026-01-31T23:59:30Z", "start is %s, not a time", n.Describe())
	}
	s.cfg.Epoch = at.UnixNano()
	return true
}

func (s *scenario) regions(n *yamlpos.Node, name string) bool {
	s.cfg.Regions = nil
	if n.Kind != yamlpos.Map {
		return s.Errorf(n.Pos, "write {eu: 3, us: 3}: names and how many daemons", "regions is %s, not a map", n.Describe())
	}
	good := s.Each(n, name, func(key string, p yamlpos.Pair) bool {
		r := sim.Region{Name: key}
		read := whole(s, &r.Daemons, 1, sim.MaxDaemons)(p.Value, "the number of daemons of "+key)
		s.cfg.Regions = append(s.cfg.Regions, r)
		return read
	})
	if k := len(s.cfg.Regions); good && (k < 1 || k > sim.MaxRegions) {
		s.Errorf(n.Pos, fmt.Sprintf("1 to %d", sim.MaxRegions), "%d regions", k)
	}
	return good
}

func (s *scenario) clock(n *yamlpos.Node, name string) bool {
	c := &s.cfg.Node.Clock
	good := s.fields(
		n, name,
		field{"max_offset", s.Duration(&c.MaxOffset, hlc.MinMaxOffset, hlc.MaxMaxOffset)},
		field{"slew_divisor", whole(s, &c.SlewDivisor, hlc.MinSlewDivisor, hlc.MaxSlewDivisor)},
	)
	if err := c.Validate(); err != nil {
		s.Errorf(n.Pos, "", "%v", err)
	}
	return good
}

func (s *scenario) gossipFields(n *yamlpos.Node, name string) bool {
	g := &s.cfg.Node.Gossip
	const most = time.Hour
	good := s.fields(
		n, name,
		field{"interval", s.Duration(&g.Interval, 0, most)},
		field{"wan_interval", s.Duration(&g.WANInterval, 0, most)},
		field{"min_gap", s.Duration(&g.MinGap, 0, most)},
		field{"quiet", s.Duration(&g.Quiet, 0, most)},
		field{"max_cells", whole(s, &g.MaxCells, 1, 1<<30)},
		field{"frame_cells", whole(s, &g.FrameCells, 1, 1<<16)},
		field{"frame_bytes", whole(s, &g.FrameBytes, 1, 1<<30)},
		field{"ready_within", s.Duration(&g.ReadyWithin, 0, most)},
		field{"grace", s.Duration(&g.Grace, 0, most)},
		field{"digest_every", s.Duration(&g.DigestEvery, 0, most)},
	)
	if err := g.Validate(); err != nil {
		s.Errorf(n.Pos, "", "%v", err)
	}
	return good
}

func (s *scenario) members(n *yamlpos.Node, name string) bool {
	m := &s.cfg.Members
	return s.fields(
		n, name,
		field{"join", s.Duration(&m.Join, 0, time.Hour)},
		field{"leave", s.Duration(&m.Leave, 0, time.Hour)},
		field{"spread", s.Duration(&m.Spread, 0, time.Hour)},
	)
}

func (s *scenario) network(n *yamlpos.Node, name string) bool {
	net := &s.cfg.Network
	var between *yamlpos.Node
	good := s.fields(
		n, name,
		field{"region", s.link(&net.Region)},
		field{"across", s.link(&net.Across)},
		field{"between", func(v *yamlpos.Node, _ string) bool {
			between = v // after the links that it starts from
			return true
		}},
	)
	if between == nil {
		return good
	}
	return s.list(sim.MaxDaemons, func(item *yamlpos.Node) bool {
		r := sim.LinkRule{Link: net.Across}
		oneWay := false
		read := s.link(
			&r.Link,
			field{"from", s.place(&r.From)},
			field{"to", s.place(&r.To)},
			field{"one_way", s.Bool(&oneWay)},
		)(item, "")
		net.Links = append(net.Links, r)
		if !oneWay {
			net.Links = append(net.Links, sim.LinkRule{From: r.To, To: r.From, Link: r.Link})
		}
		return read
	})(between, "between")
}

// link returns a Reader of the qualities of a link, and of more fields.
func (s *scenario) link(l *sim.Link, more ...field) yamlpos.Reader {
	return func(n *yamlpos.Node, _ string) bool {
		shape := shapeOf(l)
		good := s.fields(n, "a link", append([]field{
			{"delay", s.Duration(&l.Delay, 0, time.Hour)},
			{"jitter", s.Duration(&l.Jitter, 0, time.Hour)},
			{"shape", yamlpos.Word(&s.Collector, &shape, shapes)},
			{"loss", ppm(s, &l.Loss)},
			{"duplicate", ppm(s, &l.Duplicate)},
			{"reorder", ppm(s, &l.Reorder)},
			{"corrupt", ppm(s, &l.Corrupt)},
			{"truncate", ppm(s, &l.Truncate)},
			{"bandwidth", whole(s, &l.Bandwidth, 0, 1<<40)},
		}, more...)...)
		l.Uniform = shape == 1
		return good
	}
}

// shapes are the words of the distributions of jitter.
var shapes = []string{"exponential", "uniform"}

// shapeOf returns the index of the shape of a link.
func shapeOf(l *sim.Link) int {
	if l.Uniform {
		return 1
	}
	return 0
}

// place returns a Reader of the name of a region or a daemon.
func (s *scenario) place(out *string) yamlpos.Reader {
	return func(n *yamlpos.Node, _ string) bool {
		all := s.cfg.Places()
		if n.Kind == yamlpos.Scalar && slices.Contains(all, n.Text) {
			*out = n.Text
			return true
		}
		hint := "the places are " + suggest.List(all)
		if len(all) > 20 {
			hint = "name a region, or a daemon such as " + all[len(s.cfg.Regions)]
		}
		return s.Errorf(n.Pos, suggest.Hint(n.Text, all, hint), "no region or daemon %s", n.Describe())
	}
}

// placeList returns a Reader of one place or a list of them.
func (s *scenario) placeList(out *[]string) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		*out = nil
		add := func(item *yamlpos.Node) bool {
			*out = append(*out, "")
			return s.place(&(*out)[len(*out)-1])(item, name)
		}
		if n.Kind == yamlpos.Scalar {
			return add(n)
		}
		return s.list(sim.MaxDaemons, add)(n, name)
	}
}

// settings reads the settings of single daemons and regions.
func (s *scenario) settings(n *yamlpos.Node, name string) bool {
	return s.Each(n, name, func(_ string, p yamlpos.Pair) bool {
		var x sim.Settings
		good := s.place(&x.Place)(p.Key, name)
		good = s.fields(
			p.Value, name,
			field{"shards", whole(s, &x.Shards, 1, node.MaxShards)},
			field{"max_keys", whole(s, &x.MaxKeys, 1, 100_000_000)},
			field{"max_cells", whole(s, &x.MaxCells, 1, 1<<30)},
			field{"interval", s.Duration(&x.Interval, time.Millisecond, time.Hour)},
			field{"wan_interval", s.Duration(&x.WANInterval, time.Millisecond, time.Hour)},
			field{"newer", s.Bool(&x.Newer)},
		) && good
		s.cfg.Settings = append(s.cfg.Settings, x)
		return good
	})
}

func (s *scenario) outsideRegions(n *yamlpos.Node, name string) bool {
	return s.Each(n, name, func(_ string, p yamlpos.Pair) bool {
		var o sim.Outside
		known := s.place(&o.Region)(p.Key, name)
		read := yamlpos.Word(&s.Collector, &o.State, outsideWords)(p.Value, "state")
		s.cfg.Outside = append(s.cfg.Outside, o)
		return known && read
	})
}

// outsideWords are the words of the states of regions outside.
var outsideWords = []string{"lost", "deaf", "mute"}

// limitsOf returns a Reader of a map as a file of limits, and of its text.
func (s *scenario) limitsOf(out **rules.Set, text *string) yamlpos.Reader {
	return func(n *yamlpos.Node, _ string) bool {
		set, found := s.cfg.ParseLimits(limits.File{Name: n.Pos.File, Root: n})
		for _, d := range found {
			if d.Severity == yamlpos.Error {
				s.Add(d)
			}
		}
		*out, *text = set, string(yamlpos.Format(n))
		return set != nil
	}
}

// words returns the words that scenarios use for values.
func words[T fmt.Stringer](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = v.String()
	}
	return out
}

// listOf returns a Reader of a list of some of the values of a type, by their
// words. The name of an item is for messages.
func listOf[T fmt.Stringer](s *scenario, item string, all []T, out *[]T) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		*out = nil
		return s.list(len(all), func(v *yamlpos.Node) bool {
			i := 0
			good := yamlpos.Word(&s.Collector, &i, words(all))(v, item)
			if good {
				*out = append(*out, all[i])
			}
			return good
		})(n, name)
	}
}
