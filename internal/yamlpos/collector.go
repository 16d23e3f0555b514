package yamlpos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxKept is how many diagnostics of one severity are kept.
const maxKept = 100

// Collector gathers the diagnostics of one or several files and makes Readers
// that report to it. It keeps the first 100 of each severity and counts the
// rest. The zero value is ready for use. It is not safe for concurrent use.
type Collector struct {
	text string // of the file being read
	kept [severities][]Diagnostic
	more [severities]int
}

// Parse reads the document of a file, adds the fault when it cannot, and
// quotes the lines of this file in diagnostics from here on. A file that does
// not look like its Kind is not quoted. See the function Parse.
func (c *Collector) Parse(file string, data []byte, o Options) *Node {
	root, text, fault := Parse(file, data, o)
	c.text = text
	if unlike := o.Kind.unlike(root, text, fault); unlike != nil {
		root, c.text, fault = nil, "", unlike
		fault.File = file
	}
	if o.Kind.Name != "" && root.IsNull() && fault == nil {
		c.text = "" // comments, an anchor or a tag of another kind of file
	}
	if fault != nil {
		c.Add(*fault)
	}
	return root
}

// Line returns a line of the file being read, counted from 1, or "".
func (c *Collector) Line(n int) string { return nthLine(c.text, n) }

// Errorf adds a fault that rejects the file. The hint names a correct form and
// may be "". It returns false, so that a Reader can return it.
func (c *Collector) Errorf(at Position, hint, format string, args ...any) bool {
	c.Add(Diagnostic{Position: at, Hint: hint, Message: fmt.Sprintf(format, args...)})
	return false
}

// Warnf adds a likely mistake that does not reject the file.
func (c *Collector) Warnf(at Position, hint, format string, args ...any) {
	c.Add(Diagnostic{Severity: Warning, Position: at, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// Notef adds a note, which is no fault.
func (c *Collector) Notef(at Position, format string, args ...any) {
	c.Add(Diagnostic{Severity: Note, Position: at, Message: fmt.Sprintf(format, args...)})
}

// Add adds a diagnostic, quoting its line where it has no Source. A fault that
// is repeated because its node is used by several aliases is added once.
func (c *Collector) Add(d Diagnostic) {
	kept := &c.kept[d.Severity]
	if len(*kept) == maxKept {
		c.more[d.Severity]++
		return
	}
	if slices.ContainsFunc(*kept, func(o Diagnostic) bool { return o.Position == d.Position && o.Message == d.Message }) {
		return
	}
	if d.Source == "" {
		d.Source = c.Line(d.Line)
	}
	*kept = append(*kept, d)
}

// Failed reports whether an Error was added.
func (c *Collector) Failed() bool { return len(c.kept[Error]) > 0 }

// Full reports whether further errors are only counted, so that their message
// and hint need no work.
func (c *Collector) Full() bool { return len(c.kept[Error]) == maxKept }

// List returns the diagnostics so far, sorted.
func (c *Collector) List() Diagnostics {
	all := slices.Concat(c.kept[:]...)
	slices.SortStableFunc(all, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for s, what := range [...]string{" more errors", " more", " more"} {
		if n := c.more[s]; n > 0 {
			all = append(all, Diagnostic{Severity: Severity(s), Message: fmt.Sprint("and ", n, what)})
		}
	}
	return all
}

// nthLine returns line n of a text, counted from 1, "" when there is none.
func nthLine(text string, n int) string {
	i := 0
	for line := range strings.SplitSeq(text, "\n") {
		if i++; i == n {
			return line
		}
	}
	return ""
}
