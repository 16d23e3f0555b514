package config

import (
	"errors"
	"fmt"
	"github.com/georld/rld/limits"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxSettingsBytes bounds the settings file. It also bounds how deep its
// content can be nested.
const maxSettingsBytes = 64 << 10

// document is the settings file, kept to quote it in faults.
type document struct {
	path  string
	lines []string
}

// place is where something stands in the file, counted from 1.
type place struct{ line, column int }

// locate puts a fault at a place of the file.
func (d *document) locate(f *Fault, p place) {
	f.File, f.Line, f.Column = d.path, p.line, p.column
	if p.line >= 1 && p.line <= len(d.lines) {
		f.Quote = d.lines[p.line-1]
	}
}

func placeOf(n *yaml.Node) place { return place{max(n.Line, 1), max(n.Column, 1)} }

// file takes the settings of a file over. The error says why it cannot be
// read; what is wrong in it goes into the faults.
func (l *loader) file(path string) error {
	data, err := readRegular(path, maxSettingsBytes)
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	l.document(path, data)
	return nil
}

func (l *loader) document(path string, data []byte) {
	l.doc = document{path: path, lines: strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")}
	docs, err := parseYAML(string(data))
	if err != nil {
		l.syntax(err)
		return
	}
	var body *yaml.Node
	for _, d := range docs {
		if absent(d) {
			continue
		}
		if body != nil {
			l.faultAt(placeOf(d), "", "a second document: one file holds one set of settings")
			return
		}
		body = d
	}
	if body != nil {
		l.section("", body)
	}
}

// absent reports whether a value is nothing, ~ or null.
func absent(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// parseYAML returns the bodies of all documents. It keeps a panic of the
// library from being ours.
func parseYAML(text string) (bodies []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("this is no YAML that can be read (%v)", r)
		}
	}()
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	for {
		var doc yaml.Node
		switch err := loader.Load(&doc); {
		case errors.Is(err, io.EOF):
			return bodies, nil
		case err != nil:
			return nil, err
		}
		bodies = append(bodies, doc.Content...)
	}
}

// decodeNode fills in a struct and refuses fields that it does not have.
func decodeNode(n *yaml.Node, into any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read (%v)", r)
		}
	}()
	return n.Load(into, yaml.WithKnownFields())
}

// syntax notes what the library says of the file as a whole.
func (l *loader) syntax(err error) {
	f := &Fault{Problem: err.Error(), Hint: "check the quotes, brackets and indentation here"}
	at := place{1, 1}
	var e *yaml.LoadError
	if errors.As(err, &e) {
		f.Problem, at = e.Message, place{max(e.Mark.Line, 1), max(e.Mark.Column, 1)}
	}
	l.doc.locate(f, at)
	if indent := f.Quote[:len(f.Quote)-len(strings.TrimLeft(f.Quote, " \t"))]; strings.Contains(indent, "\t") {
		f.Problem, f.Hint = "a tab in the indentation", "indent with spaces"
	}
	l.faults = append(l.faults, f)
}

func (l *loader) faultAt(p place, field, format string, args ...any) {
	f := &Fault{Field: field, Problem: fmt.Sprintf(format, args...)}
	l.doc.locate(f, p)
	l.faults = append(l.faults, f)
}

// section takes a map of settings over; prefix is its name with a dot, or ""
// for the whole file.
func (l *loader) section(prefix string, n *yaml.Node) {
	switch {
	case absent(n):
		return // a section that holds nothing yet
	case n.Kind != yaml.MappingNode:
		what := "the file"
		if prefix != "" {
			what = strings.TrimSuffix(prefix, ".")
		}
		l.faultAt(placeOf(n), "", "%s must be a map of settings such as %s: ...", what, l.example(prefix))
		return
	}
	first := make(map[string]int) // the line of each name
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if line, twice := first[key.Value]; twice {
			l.faultAt(placeOf(key), "", "%s stands in line %d already", prefix+key.Value, line)
			continue
		}
		first[key.Value] = key.Line
		l.entry(prefix, key, n.Content[i+1])
	}
}

// example names a setting of a section.
func (l *loader) example(prefix string) string {
	for i := range l.table {
		if rest, ok := strings.CutPrefix(l.table[i].name, prefix); ok {
			first, _, _ := strings.Cut(rest, ".")
			return first
		}
	}
	return "name"
}

func (l *loader) entry(prefix string, key, value *yaml.Node) {
	at := placeOf(key)
	if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
		l.faultAt(at, "", "%q is no name of a setting", key.Value)
		return
	}
	name := prefix + key.Value
	switch f := l.field(name); {
	case f != nil:
		l.value(f, at, value)
	case l.isSection(name + "."):
		l.section(name+".", value)
	default:
		l.unknown(at, name)
	}
}

func (l *loader) isSection(prefix string) bool {
	for i := range l.table {
		if strings.HasPrefix(l.table[i].name, prefix) {
			return true
		}
	}
	return false
}

func (l *loader) unknown(at place, name string) {
	names := make([]string, len(l.table))
	for i := range l.table {
		names[i] = l.table[i].name
	}
	hint := ""
	if guess := limits.Closest(name, names); guess != "" {
		hint = fmt.Sprintf("; did you mean %s?", guess)
	}
	l.faultAt(at, "", "%s is no setting%s", name, hint)
}

// value takes one setting over, from the place of its value or, where it has
// none, of its key.
func (l *loader) value(f *field, key place, n *yaml.Node) {
	at := placeOf(n)
	if absent(n) {
		at = key
	}
	err := l.read(f, n)
	var decoded *yaml.LoadErrors
	var read nodeFaults
	switch {
	case errors.As(err, &read):
		for _, r := range read {
			l.faultAt(r.at, f.name+r.inside, "%s", r.problem)
		}
	case errors.As(err, &decoded):
		for _, e := range decoded.Errors {
			l.faultAt(place{max(e.Mark.Line, 1), max(e.Mark.Column, 1)}, f.name, "%s", unknownField(e.Message)+f.hint)
		}
	case err != nil:
		l.faultAt(at, f.name, "%s", err)
	default:
		l.origins[f.name] = Origin(fmt.Sprintf("%s:%d", l.doc.path, at.line))
		l.places[f.name] = at
		l.nodes[f.name] = n
	}
}

// unknownField rewords the library's message, which names a Go type.
func unknownField(message string) string {
	name, _, ok := strings.Cut(strings.TrimPrefix(message, "field "), " not found in type ")
	if !ok {
		return message
	}
	return fmt.Sprintf("unknown field %q", name)
}

func (l *loader) read(f *field, n *yaml.Node) error {
	if f.node != nil {
		return f.node(n)
	}
	text, err := scalar(n)
	if err != nil {
		return err
	}
	return f.set(text)
}

// scalar returns a single value as it is written.
func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Style&yaml.TaggedStyle != 0:
		return "", errors.New("anchors, aliases and tags are not read here: write the value itself")
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("is a list or a map and must be a single value")
	case absent(n):
		return "", errors.New("has no value: give one or leave the line out")
	}
	return n.Value, nil
}
