package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/georld/rld/internal/yamlpos"
)

// datum is a value to print: a text, a bare word, a list or a map.
type datum struct {
	text  string
	bare  bool   // text is a number or a boolean
	items []pair // of a map, or of a list, which have no keys
	form  yamlpos.Kind
}

// pair is one entry of a map, in the order of printing.
type pair struct {
	key string
	datum
	// comment is printed at the end of the line in YAML. Where unset is not
	// "", it is the effect of no value, and the whole line is a comment.
	comment, unset string
}

func textDatum(s string) datum { return datum{text: s} }

func mapDatum(items ...pair) datum { return datum{form: yamlpos.Map, items: items} }

func textsDatum(texts []string) datum {
	out := datum{form: yamlpos.List, items: make([]pair, len(texts))}
	for i, t := range texts {
		out.items[i].datum = textDatum(t)
	}
	return out
}

// mapDatumOf returns the map that a JSON text holds, in its order; an empty one
// for no text.
func mapDatumOf(text string) datum {
	if text == "" {
		return mapDatum()
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return jsonDatum(d)
}

// jsonDatum reads the next value. The text is the result of json.Marshal.
func jsonDatum(d *json.Decoder) datum {
	out := mapDatum()
	switch t, _ := d.Token(); t {
	case json.Delim('{'):
	case json.Delim('['):
		out.form = yamlpos.List
	default:
		_, boolean := t.(bool)
		_, number := t.(json.Number)
		return datum{text: fmt.Sprint(t), bare: boolean || number}
	}
	for d.More() {
		var p pair
		if out.form == yamlpos.Map {
			key, _ := d.Token()
			p.key = fmt.Sprint(key)
		}
		p.datum = jsonDatum(d)
		out.items = append(out.items, p)
	}
	_, _ = d.Token() // the closing bracket
	return out
}

// empty reports whether d is a list or a map of nothing.
func (d *datum) empty() bool { return d.form != yamlpos.Scalar && len(d.items) == 0 }

// scalar returns the text in YAML on one line, and [] or {} for an empty list
// or map.
func (d *datum) scalar() string {
	switch {
	case d.form == yamlpos.List:
		return "[]"
	case d.form == yamlpos.Map:
		return "{}"
	case d.bare || plain(d.text):
		return d.text
	}
	return quote(d.text)
}

// safe matches the texts that may need no quotes in YAML.
var safe = regexp.MustCompile(`^[A-Za-z0-9/.][A-Za-z0-9/._:@%+-]*$`)

// plain reports whether YAML 1.1 and 1.2 read s without quotes as the same
// text.
func plain(s string) bool {
	if !safe.MatchString(s) {
		return false
	}
	n, _, fault := yamlpos.Parse("", []byte(s), yamlpos.Options{MaxBytes: len(s)})
	if fault != nil || n.Kind != yamlpos.Scalar {
		return false
	}
	v, _ := n.Resolve()
	return v == s
}

// quote returns a text in double quotes, on one line, in a form that YAML and
// JSON read as this text.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r) || r > 0xffff:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
