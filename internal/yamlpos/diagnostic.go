package yamlpos

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Position is a place in a file. Line and Column count from 1, Column in
// characters. The zero value is no place.
type Position struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns "file:line:column".
func (p Position) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Severity is the weight of a Diagnostic.
type Severity uint8

// The severities. Any Error rejects the file. A Warning points out a likely
// mistake and rejects nothing. A Note reports a decision and is no fault.
const (
	Error Severity = iota
	Warning
	Note
	severities
)

// String returns "error", "warning" or "note".
func (s Severity) String() string { return [...]string{"error", "warning", "note"}[s] }

// MarshalText returns the String, for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diagnostic is one fault of a file, or a note about it.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Position is zero for the last entry of a list that was cut short.
	Position
	// Message names the fault, Hint a correct form. Hint may be "".
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Source is the line at Position without its line end, or "".
	Source string `json:"source,omitempty"`
}

// String returns "file:line:col: message; hint" and, below it, the offending
// line with a caret under the column. It ends with a line end.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.Position != (Position{}) {
		b.WriteString(d.Position.String() + ": ")
	}
	if d.Severity != Error {
		b.WriteString(d.Severity.String() + ": ")
	}
	b.WriteString(d.Message)
	if d.Hint != "" {
		b.WriteString("; " + d.Hint)
	}
	b.WriteByte('\n')
	if line, caret := excerpt(d.Source, d.Column); strings.TrimSpace(line) != "" {
		b.WriteString("  | " + line + "\n  | " + strings.Repeat(" ", caret) + "^\n")
	}
	return b.String()
}

// excerptWidth is the number of characters of the longest quoted line.
const excerptWidth = 96

// excerpt returns the printable part of a line around a column, and the number
// of characters before the column in it.
func excerpt(line string, column int) (text string, caret int) {
	var out []rune
	for _, r := range line {
		if len(out) == column+excerptWidth {
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		out = append(out, r)
	}
	caret = min(max(column-1, 0), len(out))
	from, to := 0, len(out)
	if len(out) > excerptWidth {
		from = max(caret-excerptWidth/2, 0)
		to = min(from+excerptWidth, len(out))
	}
	return strings.TrimRight(string(out[from:to]), " "), caret - from
}

// Diagnostics lists the faults and notes of one or several files, sorted by
// file and position. It holds at most 100 of each severity; when there are
// more, a last entry without a position gives their number.
type Diagnostics []Diagnostic

// Err returns an error that renders every Error of the list, or nil when there
// is none.
func (d Diagnostics) Err() error {
	text := d.of(Error).String()
	if text == "" {
		return nil
	}
	return errors.New(strings.TrimSuffix(text, "\n"))
}

// Warnings returns the entries that point out likely mistakes.
func (d Diagnostics) Warnings() Diagnostics { return d.of(Warning) }

// Notes returns the entries that are no faults.
func (d Diagnostics) Notes() Diagnostics { return d.of(Note) }

func (d Diagnostics) of(s Severity) Diagnostics {
	return slices.DeleteFunc(slices.Clone(d), func(one Diagnostic) bool { return one.Severity != s })
}

// String renders all entries one after the other; "" for none.
func (d Diagnostics) String() string {
	var b strings.Builder
	for i := range d {
		b.WriteString(d[i].String())
	}
	return b.String()
}
