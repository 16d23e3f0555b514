package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
	"github.com/georld/rld/sim"
)

// scenario is a scenario that is being read: fields that depend on others are
// read after them, whatever their order in the file.
type scenario struct {
	reader
	root *yamlpos.Node
	cfg  sim.Config

	limits, next     *rules.Set
	links, workloads *yamlpos.Node
	faults, outside  *yamlpos.Node
	rightsNode       *yamlpos.Node
	limitsNode       *yamlpos.Node
	nextNode         *yamlpos.Node
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
		s.fault(s.root, "", "%v", err)
		return nil, s.List().Err()
	}
	return &s.cfg, nil
}

func (s *scenario) read() {
	c := &s.cfg
	later := func(n **yamlpos.Node) func(*yamlpos.Node) { return func(v *yamlpos.Node) { *n = v } }
	s.fields(
		s.root, "a scenario",
		field{"name", s.text(&c.Name, "name")},
		field{"title", s.text(&c.Title, "title")},
		field{"description", s.text(&c.Description, "description")},
		field{"seed", s.whole("seed", 0, math.MaxUint64, func(v uint64) { c.Seed = v })},
		field{"duration", s.duration(&c.Duration, "duration", time.Millisecond, sim.MaxDuration)},
		field{"settle", s.duration(&c.Settle, "settle", 0, sim.MaxDuration)},
		field{"regions", s.regions},
		field{"shards", s.int(&c.Shards, "shards", 1, node.MaxShards)},
		field{"max_keys", s.int(&c.Node.MaxKeys, "max_keys", 1, 100_000_000)},
		field{"naive", s.flag(&c.Node.Naive, "naive")},
		field{"policy", s.word("policy", words(sim.Policies()), func(i int) { c.Policy = sim.Policy(i) })},
		field{"rights", later(&s.rightsNode)},
		field{"strict", s.strict},
		field{"grid", s.grid},
		field{"clock", s.clock},
		field{"gossip", s.gossipFields},
		field{"members", s.members},
		field{"links", later(&s.links)},
		field{"limits", later(&s.limitsNode)},
		field{"next_limits", later(&s.nextNode)},
		field{"workloads", later(&s.workloads)},
		field{"faults", later(&s.faults)},
		field{"outside", later(&s.outside)},
		field{"expect", s.expect},
	)
	if s.limitsNode != nil { // which are for the regions, wherever these stand
		s.limits = s.limitsOf(s.limitsNode)
	}
	if s.nextNode != nil {
		s.next = s.limitsOf(s.nextNode)
	}
	if s.Failed() {
		return // later fields refer to these
	}
	s.dependent()
}

// dependent reads what refers to regions, limits and other fields.
func (s *scenario) dependent() {
	if s.limits == nil {
		s.fault(s.root, "add limits: and below it domain and descriptors", "a scenario without limits")
		return
	}
	s.cfg.Rules = s.limits
	if s.rightsNode != nil {
		s.rights(s.rightsNode)
	}
	if s.links != nil {
		s.network(s.links)
	}
	if s.workloads == nil {
		s.fault(s.root, "add workloads: and below it a list", "a scenario without workloads")
		return
	}
	s.list(s.workloads, "workloads", sim.MaxWorkloads, s.workload)
	if s.faults != nil {
		s.list(s.faults, "faults", sim.MaxFaults, s.faultItem)
	}
	if s.outside != nil {
		s.outsideRegions(s.outside)
	}
}

func (s *scenario) regions(n *yamlpos.Node) {
	s.cfg.Regions = nil
	if n.Kind != yamlpos.Map {
		s.fault(n, "write {eu: 3, us: 3}: names and how many daemons", "regions is %s, not a map", n.Describe())
		return
	}
	for _, p := range n.Pairs {
		key := p.Key
		r := sim.Region{Name: key.Text}
		if slices.ContainsFunc(s.cfg.Regions, func(o sim.Region) bool { return o.Name == r.Name }) {
			s.fault(key, "keep one", "region %s is given twice", r.Name)
		}
		s.int(&r.Daemons, "the number of daemons of "+r.Name, 1, sim.MaxDaemons)(p.Value)
		s.cfg.Regions = append(s.cfg.Regions, r)
	}
	if k := len(s.cfg.Regions); k < 1 || k > sim.MaxRegions {
		s.fault(n, fmt.Sprintf("1 to %d", sim.MaxRegions), "%d regions", k)
	}
}

func (s *scenario) clock(n *yamlpos.Node) {
	c := &s.cfg.Node.Clock
	s.fields(
		n, "clock",
		field{"max_offset", s.duration(&c.MaxOffset, "max_offset", hlc.MinMaxOffset, hlc.MaxMaxOffset)},
		field{"slew_divisor", s.whole("slew_divisor", hlc.MinSlewDivisor, hlc.MaxSlewDivisor,
			func(v uint64) { c.SlewDivisor = int64(v) })},
	)
	if err := c.Validate(); err != nil {
		s.fault(n, "", "%v", err)
	}
}

