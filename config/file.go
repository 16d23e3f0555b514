package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
)

// maxSettingsBytes bounds the settings file.
const maxSettingsBytes = 64 << 10

// file applies the settings of a file. The error is that of reading it; faults
// of its content go into l.faults.
func (l *loader) file(path string) error {
	data, err := readRegular(path, maxSettingsBytes)
	if err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	l.document(path, data)
	return nil
}

func (l *loader) document(path string, data []byte) {
	if root := l.yaml.Parse(path, data, yamlpos.Options{MaxBytes: maxSettingsBytes, Kind: l.kind()}); !root.IsNull() {
		l.section("", "the file", root)
	}
	l.collect("", l.yaml.List())
}

// kind returns how a file of settings begins.
func (l *loader) kind() yamlpos.FileKind {
	var tops []string
	for i := range l.table {
		top, _, _ := strings.Cut(l.table[i].Name, ".")
		tops = append(tops, top, l.table[i].Name)
	}
	for name := range goneSettings {
		top, _, _ := strings.Cut(name, ".")
		tops = append(tops, top)
	}
	return yamlpos.FileKind{
		Name: "settings", Want: "a file of settings has names such as http: and limits: at its top; rld config print shows all", Keys: tops, Any: true,
	}
}

// collect turns diagnostics of the file into faults of a setting, "" for none.
func (l *loader) collect(name string, found yamlpos.Diagnostics) {
	for _, d := range found {
		d.Source = l.yaml.Line(d.Line)
		l.faults = append(l.faults, &Fault{Field: name, Problem: d.Message, Diagnostic: d})
	}
}

// section applies a map of settings. The prefix is the name of the section
// with a dot, or "" for the whole file.
func (l *loader) section(prefix, name string, n *yamlpos.Node) {
	if n.IsNull() {
		return
	}
	l.yaml.Each(n, name, func(key string, p yamlpos.Pair) bool {
		name := prefix + key
		if f := l.field(name); f != nil {
			l.value(f, p)
		} else if slices.ContainsFunc(l.table, func(f field) bool { return strings.HasPrefix(f.Name, name+".") }) {
			l.section(name+".", name, p.Value)
		} else {
			l.unknown(p.Key.Pos, name)
		}
		return true
	})
}

// goneSettings are former settings, and what replaces them.
var goneSettings = map[string]string{
	"insecure": "grpc.insecure, http.insecure, admin.insecure and peer.insecure each allow one listener",
}

// GoneFlags returns the errors of former flags.
func GoneFlags() map[string]string {
	const name = "insecure"
	return map[string]string{name: goneText(name, goneSettings[name])}
}

func goneText(name, instead string) string { return name + " is no setting any more: " + instead }

func (l *loader) unknown(at yamlpos.Position, name string) {
	names := make([]string, len(l.table))
	for i := range l.table {
		names[i] = l.table[i].Name
	}
	if instead, is := goneSettings[name]; is {
		l.yaml.Errorf(at, "", "%s", goneText(name, instead))
		return
	}
	l.yaml.Errorf(at, suggest.Hint(name, names, ""), "%s is no setting", name)
}

// value applies one setting. Its position is that of its value, or of its key
// where it has no value.
func (l *loader) value(f *field, p yamlpos.Pair) {
	at := p.Value.Pos
	if p.Value.IsNull() {
		at = p.Key.Pos
	}
	var c yamlpos.Collector
	if f.read != nil {
		f.read(&c)(p.Value, "the value")
	} else if text, err := scalar(p.Value); err != nil {
		c.Errorf(at, "", "%s", err)
	} else if err := f.set(text); err != nil {
		c.Errorf(at, "", "%s", err)
	}
	l.collect(f.Name, c.List())
	if !c.Failed() {
		l.origins[f.Name] = Origin(fmt.Sprintf("%s:%d", at.File, at.Line))
		l.nodes[f.Name] = p
	}
}

// texts returns a reader of a list of single values.
func texts(c *yamlpos.Collector, out *[]string, example string) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		var list []string
		ok := c.ListOf(maxSettingsBytes, example, func(item *yamlpos.Node) bool {
			return settingOf(c, func(s string) error { list = append(list, s); return nil })(item, name)
		})(n, name)
		*out = list
		return ok
	}
}

// settingOf returns a reader that passes a single value to set.
func settingOf(c *yamlpos.Collector, set func(string) error) yamlpos.Reader {
	return func(n *yamlpos.Node, name string) bool {
		text, err := scalar(n)
		if err == nil {
			err = set(text)
		}
		if err != nil {
			c.Errorf(n.Pos, "", "%s: %s", name, err)
		}
		return err == nil
	}
}

// scalar returns a single value in its spelling in the file.
func scalar(n *yamlpos.Node) (string, error) {
	switch {
	case n.Kind != yamlpos.Scalar:
		return "", errors.New("is a list or a map and must be a single value")
	case n.Anchored || n.Tag != "":
		return "", errors.New("anchors, aliases and tags are not read here: write the value itself")
	case n.IsNull():
		return "", errors.New("has no value: give one or leave the line out")
	}
	return n.Text, nil
}
