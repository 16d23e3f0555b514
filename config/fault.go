package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/limits"
	"github.com/georld/rld/rules"
)

// Origin says where a value came from, for people: "default",
// "rld.yaml:12", "env RLD_MAX_KEYS", "flag --max-keys".
type Origin string

// OriginDefault is the origin of a value that nobody set.
const OriginDefault Origin = "default"

func fromFlag(name string) Origin { return Origin("flag --" + name) }

func fromEnv(names ...string) Origin { return Origin("env " + strings.Join(names, ", ")) }

// Fault is one thing that is wrong with the settings.
type Fault struct {
	// Field is the setting at fault, or the part of one that holds several
	// values: "swim.seeds[1]", "regions.eu-west-1.peers". It is "" when it is
	// about none of ours.
	Field string
	// Problem says what is wrong and what would be right.
	Problem string
	// Hint says what to look for where Problem cannot say what would be
	// right; it is "" but for what is no YAML.
	Hint string
	// Origin is where the value came from, "" when that is not known.
	Origin Origin
	// Quote is the line at fault as it stands in the file, with Line and
	// Column counted from 1; Line is 0 for a value that came from elsewhere.
	Quote        string
	Line, Column int
	// File is the path of that file.
	File string

	// asks is another setting without which there would be no fault: its
	// place is shown where Field has none because nobody gave it.
	asks string
}

// Error names the place, the field, and what would be right; the line of a
// file is quoted below it with a caret at the column.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.head() + f.Problem
	}
	d := limits.Diagnostic{
		Position: rules.Position{File: f.File, Line: f.Line, Column: f.Column},
		Message:  f.Problem,
		Hint:     f.Hint,
		Source:   f.Quote,
	}
	if f.Field != "" {
		d.Message = f.Field + ": " + f.Problem
	}
	return strings.TrimSuffix(d.String(), "\n")
}

func (f *Fault) head() string {
	switch {
	case f.Field == "" && f.Origin == "":
		return ""
	case f.Field == "":
		return string(f.Origin) + ": "
	case f.Origin == "" || f.Origin == OriginDefault:
		return f.Field + ": "
	}
	return fmt.Sprintf("%s (%s): ", f.Field, f.Origin)
}

// Faults is everything that is wrong, in the order it was found; never empty
// as an error.
type Faults []*Fault

// sort puts the faults of the file first, by place, and keeps the order of the
// others.
func (fs Faults) sort() {
	slices.SortStableFunc(fs, func(a, b *Fault) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Error lists the faults, one after the other.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults, for errors.As.
func (fs Faults) Unwrap() []error {
	out := make([]error, len(fs))
	for i, f := range fs {
		out[i] = f
	}
	return out
}
