// Package shrink makes a run that fails smaller: it drops faults, rules,
// workloads, regions, daemons, options and time for as long as the run fails in
// the same way. Its unit is the scenario file, so the result can be read,
// edited and replayed. The search is delta debugging over the tree of the file
// (Zeller and Hildebrandt 2002; Misherghi and Su 2006).
package shrink

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/sim"
	"github.com/georld/rld/sim/audit"
	"github.com/georld/rld/sim/scenario"
)

// Shrunk is the smallest run that a search found.
type Shrunk struct {
	Way    string // in which it fails: an auditor, a crash, or no agreement
	File   []byte // the scenario
	Config *sim.Config
	Runs   int // that the search played
}

// seeds is the number of other seeds that a smaller run is tried with. A
// dropped part draws no random numbers any more, so all other draws change.
const seeds = 3

// Shrink returns the smallest run that it finds to fail as a scenario does, nil
// if the scenario does not fail. It asks done before each run, and ends the
// search if so. The error is why the scenario cannot be read.
func Shrink(file []byte, done func() bool) (*Shrunk, error) {
	way, settle := "", time.Duration(0)
	s := &search{done: done, seeds: seeds, fails: func(c *sim.Config) bool {
		ways := waysOf(sim.Run(c, sim.Options{Auditors: audit.All}))
		if way == "" && len(ways) > 0 {
			way, settle = ways[0], c.Settle
		}
		if way == disagreement && c.Settle < settle {
			return false // too little time is a cause of its own
		}
		return slices.Contains(ways, way)
	}}
	if err := s.run(file); err != nil || s.file == nil {
		return nil, err
	}
	return &Shrunk{Way: way, File: s.file, Config: s.cfg, Runs: s.runs}, nil
}

// disagreement is the way of a run that ends before its daemons agree.
const disagreement = "daemons that do not agree"

// number finds what differs between two crashes of one cause.
var number = regexp.MustCompile("[0-9]+")

// waysOf names the ways in which a run failed, none for a run that found
// nothing.
func waysOf(r *sim.Result, err error) []string {
	if crash, ok := errors.AsType[*sim.CrashError](err); ok {
		return []string{"a crash: " + number.ReplaceAllString(fmt.Sprint(crash.Value), "N")}
	}
	if err != nil {
		return []string{err.Error()}
	}
	ways := r.Violated()
	if r.Pending != "" {
		ways = append(ways, disagreement)
	}
	return ways
}

// search is the state of a search.
type search struct {
	fails  func(*sim.Config) bool
	done   func() bool
	seeds  int
	runs   int
	better bool // than before the round

	// The smallest run so far.
	file []byte
	root *yamlpos.Node
	cfg  *sim.Config
}

// run shrinks a scenario. The file stays nil if the scenario does not fail.
func (s *search) run(file []byte) error {
	cfg, err := scenario.Parse("scenario", file)
	if err != nil {
		return err
	}
	root, _, _ := yamlpos.Parse("scenario", file, yamlpos.Options{MaxBytes: len(file)})
	if get(root, "regions") == nil {
		regions := yamlpos.NewMap()
		for _, r := range cfg.Regions {
			regions = with(regions, r.Name, yamlpos.TextNode(strconv.Itoa(r.Daemons)))
		}
		root = with(root, "regions", regions)
	}
	for s.better = s.play(root); s.better && !s.done(); {
		s.better = false
		s.cutTime()
		s.latest()
		s.lists(nil)
		s.few()
		s.regions()
		s.maps(nil)
	}
	if s.root != nil {
		s.round(nil)
	}
	return nil
}

// try plays a smaller run with its seed, and with some others.
func (s *search) try(root *yamlpos.Node) bool {
	if s.play(root) {
		return true
	}
	for seed := range s.seeds {
		if s.play(with(root, "seed", yamlpos.TextNode(strconv.Itoa(seed+1)))) {
			return true
		}
	}
	return false
}

