package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/config"
	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
	"github.com/georld/rld/limits"
)

// limits reads the files of limits as a daemon with these settings does.
func (r *Report) limits(o *Options, c *config.Limits) error {
	files, warnings, err := config.Files(o.Path, c.Names)
	r.Notes = append(r.Notes, warnings...)
	if err != nil {
		return err
	}
	options := limits.Options{MergeDomains: c.MergeDomains, ChargeDenied: c.ChargeDenied}
	_, found := limits.Parse(files, options)
	for _, d := range found {
		if d.Severity == yamlpos.Error {
			r.Faults = append(r.Faults, d)
		} else {
			r.Differences = append(r.Differences, d)
		}
	}
	for _, f := range files {
		// Each file alone, since faults of many files are cut short.
		set, _ := limits.Parse([]limits.File{f}, options)
		file := File{Name: f.Name, State: unchanged}
		if set == nil || slices.ContainsFunc(r.Faults, func(d yamlpos.Diagnostic) bool { return d.File == f.Name }) {
			file.State = refused
		} else {
			file.Rules = len(set.Rules())
			r.Differences = append(r.Differences, differences(f)...)
			for _, rule := range set.Rules() {
				if rule.Limit != nil {
					r.Limits = append(r.Limits, newLimit(rule, o))
				}
			}
		}
		r.Files = append(r.Files, file)
	}
	slices.SortStableFunc(r.Differences, func(a, b yamlpos.Diagnostic) int {
		if n := strings.Compare(a.File, b.File); n != 0 {
			return n
		}
		return a.Line - b.Line
	})
	if n := len(r.Faults); n > 0 {
		r.Stops = append(r.Stops, suggest.Plural(n, "fault")+" in files of limits: "+few(r.refusedFiles()))
	}
	return nil
}

func (r *Report) refusedFiles() []string {
	var out []string
	for _, f := range r.Files {
		if f.State == refused {
			out = append(out, f.Name)
		}
	}
	return out
}

// few lists at most five texts.
func few(all []string) string {
	const most = 5
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), more)
	}
	return strings.Join(all, ", ")
}

// differences returns what rld reads in another way than the reference in a
// file that both load, and the fields that have no effect in rld alone.
func differences(f limits.File) []yamlpos.Diagnostic {
	var c yamlpos.Collector
	root := c.Parse(f.Name, f.Data, yamlpos.Options{MaxBytes: limits.MaxFileBytes})
	if root != nil {
		descriptors(&c, root)
	}
	return c.List()
}

// descriptors looks at the descriptors below a map. A file that loads has at
// most limits.MaxDepth levels.
func descriptors(c *yamlpos.Collector, n *yamlpos.Node) {
	for _, list := range values(n, "descriptors") {
		for _, d := range list.Items {
			descriptor(c, d)
			descriptors(c, d)
		}
	}
}

func descriptor(c *yamlpos.Collector, d *yamlpos.Node) {
	key, value := scalar(d, "key"), scalar(d, "value")
	switch star := strings.IndexByte(text(value), '*'); {
	case text(value) == "" && strings.HasSuffix(text(key), "*"):
		c.Add(difference(c, key.Pos, "write key: NAME, without a value, for each name",
			"the reference matches all keys that begin with %s; in rld the * of a key stands for itself", yamlpos.Quote(strings.TrimSuffix(text(key), "*"))))
	case star >= 0 && star < len(text(value))-1:
		c.Add(difference(c, value.Pos, "", "each * stands for any text; the reference knows the one at the end alone, and compares the others"))
	}
	for _, name := range []string{"detailed_metric", "value_to_metric"} {
		if n := scalar(d, name); n != nil {
			if on, ok := n.Resolve(); ok && on == true {
				c.Add(difference(c, n.Pos, "", "%s has no effect: no text of a request becomes part of a metric; answers are the same", name))
			}
		}
	}
}

func difference(c *yamlpos.Collector, at yamlpos.Position, hint, format string, args ...any) yamlpos.Diagnostic {
	return yamlpos.Diagnostic{
		Severity: yamlpos.Note, Position: at, Hint: hint, Message: fmt.Sprintf(format, args...), Source: c.Line(at.Line),
	}
}

// values returns the values of a field of a map, also those of maps that it
// merges. Of a map of many merges some are left out.
func values(n *yamlpos.Node, name string) []*yamlpos.Node {
	var out []*yamlpos.Node
	for _, p := range n.Pairs {
		if p.Key.Text == name {
			out = append(out, p.Value)
		}
		if p.Key.IsMerge() {
			for _, m := range append([]*yamlpos.Node{p.Value}, p.Value.Items...) {
				for _, inner := range m.Pairs {
					if inner.Key.Text == name {
						out = append(out, inner.Value)
					}
				}
			}
		}
	}
	return out
}

// scalar returns the single value of a field of a map, nil for none.
func scalar(n *yamlpos.Node, name string) *yamlpos.Node {
	all := values(n, name)
	if len(all) == 0 || all[len(all)-1].Kind != yamlpos.Scalar {
		return nil
	}
	return all[len(all)-1]
}

func text(n *yamlpos.Node) string {
	if n == nil {
		return ""
	}
	return n.Text
}
