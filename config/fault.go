package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/georld/rld/internal/yamlpos"
)

// Origin is the source of a value, for messages: "default", "rld.yaml:12",
// "env RLD_MAX_KEYS", "flag --max-keys".
type Origin string

// OriginDefault is the origin of a setting that no source gives.
const OriginDefault Origin = "default"

func fromFlag(name string) Origin { return Origin("flag --" + name) }

func fromEnv(names ...string) Origin { return Origin("env " + strings.Join(names, ", ")) }

// Fault is one error in the settings.
type Fault struct {
	// Field is the setting at fault, or the part of one with several values:
	// "swim.seeds[1]", "regions.eu-west-1.peers". It is "" for a fault of no
	// setting.
	Field string
	// Problem names the fault and a correct form.
	Problem string
	// Origin is the source of the value, "" when it is not known.
	Origin Origin
	// Diagnostic holds the position in the settings file, the line there and a
	// hint. Its Line is 0 for a value from another source.
	yamlpos.Diagnostic

	// needs is another setting without which there would be no fault. Its
	// position is used where Field has none because it is not set.
	needs string
}

// Error returns the position or the origin, the field, the fault and a correct
// form. The line of a file is quoted below it with a caret at the column.
func (f *Fault) Error() string {
	head := f.Field
	if f.Line == 0 && f.Origin != "" && f.Origin != OriginDefault {
		head = string(f.Origin)
		if f.Field != "" {
			head = fmt.Sprintf("%s (%s)", f.Field, f.Origin)
		}
	}
	d := f.Diagnostic
	d.Message = f.Problem
	if head != "" {
		d.Message = head + ": " + f.Problem
	}
	return strings.TrimSuffix(d.String(), "\n")
}

// Faults are all errors of the settings, in the order in which they were found.
// As an error it is never empty.
type Faults []*Fault

// sort puts the faults of the file first, by position, and keeps the order of
// the others.
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
