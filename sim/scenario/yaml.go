package scenario

import (
	"fmt"
	"math"
	"time"

	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/rules"
)

// maxScenarioBytes bounds a scenario file.
const maxScenarioBytes = 1 << 20

// reader reads the values of a scenario and collects its faults.
type reader struct{ yamlpos.Collector }

// field is a field of a map and the reader of its value.
type field struct {
	name string
	read func(n *yamlpos.Node)
}

// fault adds an error at a node.
func (r *reader) fault(n *yamlpos.Node, hint, format string, args ...any) {
	r.Errorf(n.Pos, hint, format, args...)
}

// faultCount returns the number of faults so far.
func (r *reader) faultCount() int { return len(r.List()) }

// fields reads a map. Its name is for messages: "a workload".
func (r *reader) fields(n *yamlpos.Node, name string, known ...field) {
	all := make([]yamlpos.Field, len(known))
	for i, f := range known {
		all[i] = yamlpos.Field{Name: f.name, Read: func(n *yamlpos.Node, _ string) bool { f.read(n); return true }}
	}
	r.Fields(n, name, all...)
}

// list calls each for every item of a list.
func (r *reader) list(n *yamlpos.Node, name string, most int, each func(n *yamlpos.Node)) {
	r.ListOf(most, "- name: value", func(item *yamlpos.Node) bool { each(item); return true })(n, name)
}

// named returns a reader that knows the name of its field.
func named(read yamlpos.Reader, name string) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) { read(n, name) }
}

func (r *reader) text(out *string, name string) func(*yamlpos.Node) { return named(r.Text(out), name) }

func (r *reader) flag(out *bool, name string) func(*yamlpos.Node) { return named(r.Bool(out), name) }

func (r *reader) duration(out *time.Duration, name string, low, high time.Duration) func(*yamlpos.Node) {
	return named(r.Duration(out, low, high), name)
}

func (r *reader) number(out *float64, name string, low, high float64) func(*yamlpos.Node) {
	return named(r.Number(out, low, high), name)
}

func (r *reader) int(out *int, name string, low, high int) func(*yamlpos.Node) {
	return named(yamlpos.Whole(&r.Collector, out, low, high), name)
}

// word reads one of a few words and calls set with its index.
func (r *reader) word(name string, words []string, set func(i int)) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		i := 0
		if yamlpos.Word(&r.Collector, &i, words)(n, name) {
			set(i)
		}
	}
}

// whole reads a whole number and calls set with it.
func (r *reader) whole(name string, low, high uint64, set func(uint64)) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		v := low
		if yamlpos.Whole(&r.Collector, &v, low, high)(n, name) {
			set(v)
		}
	}
}

// share reads a percentage of at most high as a fraction of 1.
func (r *reader) share(out *float64, name string, high float64) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		var p rules.PPM
		if !yamlpos.Percent(&r.Collector, &p, "2.5%")(n, name) {
			return
		}
		f := float64(p) / float64(rules.Whole)
		if f > high && !math.IsInf(high, 1) {
			r.Errorf(n.Pos, fmt.Sprintf("write at most %.1f%%", 100*high), "%s is %s", name, n.Text)
			return
		}
		*out = f
	}
}

// ppm reads a percentage of at most 100% as parts per million.
func (r *reader) ppm(out *rules.PPM, name string) func(*yamlpos.Node) {
	return func(n *yamlpos.Node) {
		f := -1.0
		if r.share(&f, name, 1)(n); f >= 0 {
			*out = rules.PPM(math.Round(f * float64(100*rules.Percent)))
		}
	}
}