// play plays a run, and keeps it if it fails.
func (s *search) play(root *yamlpos.Node) bool {
	if s.done() {
		return false
	}
	file := yamlpos.Format(root)
	if bytes.Equal(file, s.file) {
		return false // nothing is smaller
	}
	cfg, err := scenario.Parse("shrunk.yaml", file)
	if err != nil {
		return false
	}
	s.runs++
	if !s.fails(cfg) {
		return false
	}
	s.file, s.root, s.cfg, s.better = file, root, cfg, true
	return true
}

// cutTime ends the run earlier, and drops the faults after that.
func (s *search) cutTime() {
	whole := s.cfg.Duration
	for eighths := time.Duration(1); eighths < 8; eighths++ {
		duration := (whole * eighths / 8).Truncate(time.Millisecond)
		root := with(s.root, "duration", yamlpos.TextNode(duration.String()))
		if faults := get(root, "faults"); faults != nil {
			kept := yamlpos.NewList()
			for _, item := range faults.Items {
				if at, err := time.ParseDuration(textOf(item, "at")); err != nil || at < duration {
					kept.Items = append(kept.Items, item)
				}
			}
			root = with(root, "faults", kept)
		}
		if s.try(root) {
			return
		}
	}
}

// latest begins a run with limits that a fault brings into force.
func (s *search) latest() {
	faults := get(s.root, "faults")
	if faults == nil {
		return
	}
	for i, item := range faults.Items {
		if limits := get(item, "limits"); limits != nil {
			rest := yamlpos.NewList(slices.Delete(slices.Clone(faults.Items), i, i+1)...)
			if s.try(with(with(s.root, "faults", rest), "limits", limits)) {
				return // the next round tries the rest
			}
		}
	}
}

// longText is how long a time is in a scenario, in characters, at most.
const longText = 6

// round makes the times below a path short to read.
func (s *search) round(at path) {
	n := nodeAt(s.root, at)
	for i := range n.Pairs {
		s.round(at.to(i))
	}
	for i := range n.Items {
		s.round(at.to(i))
	}
	d, err := time.ParseDuration(n.Text)
	if n.Kind != yamlpos.Scalar || err != nil || len(n.Text) <= longText {
		return
	}
	for unit := 1000 * time.Second; unit > 1; unit /= 10 {
		if short := d.Round(unit); short != 0 && s.play(replace(s.root, at, yamlpos.TextNode(short.String()))) {
			return
		}
	}
}

// lists drops items of the lists below a path: many at once, then one by one.
func (s *search) lists(at path) {
	n := nodeAt(s.root, at)
	switch n.Kind {
	case yamlpos.Map:
		for i := range n.Pairs {
			s.lists(at.to(i))
		}
	case yamlpos.List:
		for size := len(n.Items); size > 0; size /= 2 {
			for i := 0; i < len(nodeAt(s.root, at).Items); {
				end := min(i+size, len(nodeAt(s.root, at).Items))
				smaller := yamlpos.NewList(slices.Delete(slices.Clone(nodeAt(s.root, at).Items), i, end)...)
				if !s.try(replace(s.root, at, smaller)) {
					i = end
				}
			}
		}
		for i := 0; i < len(nodeAt(s.root, at).Items); i++ {
			s.lists(at.to(i))
		}
	case yamlpos.Scalar:
	}
}

// maps drops the fields of maps below a path, the last ones first.
func (s *search) maps(at path) {
	n := nodeAt(s.root, at)
	for i := len(n.Pairs) - 1; i >= 0; i-- {
		if len(at) == 0 && slices.Contains([]string{"version", "seed", "duration", "regions"}, n.Pairs[i].Key.Text) {
			continue // they have no default that is simpler
		}
		pairs := slices.Delete(slices.Clone(nodeAt(s.root, at).Pairs), i, i+1)
		if !s.try(replace(s.root, at, yamlpos.NewMap(pairs...))) {
			s.maps(at.to(i))
		}
	}
	for i := range n.Items {
		s.maps(at.to(i))
	}
}

