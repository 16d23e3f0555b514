package importer

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/georld/rld/internal/suggest"
	"github.com/georld/rld/internal/yamlpos"
)

// Text returns the report for people, and the faults, which go to standard
// error.
func (r *Report) Text() (out, faults string) {
	var b strings.Builder
	if len(r.Files) > 0 {
		heading(&b, "Files of limits")
		t := newTable(&b)
		for _, f := range r.Files {
			rules := ""
			if f.State == unchanged {
				rules = suggest.Plural(f.Rules, "rule")
			}
			t.row(f.State, printable(f.Name), rules)
		}
		t.end()
	}
	if len(r.Differences) > 0 {
		heading(&b, "What rld reads in another way, or warns of")
		for _, d := range r.Differences {
			d.Severity, d.Source = yamlpos.Error, "" // the place and the text alone
			b.WriteString("  " + printable(strings.TrimSuffix(d.String(), "\n")) + "\n")
		}
	}
	if len(r.Limits) > 0 {
		heading(&b, "Limits, and a bound for each where several daemons count together")
		t := newTable(&b)
		t.row("RULE", "LIMIT", "MODES", "ADD", "WHICH MEANS")
		for _, l := range r.Limits {
			t.row(printable(l.Domain+": "+l.Rule), l.Limit, dash(printable(strings.Join(l.Modes, ", "))), dash(l.Suggest), l.Text)
		}
		t.end()
	}
	r.environmentText(&b)
	if len(r.Notes) > 0 {
		heading(&b, "What else differs")
		for _, n := range r.Notes {
			b.WriteString("  " + printable(n) + "\n")
		}
	}
	if r.OK {
		b.WriteString("\nok: rld can take the place of this deployment\n")
		return b.String(), ""
	}
	faults = r.Faults.String()
	for _, s := range r.Stops {
		faults += "rld: " + printable(s) + "\n"
	}
	return b.String(), faults + "rld: a daemon would not start in place of this deployment: " + suggest.Plural(len(r.Stops), "cause") + "\n"
}

// heading begins a section.
func heading(b *strings.Builder, title string) {
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	b.WriteString(title + "\n")
}

// effects are the headings of the variables by their effect, in this order.
var effects = []struct{ effect, title string }{
	{effectRefused, "Variables with which a daemon does not start"},
	{effectReplace, "Variables to replace"},
	{effectSetting, "Variables with the same effect"},
	{effectNone, "Variables without effect, and none is needed"},
	{effectUnknown, "Unknown variables"},
}

func (r *Report) environmentText(b *strings.Builder) {
	for _, e := range effects {
		t := newTable(b)
		for _, v := range r.Environment {
			if v.Effect != e.effect {
				continue
			}
			if t.rows == 0 {
				heading(b, e.title)
			}
			var settings []string
			for _, s := range v.Settings {
				settings = append(settings, s.Name+"="+s.Value)
			}
			text := strings.Join(settings, ", ")
			if v.Text != "" {
				if text != "" {
					text += ": "
				}
				text += v.Text
			}
			t.row(printable(v.Name), printable(text))
		}
		t.end()
	}
}

// table aligns rows below a heading.
type table struct {
	cells *tabwriter.Writer
	rows  int
}

func newTable(b *strings.Builder) *table {
	return &table{cells: tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)}
}

func (t *table) row(cells ...string) {
	t.rows++
	// The writer below is a strings.Builder: nothing can fail.
	_, _ = fmt.Fprintf(t.cells, "  %s\n", strings.Join(cells, "\t"))
}

func (t *table) end() { _ = t.cells.Flush() }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// printable returns a text of a file without control characters.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
