package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// datum is a value as it is printed: a text, a bare word, a list or a map.
type datum struct {
	text  string
	bare  bool // text is a number or a truth value
	list  []datum
	pairs []pair
	form  datumForm
}

type datumForm int

const (
	single datumForm = iota
	sequence
	mapped
)

// pair is one entry of a map, in the order of printing.
type pair struct {
	key string
	datum
	// comment stands at the end of the line in YAML. Where unset is not "",
	// it says what holds without a value, and the whole line is a comment.
	comment, unset string
}

func textDatum(s string) datum { return datum{text: s} }

func listDatum(list ...datum) datum { return datum{form: sequence, list: list} }

func mapDatum(pairs ...pair) datum { return datum{form: mapped, pairs: pairs} }

func textsDatum(texts []string) datum {
	list := make([]datum, len(texts))
	for i, t := range texts {
		list[i] = textDatum(t)
	}
	return listDatum(list...)
}

// empty reports whether d is a list or a map of nothing.
func (d *datum) empty() bool { return d.form != single && len(d.list) == 0 && len(d.pairs) == 0 }

// scalar returns the text as YAML has it on one line, [] or {} for what is
// empty.
func (d *datum) scalar() string {
	switch {
	case d.form == sequence:
		return "[]"
	case d.form == mapped:
		return "{}"
	case d.bare || plain(d.text):
		return d.text
	}
	return quote(d.text)
}

// safe is what may stand in YAML without quotes if it is not taken for
// something else.
var safe = regexp.MustCompile(`^[A-Za-z0-9/.][A-Za-z0-9/._:@%+-]*$`)

// truth is what YAML 1.1, which other tools still read, takes for a truth value.
var truth = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off)$`)

// plain reports whether YAML reads s without quotes as this very text.
func plain(s string) bool {
	if !safe.MatchString(s) || truth.MatchString(s) {
		return false
	}
	docs, err := parseYAML(s)
	return err == nil && len(docs) == 1 && docs[0].Value == s && docs[0].ShortTag() == "!!str"
}

// quote puts a text into double quotes so that both YAML and JSON read it as
// it is, on one line.
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

// unwritable returns a text in d that is not UTF-8, which YAML and JSON cannot
// hold.
func (d *datum) unwritable() (string, bool) {
	if !utf8.ValidString(d.text) {
		return d.text, true
	}
	for i := range d.list {
		if s, bad := d.list[i].unwritable(); bad {
			return s, true
		}
	}
	for i := range d.pairs {
		if s, bad := d.pairs[i].unwritable(); bad {
			return s, true
		}
	}
	return "", false
}