// few leaves the largest region alone, with one to three daemons, and tries it
// with as many calls as before for each of them, too.
func (s *search) few() {
	all := s.cfg.Daemons()
	r := slices.MaxFunc(s.cfg.Regions, func(a, b sim.Region) int { return a.Daemons - b.Daemons })
	for n := 1; n <= 3 && n < s.cfg.Daemons(); n++ {
		root := s.root
		for _, o := range s.cfg.Regions {
			if o.Name != r.Name {
				root = without(root, o.Name)
			}
		}
		for k := n; k < r.Daemons; k++ {
			root = without(root, r.Daemon(k))
		}
		only := with(yamlpos.NewMap(), r.Name, yamlpos.TextNode(strconv.Itoa(n)))
		root = with(root, "regions", only)
		if s.try(root) || s.try(busier(root, all/n)) {
			return
		}
	}
}

// busier returns a scenario whose clients call more often by a factor.
func busier(root *yamlpos.Node, factor int) *yamlpos.Node {
	at := slices.IndexFunc(root.Pairs, func(p yamlpos.Pair) bool { return p.Key.Text == "workloads" })
	for i := 0; at >= 0 && i < len(root.Pairs[at].Value.Items); i++ {
		item := root.Pairs[at].Value.Items[i]
		if rate, err := strconv.ParseFloat(textOf(item, "rate"), 64); err == nil {
			more := yamlpos.TextNode(strconv.FormatFloat(rate*float64(factor), 'f', -1, 64))
			root = replace(root, path{at, i}, with(item, "rate", more))
		}
	}
	return root
}

// regions drops regions and daemons.
func (s *search) regions() {
	for i := len(s.cfg.Regions) - 1; i >= 0; i-- {
		r := s.cfg.Regions[i]
		if len(s.cfg.Regions) > 1 && s.try(without(s.root, r.Name)) {
			continue
		}
		for _, n := range []int{1, r.Daemons / 2, r.Daemons - 1} {
			if n < 1 || n >= s.cfg.Regions[i].Daemons {
				continue
			}
			root := s.root
			for k := n; k < r.Daemons; k++ {
				root = without(root, r.Daemon(k))
			}
			count := yamlpos.TextNode(strconv.Itoa(n))
			if s.try(with(root, "regions", with(get(root, "regions"), r.Name, count))) {
				break
			}
		}
	}
}

// without returns a scenario that does not name a region and its daemons, or a
// daemon. Fields and faults of nothing else go with it.
func without(root *yamlpos.Node, place string) *yamlpos.Node {
	out := yamlpos.NewMap()
	for _, p := range root.Pairs {
		if v := prune(p.Value, place); v != nil {
			out.Pairs = append(out.Pairs, yamlpos.Pair{Key: p.Key, Value: v})
		}
	}
	return out
}

// prune returns a part of a scenario without a place, nil for nothing.
func prune(n *yamlpos.Node, place string) *yamlpos.Node {
	gone := func(text string) bool { return text == place || strings.HasPrefix(text, place+"-") }
	switch n.Kind {
	case yamlpos.Map:
		out := yamlpos.NewMap()
		for _, p := range n.Pairs {
			if gone(p.Key.Text) {
				continue
			}
			v := prune(p.Value, place)
			if v == nil {
				return nil
			}
			out.Pairs = append(out.Pairs, yamlpos.Pair{Key: p.Key, Value: v})
		}
		if len(out.Pairs) == 0 && len(n.Pairs) > 0 {
			return nil
		}
		return out
	case yamlpos.List:
		out := yamlpos.NewList()
		for _, item := range n.Items {
			if v := prune(item, place); v != nil {
				out.Items = append(out.Items, v)
			}
		}
		if len(out.Items) == 0 && len(n.Items) > 0 {
			return nil
		}
		return out
	case yamlpos.Scalar:
		if gone(n.Text) {
			return nil
		}
	}
	return n
}
