package lint

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The rules about comments.
const (
	ruleDialect = "dialect" // plain technical English
	ruleWrap    = "wrap"    // one width
	ruleShare   = "share"   // enough of them
)

const (
	// maxDialect is the share of comment blocks that may match dialect, in
	// tenths of a percent. Some uses of these words are right.
	// Comparable projects have 14 to 23.
	maxDialect = 25
	// minComments is the least share of comment lines of all lines of code and
	// comments, in percent.
	minComments = 14
	// maxComment is the widest comment line, in columns; a tab is one column of
	// tabWidth.
	maxComment = 80
	tabWidth   = 4
)

// dialect matches the phrases that plain technical English does not need, and
// names a better form of each.
var dialect = []struct {
	pattern *regexp.Regexp
	use     string
}{
	{regexp.MustCompile(`(?i)\b(tells?|told|says?|said)\b`), "report, return, send, announce"},
	{regexp.MustCompile(`(?i)\b(hears?|heard)\b`), "receive"},
	{regexp.MustCompile(`(?i)\b(whoever|whom|who)\b`), "the noun: the caller, the peer, the owner"},
	{regexp.MustCompile(`(?i)\bwhat (is|was|it|they|others|a|the|of)\b`), "the noun: the count, the messages, the result"},
	{regexp.MustCompile(`(?i)\btakes? in\b`), "merge, accept"},
}

// checkComments holds the comments of the code, without tests, to the rules.
func (c *checker) checkComments() {
	var odd []Finding
	blocks, comments, code := 0, 0, 0
	for _, f := range c.files {
		if f.generated {
			continue
		}
		c.checkWrap(f)
		if f.test {
			continue
		}
		code, comments = code+f.code, comments+f.comments
		blocks += len(f.syntax.Comments)
		for _, group := range f.syntax.Comments {
			if match, use := inDialect(group.Text()); match != "" {
				odd = append(odd, Finding{
					File: f.name, Line: c.fset.Position(group.Pos()).Line, Rule: ruleDialect,
					Text: fmt.Sprintf("not %q but %s", match, use),
				})
			}
		}
	}
	if len(odd)*1000 > blocks*maxDialect {
		c.findings = append(c.findings, odd...)
	}
	if code > 0 && comments*100 < (code+comments)*minComments {
		c.findings = append(c.findings, Finding{
			File: policyFile, Line: 1, Rule: ruleShare,
			Text: "too few comments in the repository: add contracts to doc comments",
		})
	}
}

// inDialect returns the first match of dialect in a comment and a better form,
// or two empty strings.
func inDialect(text string) (match, use string) {
	for _, d := range dialect {
		if m := d.pattern.FindString(text); m != "" {
			return strings.Join(strings.Fields(m), " "), d.use
		}
	}
	return "", ""
}

// checkWrap holds the comments of a file to one width. Directives, outputs of
// examples, and lines without a space to break at may be wider.
func (c *checker) checkWrap(f *file) {
	for _, group := range f.syntax.Comments {
		if strings.HasPrefix(group.Text(), "Output:") {
			continue
		}
		for _, comment := range group.List {
			text, line := strings.CutPrefix(comment.Text, "// ")
			if !line || !strings.Contains(strings.TrimSpace(text), " ") {
				continue
			}
			at := c.fset.Position(comment.Pos())
			width := at.Column - 1 + f.tabs(at.Line)*(tabWidth-1) + utf8.RuneCountInString(comment.Text)
			if width > maxComment && f.alone(at.Line) {
				c.report(f, comment.Pos(), ruleWrap, "comment of %d columns, want at most %d", width, maxComment)
			}
		}
	}
}
