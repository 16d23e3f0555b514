package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// Bounds on a scenario.
const (
	maxScenarioBytes = 1 << 20
	maxScenarioDepth = 32
	maxProblems      = 20
)

// reader reads values of a YAML document and notes what is wrong with them,
// where, and what would be right.
type reader struct {
	file  string
	lines []string
	found limits.Diagnostics
}

// err renders what was found, in the order of the file; nil for nothing.
func (r *reader) err() error {
	slices.SortStableFunc(r.found, func(a, b limits.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.found.Err()
}

// field is a name of a map and who reads its value.
type field struct {
	name string
	read func(n *yaml.Node)
}

// document reads the one document of a scenario, nil after a fault.
func (r *reader) document(data []byte) (root *yaml.Node) {
	start := &yaml.Node{Line: 1, Column: 1}
	defer func() { // for hostile input that the library is not ready for
		if p := recover(); p != nil {
			r.fault(start, "write it in a plainer form", "the YAML reader gave up on this file: %v", p)
			root = nil
		}
	}()
	if len(data) > maxScenarioBytes {
		r.fault(start, fmt.Sprintf("at most %d", maxScenarioBytes), "%d bytes", len(data))
		return nil
	}
	l, err := yaml.NewLoader(strings.NewReader(string(data)))
	if err != nil {
		r.fault(start, "", "%v", err)
		return nil
	}
	var doc yaml.Node
	switch err := l.Load(&doc); {
	case errors.Is(err, io.EOF):
		r.fault(start, "begin it with duration, limits and workloads", "the file is empty")
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	root = &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		root = doc.Content[0]
	}
	if err := l.Load(&yaml.Node{}); !errors.Is(err, io.EOF) {
		r.fault(root, "put each scenario in a file of its own", "a second document, or a fault behind the first")
		return nil
	}
	if deep(root, 0) {
		r.fault(root, "flatten it", "nested more than %d levels deep", maxScenarioDepth)
		return nil
	}
	return root
}

// deep reports whether a document nests deeper than anything here needs.
// Aliases are looked through, so one that is inside its own anchor is too.
func deep(n *yaml.Node, depth int) bool {
	if depth > maxScenarioDepth {
		return true
	}
	if n.Kind == yaml.AliasNode {
		return deep(n.Alias, depth+1)
	}
	for _, c := range n.Content {
		if deep(c, depth+1) {
			return true
		}
	}
	return false
}

func (r *reader) syntax(err error) {
	at, message := &yaml.Node{Line: 1, Column: 1}, err.Error()
	if load := (*yaml.LoadError)(nil); errors.As(err, &load) {
		message = load.Message
		if load.Mark.Line > 0 {
			at.Line, at.Column = load.Mark.Line, max(1, load.Mark.Column)
		}
	}
	r.fault(at, "check the quotes, brackets and indentation here", "%s", message)
}

// fault notes what is wrong at a node and what would be right.
func (r *reader) fault(n *yaml.Node, hint, format string, args ...any) {
	if len(r.found) >= maxProblems {
		return
	}
	d := limits.Diagnostic{
		Position: rules.Position{File: r.file, Line: n.Line, Column: n.Column},
		Message:  fmt.Sprintf(format, args...), Hint: hint,
	}
	if n.Line >= 1 && n.Line <= len(r.lines) {
		d.Source = strings.TrimRight(r.lines[n.Line-1], "\r")
	}
	r.found = append(r.found, d)
}

// fields reads a map. where names it in messages: "a workload".
func (r *reader) fields(n *yaml.Node, where string, known ...field) {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		r.fault(n, "write fields as name: value", "%s is %s, not a map", where, describe(n))
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if seen[key.Value] {
			r.fault(key, "keep one", "%s is given twice", key.Value)
			continue
		}
		seen[key.Value] = true
		r.field(key, value, where, known)
	}
}

func (r *reader) field(key, value *yaml.Node, where string, known []field) {
	names := make([]string, 0, len(known))
	for _, f := range known {
		if f.name == key.Value {
			f.read(target(value))
			return
		}
		names = append(names, f.name)
	}
	hint := "the fields of " + where + " are " + join(names)
	if best := limits.Closest(key.Value, names); best != "" {
		hint = "did you mean " + best + "?"
	}
	r.fault(key, hint, "unknown field %s", strconv.Quote(key.Value))
}

// list calls each for every item of a list.
func (r *reader) list(n *yaml.Node, what string, most int, each func(n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, "write each as - name: value", "%s is %s, not a list", what, describe(n))
		return
	}
	if len(n.Content) > most {
		r.fault(n, fmt.Sprintf("at most %d", most), "%s has %d entries", what, len(n.Content))
		return
	}
	for _, item := range n.Content {
		each(target(item))
	}
}