func (s *scenario) gossipFields(n *yamlpos.Node) {
	g := &s.cfg.Node.Gossip
	const most = time.Hour
	s.fields(
		n, "gossip",
		field{"interval", s.duration(&g.Interval, "interval", 0, most)},
		field{"wan_interval", s.duration(&g.WANInterval, "wan_interval", 0, most)},
		field{"min_gap", s.duration(&g.MinGap, "min_gap", 0, most)},
		field{"quiet", s.duration(&g.Quiet, "quiet", 0, most)},
		field{"max_cells", s.int(&g.MaxCells, "max_cells", 1, 1<<30)},
		field{"frame_cells", s.int(&g.FrameCells, "frame_cells", 1, 1<<16)},
		field{"frame_bytes", s.int(&g.FrameBytes, "frame_bytes", 1, 1<<30)},
		field{"ready_within", s.duration(&g.ReadyWithin, "ready_within", 0, most)},
		field{"grace", s.duration(&g.Grace, "grace", 0, most)},
		field{"digest_every", s.duration(&g.DigestEvery, "digest_every", 0, most)},
	)
	if err := g.Validate(); err != nil {
		s.fault(n, "", "%v", err)
	}
}

func (s *scenario) members(n *yamlpos.Node) {
	m := &s.cfg.Members
	s.fields(
		n, "members",
		field{"join", s.duration(&m.Join, "join", 0, time.Hour)},
		field{"leave", s.duration(&m.Leave, "leave", 0, time.Hour)},
		field{"spread", s.duration(&m.Spread, "spread", 0, time.Hour)},
	)
}

func (s *scenario) network(n *yamlpos.Node) {
	net := &s.cfg.Network
	var between *yamlpos.Node
	s.fields(
		n, "links",
		field{"region", func(v *yamlpos.Node) { s.fields(v, "a link", s.linkFields(&net.Region)...) }},
		field{"across", func(v *yamlpos.Node) { s.fields(v, "a link", s.linkFields(&net.Across)...) }},
		field{"between", func(v *yamlpos.Node) { between = v }},
	)
	if between == nil {
		return
	}
	s.list(between, "between", sim.MaxDaemons, func(item *yamlpos.Node) {
		r := sim.LinkRule{Link: net.Across}
		oneWay := false
		s.fields(item, "a link", append(
			s.linkFields(&r.Link),
			field{"from", func(v *yamlpos.Node) { r.From = s.place(v) }},
			field{"to", func(v *yamlpos.Node) { r.To = s.place(v) }},
			field{"one_way", s.flag(&oneWay, "one_way")},
		)...)
		net.Links = append(net.Links, r)
		if !oneWay {
			net.Links = append(net.Links, sim.LinkRule{From: r.To, To: r.From, Link: r.Link})
		}
	})
}

func (s *scenario) linkFields(l *sim.Link) []field {
	return []field{
		{"delay", s.duration(&l.Delay, "delay", 0, time.Hour)},
		{"jitter", s.duration(&l.Jitter, "jitter", 0, time.Hour)},
		{"shape", s.word("shape", []string{"exponential", "uniform"}, func(i int) { l.Uniform = i == 1 })},
		{"loss", s.ppm(&l.Loss, "loss")},
		{"duplicate", s.ppm(&l.Duplicate, "duplicate")},
		{"reorder", s.ppm(&l.Reorder, "reorder")},
		{"corrupt", s.ppm(&l.Corrupt, "corrupt")},
		{"truncate", s.ppm(&l.Truncate, "truncate")},
		{"bandwidth", s.whole("bandwidth", 0, 1<<40, func(v uint64) { l.Bandwidth = int64(v) })},
	}
}

// place reads the name of a region or a daemon.
func (s *scenario) place(n *yamlpos.Node) string {
	if n.Kind == yamlpos.Scalar && slices.Contains(s.cfg.Places(), n.Text) {
		return n.Text
	}
	all := s.cfg.Places()
	hint := "the places are " + suggest.List(all)
	if len(all) > 20 {
		hint = "name a region, or a daemon such as " + all[len(s.cfg.Regions)]
	}
	if best := suggest.Closest(n.Text, all); best != "" {
		hint = "did you mean " + best + "?"
	}
	s.fault(n, hint, "no region or daemon %s", n.Describe())
	return ""
}

// placeList reads one place or a list of them.
func (s *scenario) placeList(out *[]string) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		*out = nil
		if n.Kind == yamlpos.Scalar {
			*out = append(*out, s.place(n))
			return
		}
		s.list(n, "places", sim.MaxDaemons, func(item *yamlpos.Node) { *out = append(*out, s.place(item)) })
	}
}

func (s *scenario) outsideRegions(n *yamlpos.Node) {
	if n.Kind != yamlpos.Map {
		s.fault(n, "write {eu: lost}", "outside is %s, not a map", n.Describe())
		return
	}
	for _, p := range n.Pairs {
		o := sim.Outside{Region: s.place(p.Key)}
		s.word("state", []string{"lost", "deaf", "mute"}, func(i int) { o.State = sim.OutsideState(i) })(p.Value)
		s.cfg.Outside = append(s.cfg.Outside, o)
	}
}

// limitsOf compiles the map of a field as a file of limits.
func (s *scenario) limitsOf(n *yamlpos.Node) *rules.Set {
	set, found := s.cfg.ParseLimits(limits.File{Name: n.Pos.File, Root: n})
	for _, d := range found {
		if d.Severity == yamlpos.Error {
			s.Add(d)
		}
	}
	return set
}

// words returns the words that scenarios use for values.
func words[T fmt.Stringer](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = v.String()
	}
	return out
}

// listOf returns a reader of a list of some of the values of a type, by their
// words. The names of the list and of an item are for messages.
func listOf[T fmt.Stringer](s *scenario, list, item string, all []T, out *[]T) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		*out = nil
		s.list(n, list, len(all), s.word(item, words(all), func(i int) { *out = append(*out, all[i]) }))
	}
}
