package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/georld/rld/internal/yamlpos"
)

// PrintOptions selects the output of Print.
type PrintOptions struct {
	// Effective shows all settings, not only those that differ from their
	// default.
	Effective bool
	// Origins adds the source of each setting. JSON is then a map of
	// {value, origin} by name, which a daemon cannot read.
	Origins bool
	// JSON selects JSON, which leaves out settings without a value.
	JSON bool
}

// Print returns the settings as a settings file: a daemon with this file and no
// other source has the same settings. A setting without a value, such as a path
// that is not given, is a comment in YAML. Secrets are in files of their own,
// and only their paths are printed.
//
// It is an error if a value is not UTF-8.
func (l *Loaded) Print(o PrintOptions) (string, error) {
	c := l.Config
	base := Default()
	usual := fields(&base)
	root := mapDatum()
	for i, f := range fields(&c) {
		if !o.Effective && f.get() == usual[i].get() {
			continue
		}
		if s := f.get(); !utf8.ValidString(s) {
			return "", fmt.Errorf("%s: %q is not UTF-8, which a settings file must be", f.Name, s)
		}
		p := f.pair()
		origin := l.Origin(f.Name)
		switch {
		case o.JSON && p.unset != "":
		case o.JSON && o.Origins:
			root.items = append(root.items, pair{key: f.Name, datum: mapDatum(
				pair{key: "value", datum: p.datum}, pair{key: "origin", datum: textDatum(origin.line())})})
		default:
			if o.Origins {
				p.comment = origin.line()
			}
			root.add(strings.Split(f.Name, "."), p)
		}
	}
	if o.JSON {
		return root.json(0) + "\n", nil
	}
	if root.empty() {
		return "# every setting has its default\n", nil
	}
	return root.yaml(), nil
}

// pair returns the setting under its whole name.
func (f *field) pair() pair {
	p := pair{key: f.Name}
	switch text := f.get(); {
	case f.datum != nil:
		p.datum = f.datum()
	case text == "" && f.without != "":
		p.unset = f.without
	default:
		p.datum = datum{text: text, bare: f.Kind == "bool" || f.Kind == "int" || f.Kind == "ratio"}
	}
	return p
}

// line returns the origin for the end of a line. A path in it may contain any
// character.
func (o Origin) line() string {
	s := strings.ToValidUTF8(string(o), "?")
	if q := quote(s); len(q) != len(s)+2 {
		return q
	}
	return s
}

// add puts a setting under its sections.
func (d *datum) add(path []string, p pair) {
	p.key = path[0]
	if len(path) == 1 {
		d.items = append(d.items, p)
		return
	}
	if n := len(d.items); n == 0 || d.items[n-1].key != path[0] {
		d.items = append(d.items, pair{key: path[0], datum: mapDatum()})
	}
	d.items[len(d.items)-1].add(path[1:], p)
}

// yamlLine is one line of YAML and the comment at its end.
type yamlLine struct{ text, comment string }

func (d *datum) yaml() string {
	var lines []yamlLine
	d.lines("", &lines)
	// Comments are aligned, except at very long lines.
	const widest = 60
	column := 0
	for _, l := range lines {
		if n := utf8.RuneCountInString(l.text); l.comment != "" && n <= widest {
			column = max(column, n)
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		if l.comment != "" {
			fmt.Fprintf(&b, "%*s# %s", max(0, column-utf8.RuneCountInString(l.text))+2, "", l.comment)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// lines appends the lines of a list or a map, each with the indent.
func (d *datum) lines(indent string, out *[]yamlLine) {
	for i := range d.items {
		p, head := &d.items[i], indent+"-"
		if d.form == yamlpos.Map {
			head = indent + (&datum{text: p.key}).scalar() + ":"
		}
		switch {
		case p.unset != "":
			*out = append(*out, yamlLine{indent + "# " + p.key + ": (" + p.unset + ")", p.comment})
		case p.form == yamlpos.Scalar || p.empty():
			*out = append(*out, yamlLine{head + " " + p.scalar(), p.comment})
		case d.form == yamlpos.Map:
			*out = append(*out, yamlLine{head, p.comment})
			p.lines(indent+"  ", out)
		default:
			first := len(*out)
			p.lines(indent+"  ", out)
			(*out)[first].text = head + " " + strings.TrimPrefix((*out)[first].text, indent+"  ")
		}
	}
}

// json returns d as JSON, its lines after the first indented by depth.
func (d *datum) json(depth int) string {
	var items []string
	opening, closing := "[", "]"
	switch {
	case d.form == yamlpos.Scalar && d.bare:
		return d.text
	case d.form == yamlpos.Scalar:
		return quote(d.text)
	case d.form == yamlpos.Map:
		opening, closing = "{", "}"
	}
	for _, p := range d.items {
		text := p.json(depth + 1)
		if d.form == yamlpos.Map {
			text = quote(p.key) + ": " + text
		}
		items = append(items, text)
	}
	if len(items) == 0 {
		return opening + closing
	}
	indent := "\n" + strings.Repeat("  ", depth)
	return opening + indent + "  " + strings.Join(items, ","+indent+"  ") + indent + closing
}