// text reads a text.
func (r *reader) text(out *string, what string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode {
			r.fault(n, "write some text", "%s is %s", what, describe(n))
			return
		}
		*out = n.Value
	}
}

// word reads one of a few words and calls set with its index.
func (r *reader) word(what string, words []string, set func(i int)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		for i, w := range words {
			if n.Kind == yaml.ScalarNode && n.Value == w {
				set(i)
				return
			}
		}
		hint := "it is one of " + join(words)
		if best := limits.Closest(n.Value, words); best != "" {
			hint = "did you mean " + best + "?"
		}
		r.fault(n, hint, "unknown %s %s", what, describe(n))
	}
}

// duration reads a time such as 500ms or 1m30s.
func (r *reader) duration(out *time.Duration, what string, low, high time.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			r.fault(n, "write a time with its unit: 500ms, 10s, 1m30s", "%s is %s", what, describe(n))
			return
		}
		if d < low || d > high {
			r.fault(n, fmt.Sprintf("it is %v to %v", low, high), "%s is %v", what, d)
			return
		}
		*out = d
	}
}

// number reads a number.
func (r *reader) number(out *float64, what string, low, high float64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		f, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil || !(f >= low && f <= high) {
			r.fault(n, "write a number from "+plain(low)+" to "+plain(high), "%s is %s", what, describe(n))
			return
		}
		*out = f
	}
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// whole reads a whole number.
func (r *reader) whole(what string, low, high uint64, set func(uint64)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		v, err := strconv.ParseUint(n.Value, 10, 64)
		if n.Kind != yaml.ScalarNode || err != nil || v < low || v > high {
			r.fault(n, fmt.Sprintf("write a whole number from %d to %d", low, high), "%s is %s", what, describe(n))
			return
		}
		set(v)
	}
}

// int reads a whole number that is an int.
func (r *reader) int(out *int, what string, low, high int) func(*yaml.Node) {
	return r.whole(what, uint64(low), uint64(high), func(v uint64) { *out = int(v) })
}

// share reads a percentage as a fraction of 1.
func (r *reader) share(out *float64, what string, high float64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		digits, percent := strings.CutSuffix(n.Value, "%")
		f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if n.Kind != yaml.ScalarNode || !percent || err != nil || !(f >= 0 && f <= 100*high) {
			hint := "write a percentage, 0% or more"
			if !math.IsInf(high, 1) {
				hint = fmt.Sprintf("write a percentage from 0%% to %v%%", 100*high)
			}
			r.fault(n, hint, "%s is %s", what, describe(n))
			return
		}
		*out = f / 100
	}
}

// ppm reads a percentage as parts per million.
func (r *reader) ppm(out *rules.PPM, what string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		f := -1.0
		if r.share(&f, what, 1)(n); f >= 0 {
			*out = ppm(f)
		}
	}
}

// flag reads true or false.
func (r *reader) flag(out *bool, what string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Value != "true" && n.Value != "false" {
			r.fault(n, "write true or false", "%s is %s", what, describe(n))
			return
		}
		*out = n.Value == "true"
	}
}

// target is the node that an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// describe names a value for a message.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Value == "" {
		return "empty"
	}
	if len(n.Value) > 60 {
		return strconv.Quote(n.Value[:60]) + "..."
	}
	return strconv.Quote(n.Value)
}

// join lists words: "a, b and c".
func join(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
