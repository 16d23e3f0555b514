package limits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/georld/rld/rules"
)

// Severity says whether a fault keeps the files from being loaded.
type Severity uint8

// The severities. Any Error refuses all files; a Warning refuses nothing, and
// a Note is no fault at all: it says what was decided for a rule.
const (
	Error Severity = iota
	Warning
	Note
	severities
)

// String returns "error", "warning" or "note".
func (s Severity) String() string {
	switch s {
	case Warning:
		return "warning"
	case Note:
		return "note"
	}
	return "error"
}

// Diagnostic is one fault of a file: where it is, what is wrong and what would
// be right.
type Diagnostic struct {
	Severity Severity
	// Position is in the file as it was given, Column in characters from 1.
	// It is zero for the last entry of a list that was cut short.
	rules.Position
	// Message says what is wrong, Hint what would be right. Hint may be "".
	Message, Hint string
	// Source is the offending line without its end, "" when there is none.
	Source string
}

// String returns "file:line:col: what is wrong; what would be right", and
// below it the offending line with a caret under the column.
func (d Diagnostic) String() string {
	var b strings.Builder
	d.write(&b)
	return b.String()
}

func (d Diagnostic) write(b *strings.Builder) {
	if d.Position != (rules.Position{}) {
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
}

// excerptWidth is how much of a line is quoted.
const excerptWidth = 96

// excerpt returns the part of a line around a column, fit to be printed, and
// how many characters stand before the column in it.
func excerpt(line string, column int) (text string, caret int) {
	var out []rune
	at := 0
	for _, r := range line {
		at++
		if at > column+excerptWidth {
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		out = append(out, r)
	}
	caret = min(max(column-1, 0), len(out))
	if len(out) <= excerptWidth {
		return strings.TrimRight(string(out), " "), caret
	}
	from := max(caret-excerptWidth/2, 0)
	to := min(from+excerptWidth, len(out))
	return strings.TrimRight(string(out[from:to]), " "), caret - from
}

// Diagnostics is the faults of a set of files, sorted by file and position. At
// most 100 of each severity are listed; when there are more, a last entry
// without a position says how many.
type Diagnostics []Diagnostic

// Err returns an error that renders every Error of the list, nil when there is
// none.
func (d Diagnostics) Err() error {
	var b strings.Builder
	for i := range d {
		if d[i].Severity == Error {
			d[i].write(&b)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return errors.New(strings.TrimSuffix(b.String(), "\n"))
}

// Warnings returns the entries that refuse nothing and are likely mistakes.
func (d Diagnostics) Warnings() Diagnostics { return d.of(Warning) }

// Notes returns the entries that are no faults.
func (d Diagnostics) Notes() Diagnostics { return d.of(Note) }

func (d Diagnostics) of(s Severity) Diagnostics {
	var out Diagnostics
	for i := range d {
		if d[i].Severity == s {
			out = append(out, d[i])
		}
	}
	return out
}

// String renders all entries, one after the other; "" for none.
func (d Diagnostics) String() string {
	var b strings.Builder
	for i := range d {
		d[i].write(&b)
	}
	return b.String()
}

// maxFaults is how many diagnostics of a severity are kept.
const maxFaults = 100

// collector gathers diagnostics. It keeps the first of each severity, and of
// the rest the number.
type collector struct {
	source string // of the file being read
	kept   [severities][]Diagnostic
	more   [severities]int
}

// errorf notes a fault that refuses the files.
func (c *collector) errorf(at rules.Position, hint, format string, args ...any) {
	c.add(Diagnostic{Severity: Error, Position: at, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// warnf notes what is likely a mistake but loads.
func (c *collector) warnf(at rules.Position, hint, format string, args ...any) {
	c.add(Diagnostic{Severity: Warning, Position: at, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// notef notes what was decided and is no fault.
func (c *collector) notef(at rules.Position, format string, args ...any) {
	c.add(Diagnostic{Severity: Note, Position: at, Message: fmt.Sprintf(format, args...)})
}

func (c *collector) add(d Diagnostic) {
	if len(c.kept[d.Severity]) == maxFaults {
		c.more[d.Severity]++
		return
	}
	// A fault that aliases repeat is one fault.
	if slices.ContainsFunc(c.kept[d.Severity], d.repeats) {
		return
	}
	if d.Source == "" {
		d.Source = nthLine(c.source, d.Line)
	}
	c.kept[d.Severity] = append(c.kept[d.Severity], d)
}

func (d Diagnostic) repeats(o Diagnostic) bool {
	return d.Position == o.Position && d.Message == o.Message
}

// crowded reports whether further errors are only counted, so that no hint
// need be thought up for them.
func (c *collector) crowded() bool { return len(c.kept[Error]) == maxFaults }

func (c *collector) failed() bool { return len(c.kept[Error]) > 0 }

// list returns what was gathered, sorted.
func (c *collector) list() Diagnostics {
	all := slices.Concat(c.kept[:]...)
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if n := c.more[Error]; n > 0 {
		all = append(all, Diagnostic{Severity: Error, Message: "and " + itoa(n) + " more errors"})
	}
	if n := c.more[Warning]; n > 0 {
		all = append(all, Diagnostic{Severity: Warning, Message: "and " + itoa(n) + " more"})
	}
	if n := c.more[Note]; n > 0 {
		all = append(all, Diagnostic{Severity: Note, Message: "and " + itoa(n) + " more"})
	}
	return all
}

// nthLine returns line n of a text, counted from 1, "" when there is none.
func nthLine(text string, n int) string {
	if n < 1 {
		return ""
	}
	for range n - 1 {
		_, rest, found := strings.Cut(text, "\n")
		if !found {
			return ""
		}
		text = rest
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// quote returns s in double quotes, cut where it is long.
func quote(s string) string {
	if short := clip(s); short != s {
		return strconv.Quote(strings.TrimSuffix(short, "...")) + "..."
	}
	return strconv.Quote(s)
}

// clip returns s, cut where it is long.
func clip(s string) string {
	const most = 60
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "..."
		}
		n++
	}
	return s
}

func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
