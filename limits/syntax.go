package limits

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/georld/rld/rules"
)

const (
	tabProblem = "a tab in the indentation"
	tabHint    = "indent with spaces"
)

// syntax is what we say of one of the library's faults. The first whose said
// and while are part of what the library says is taken.
type syntax struct {
	said, while string
	atBegin     bool   // the fault is where the construct begins, not where it was noticed
	message     string // "" keeps the library's
	hint        string
}

var syntaxes = []syntax{
	{said: "end of stream", while: "quoted", atBegin: true,
		message: "a quote that is never closed", hint: "close it, or write it as '' or \\\" inside the text"},
	{said: "expected ':'", atBegin: true,
		message: "this belongs to nothing before it", hint: "check the indentation and the quotes"},
	{while: "flow", hint: "put commas between the entries, and texts with commas, brackets or ': ' in quotes"},
	{while: "block collection",
		message: "this belongs to nothing before it", hint: "check the indentation and the quotes"},
	{while: "block mapping",
		message: "this belongs to nothing before it", hint: "check the indentation and the quotes"},
	{said: "mapping values are not allowed", message: "a field may not begin here",
		hint: "put it on a line of its own, as deep as its neighbors; a text that holds ': ' needs quotes"},
	{said: "block sequence entries", message: "a list may not begin here", hint: "begin it on the next line"},
	{said: "cannot start any token", hint: "a text that begins with this character needs quotes"},
	{said: "unknown anchor", hint: "an alias comes after its anchor; a text that begins with * needs quotes"},
	{said: "alphabetic or numeric", message: "an anchor or alias without a name",
		hint: "a text that begins with & or * needs quotes"},
	{said: "escape", hint: "a \\ by itself is \\\\"},
	{said: "hexadecimal", hint: "\\x takes 2 digits, \\u 4 and \\U 8; a \\ by itself is \\\\"},
	{said: "max depth", message: tooNested, hint: "flatten it"},
	{hint: "check the quotes, brackets and indentation here"},
}

// syntaxFault puts a fault of the library into our words.
func syntaxFault(file, text string, err error) *fault {
	f := &fault{pos: rules.Position{File: file, Line: 1, Column: 1}, message: err.Error()}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return f
	}
	f.message = load.Message
	at := load.Mark
	for _, s := range syntaxes {
		if !strings.Contains(load.Message, s.said) || !strings.Contains(load.ContextMsg, s.while) {
			continue
		}
		if s.message != "" {
			f.message = s.message
		}
		if s.atBegin && load.ContextMark.Line > 0 {
			at = load.ContextMark
		}
		f.hint = s.hint
		break
	}
	if at.Line > 0 {
		f.pos.Line, f.pos.Column = at.Line, max(1, at.Column)
	}
	line := nthLine(text, f.pos.Line)
	if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
		f.message, f.hint = tabProblem, tabHint
	}
	return f
}
