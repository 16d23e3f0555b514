package yamlpos

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A misfit is a line that belongs to nothing before it.
const (
	misfit     = "this belongs to nothing before it"
	misfitHint = "check the indentation and the quotes"
)

// rewordings replaces the library's messages. The first entry applies whose
// match is part of the message and whose context is part of its context.
var rewordings = []struct {
	match, context string
	atBegin        bool   // report where the construct begins
	message        string // "" keeps the library's
	hint           string
}{
	{"end of stream", "quoted", true, "a quote that is never closed", "close it, or write it as '' or \\\" inside the text"},
	{"expected ':'", "", true, misfit, misfitHint},
	{"", "flow", false, "", "put commas between the entries, and texts with commas, brackets or ': ' in quotes"},
	{"", "block collection", false, misfit, misfitHint},
	{"", "block mapping", false, misfit, misfitHint},
	{
		"mapping values are not allowed", "", false, "a field may not begin here",
		"put it on a line of its own, as deep as its neighbors; a text that holds ': ' needs quotes",
	},
	{"block sequence entries", "", false, "a list may not begin here", "begin it on the next line"},
	{"cannot start any token", "", false, "", "a text that begins with this character needs quotes"},
	{"unknown anchor", "", false, "", "an alias comes after its anchor; a text that begins with * needs quotes"},
	{"alphabetic or numeric", "", false, "an anchor or alias without a name", "a text that begins with & or * needs quotes"},
	{"escape", "", false, "", "a \\ by itself is \\\\"},
	{"hexadecimal", "", false, "", "\\x takes 2 digits, \\u 4 and \\U 8; a \\ by itself is \\\\"},
	{"max depth", "", false, tooNested, "flatten it"},
	{"", "", false, "", "check the quotes, brackets and indentation here"},
}

// syntax returns a syntax error of the library in plain words.
func (p *parser) syntax(text string, err error) *Diagnostic {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return p.fault(Position{}, "", "%v", err)
	}
	message, hint, at := load.Message, "", load.Mark
	for _, r := range rewordings {
		if !strings.Contains(load.Message, r.match) || !strings.Contains(load.ContextMsg, r.context) {
			continue
		}
		if hint = r.hint; r.message != "" {
			message = r.message
		}
		if r.atBegin && load.ContextMark.Line > 0 {
			at = load.ContextMark
		}
		break
	}
	line := nthLine(text, max(at.Line, 1))
	if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
		message, hint = "a tab in the indentation", "indent with spaces"
	}
	return p.fault(Position{Line: at.Line, Column: at.Column}, hint, "%s", message)
}
