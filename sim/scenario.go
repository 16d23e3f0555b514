package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/georld/rld/hlc"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// scenario is a scenario that is being read: fields that depend on others are
// read after them, whatever their order in the file.
type scenario struct {
	reader
	root *yaml.Node
	cfg  Config

	limits, next     *rules.Set
	links, workloads *yaml.Node
	faults, outside  *yaml.Node
	rightsNode       *yaml.Node
	limitsNode       *yaml.Node
	nextNode         *yaml.Node
}

// ParseScenario reads a scenario: the YAML of docs/simulation.md. What a field
// does not say is as in Default. The error renders every fault with file,
// line, column and what would be right.
func ParseScenario(file string, data []byte) (*Config, error) {
	s := scenario{reader: reader{file: file, lines: strings.Split(string(data), "\n")}, cfg: Default()}
	s.cfg.Name, _, _ = strings.Cut(file[strings.LastIndexByte(file, '/')+1:], ".")
	if s.root = s.document(data); s.root != nil {
		s.read()
	}
	if err := s.err(); err != nil {
		return nil, err
	}
	if err := s.cfg.Validate(); err != nil {
		s.fault(s.root, "", "%v", err)
		return nil, s.err()
	}
	return &s.cfg, nil
}

func (s *scenario) read() {
	c := &s.cfg
	later := func(n **yaml.Node) func(*yaml.Node) { return func(v *yaml.Node) { *n = v } }
	s.fields(
		s.root, "a scenario",
		field{"name", s.text(&c.Name, "name")},
		field{"title", s.text(&c.Title, "title")},
		field{"description", s.text(&c.Description, "description")},
		field{"seed", s.whole("seed", 0, math.MaxUint64, func(v uint64) { c.Seed = v })},
		field{"duration", s.duration(&c.Duration, "duration", time.Millisecond, MaxDuration)},
		field{"settle", s.duration(&c.Settle, "settle", 0, MaxDuration)},
		field{"regions", s.regions},
		field{"shards", s.int(&c.Shards, "shards", 1, node.MaxShards)},
		field{"max_keys", s.int(&c.Node.MaxKeys, "max_keys", 1, 100_000_000)},
		field{"naive", s.flag(&c.Node.Naive, "naive")},
		field{"policy", s.word("policy", policyNames[:], func(i int) { c.Policy = Policy(i) })},
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
		s.limits = s.limitsOf("limits", s.limitsNode)
	}
	if s.nextNode != nil {
		s.next = s.limitsOf("next_limits", s.nextNode)
	}
	if len(s.found) > 0 {
		return // what follows refers to what was read so far
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
	s.list(s.workloads, "workloads", MaxWorkloads, s.workload)
	if s.faults != nil {
		s.list(s.faults, "faults", MaxFaults, s.faultItem)
	}
	if s.outside != nil {
		s.outsideRegions(s.outside)
	}
}

func (s *scenario) regions(n *yaml.Node) {
	s.cfg.Regions = nil
	if n.Kind != yaml.MappingNode {
		s.fault(n, "write {eu: 3, us: 3}: names and how many daemons", "regions is %s, not a map", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		r := Region{Name: key.Value}
		if slices.ContainsFunc(s.cfg.Regions, func(o Region) bool { return o.Name == r.Name }) {
			s.fault(key, "keep one", "region %s is given twice", r.Name)
		}
		s.int(&r.Daemons, "the number of daemons of "+r.Name, 1, MaxDaemons)(target(n.Content[i+1]))
		s.cfg.Regions = append(s.cfg.Regions, r)
	}
	if k := len(s.cfg.Regions); k < 1 || k > MaxRegions {
		s.fault(n, fmt.Sprintf("1 to %d", MaxRegions), "%d regions", k)
	}
}

func (s *scenario) clock(n *yaml.Node) {
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

func (s *scenario) gossipFields(n *yaml.Node) {
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

func (s *scenario) members(n *yaml.Node) {
	m := &s.cfg.Members
	s.fields(
		n, "members",
		field{"join", s.duration(&m.Join, "join", 0, time.Hour)},
		field{"leave", s.duration(&m.Leave, "leave", 0, time.Hour)},
		field{"spread", s.duration(&m.Spread, "spread", 0, time.Hour)},
	)
}

func (s *scenario) network(n *yaml.Node) {
	net := &s.cfg.Network
	var between *yaml.Node
	s.fields(
		n, "links",
		field{"region", func(v *yaml.Node) { s.fields(v, "a link", s.linkFields(&net.Region)...) }},
		field{"across", func(v *yaml.Node) { s.fields(v, "a link", s.linkFields(&net.Across)...) }},
		field{"between", func(v *yaml.Node) { between = v }},
	)
	if between == nil {
		return
	}
	s.list(between, "between", MaxDaemons, func(item *yaml.Node) {
		r := LinkRule{Link: net.Across}
		oneWay := false
		s.fields(item, "a link", append(
			s.linkFields(&r.Link),
			field{"from", func(v *yaml.Node) { r.From = s.place(v) }},
			field{"to", func(v *yaml.Node) { r.To = s.place(v) }},
			field{"one_way", s.flag(&oneWay, "one_way")},
		)...)
		net.Links = append(net.Links, r)
		if !oneWay {
			net.Links = append(net.Links, LinkRule{From: r.To, To: r.From, Link: r.Link})
		}
	})
}

func (s *scenario) linkFields(l *Link) []field {
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
func (s *scenario) place(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && s.cfg.knows(n.Value) {
		return n.Value
	}
	all := s.cfg.places()
	hint := "the places are " + join(all)
	if len(all) > 20 {
		hint = "name a region, or a daemon such as " + daemonName(s.cfg.Regions[0].Name, 0)
	}
	if best := limits.Closest(n.Value, all); best != "" {
		hint = "did you mean " + best + "?"
	}
	s.fault(n, hint, "no region or daemon %s", describe(n))
	return ""
}

// placeList reads one place or a list of them.
func (s *scenario) placeList(out *[]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*out = nil
		if n.Kind == yaml.ScalarNode {
			*out = append(*out, s.place(n))
			return
		}
		s.list(n, "places", MaxDaemons, func(item *yaml.Node) { *out = append(*out, s.place(item)) })
	}
}

func (s *scenario) outsideRegions(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		s.fault(n, "write {eu: lost}", "outside is %s, not a map", describe(n))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		o := Outside{Region: s.place(n.Content[i])}
		state := s.word("state", outsideWords, func(i int) { o.State = OutsideState(i) })
		state(target(n.Content[i+1]))
		s.cfg.Outside = append(s.cfg.Outside, o)
	}
}

// limitsOf compiles the part of the file below a field as a file of limits.
// The lines before it are left empty, so that positions stay true.
func (s *scenario) limitsOf(name string, n *yaml.Node) *rules.Set {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle != 0 {
		s.fault(n, "write domain: and descriptors: below it, indented", "%s is not a map over several lines", name)
		return nil
	}
	first, end := n.Line, len(s.lines)+1
	for i := 0; i+1 < len(s.root.Content); i += 2 {
		if line := s.root.Content[i].Line; line > first {
			end = min(end, line)
		}
	}
	text := strings.Repeat("\n", first-1) + strings.Join(s.lines[first-1:end-1], "\n") + "\n"
	set, diags := s.cfg.parseLimits(s.file, []byte(text))
	for _, d := range diags {
		if d.Severity == limits.Error {
			s.found = append(s.found, d)
		}
	}
	return set
}
