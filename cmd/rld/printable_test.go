package main

import (
	"strings"
	"testing"
	"text/tabwriter"
	"unicode"

	"github.com/georld/rld/node"
	"github.com/georld/rld/server/admin/api"
)

// TestExplainNamesTheRule: keys_full is about the rule, not about all keys.
func TestExplainNamesTheRule(t *testing.T) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	lines{w}.verdict(&api.Verdict{Allowed: true, Degraded: node.KeysFull.String()})
	if w.Flush(); !strings.Contains(b.String(), "degraded: keys_full (no room for one more key of this rule)") {
		t.Error(b.String())
	}
}

// TestTopShowsPrintableCharacters: values that callers chose neither steer the
// terminal nor change the direction of the text after them.
func TestTopShowsPrintableCharacters(t *testing.T) {
	const hostile = "user=\x1b[31m\u202eevil\u2066\u200b\u2028\x07\x7f\u009b größe日本"
	text := topTable(&api.TopAnswer{Reveals: true, Keys: []api.TopKey{{Domain: hostile, Rule: hostile, Name: hostile, Text: hostile}}}, true)
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("a character that is not printable, %q: %q", text[i:min(i+4, len(text))], text)
	}
	if !strings.Contains(text, "größe日本") {
		t.Errorf("other languages are not shown: %q", text)
	}
}
