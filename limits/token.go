package limits

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"

	"github.com/georld/rld/rules"
)

// isScalar reports whether a token is a scalar on its own: text or anything
// that the library takes for more than text.
func isScalar(t *token.Token) bool {
	switch t.Type {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.NullType, token.ImplicitNullType,
		token.BoolType, token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType,
		token.FloatType, token.InfinityType, token.NanType, token.MergeKeyType:
		return true
	}
	return false
}

// scalar takes a scalar token. What an unquoted one stands for is decided by
// us, since the library does not read YAML 1.1.
func (c *composer) scalar() *node {
	t := c.next()
	text := strings.TrimSpace(t.Origin)
	out := &node{pos: c.placeText(t, text), weight: 1}
	if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		out.text, out.quoted = t.Value, true
		if t.Type == token.DoubleQuoteType {
			c.checkEscapes(t)
		}
		return out
	}
	out.text = plainValue(t)
	flat := strings.ReplaceAll(text, "\n", " ") + " "
	switch {
	case t.Type == token.MergeKeyType && text != "<<" || strings.Contains(flat, ": "):
		// The lexer takes a field that is indented by mistake for the next
		// line of the text before it.
		c.fail(t, misplacedField, misplacedHint)
	case strings.Contains(flat, " #"):
		c.fail(t, "a comment inside this text", "put the text in quotes, or the comment on a line of its own")
	case text != "" && strings.IndexByte(",%@`[]{}", text[0]) >= 0:
		c.fail(t, "a text may not begin with "+text[:1], "put it in quotes")
	}
	return out
}

// plainValue returns the text of an unquoted scalar. The lexer drops tabs from
// it, so where there are any it is folded here: a line end is a space, an
// empty line is a line end.
func plainValue(t *token.Token) string {
	if !strings.Contains(t.Origin, "\t") {
		return t.Value
	}
	var b strings.Builder
	empty := 0
	for i, line := range strings.Split(strings.TrimSpace(t.Origin), "\n") {
		line = strings.Trim(line, " \t")
		switch {
		case line == "":
			empty++
			continue
		case empty > 0:
			b.WriteString(strings.Repeat("\n", empty))
		case i > 0:
			b.WriteByte(' ')
		}
		b.WriteString(line)
		empty = 0
	}
	return b.String()
}

// maxExactLine bounds the length of a line in which escapes are checked and
// columns corrected, since both go through the line for each token on it.
const maxExactLine = 1_000

// from returns the source of a token's line from the token's column on, and
// the byte at which that is; false when the line is too long to look at.
func (c *composer) from(t *token.Token) (line string, at int, ok bool) {
	if t.Position.Line > len(c.lines) || len(c.lines[t.Position.Line-1]) > maxExactLine {
		return "", 0, false
	}
	line = c.lines[t.Position.Line-1]
	for range t.Position.Column - 1 {
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
	}
	return line, at, true
}

// checkEscapes refuses a \x, \u or \U in double quotes that is not followed by
// as many hexadecimal digits as it takes; the lexer makes something up. It goes
// by the source, since a token does not keep them.
func (c *composer) checkEscapes(t *token.Token) {
	line, at, ok := c.from(t)
	if !ok || !strings.Contains(t.Origin, `\`) {
		return
	}
	_, line, _ = strings.Cut(line[at:], `"`)
	for i := t.Position.Line; ; i++ {
		bad, closed := badEscape(line)
		if bad != "" {
			c.fail(t, bad+" in this text is followed by too few hexadecimal digits",
				`\x takes 2, \u 4 and \U 8 of them; a \ by itself is \\`)
		}
		if closed || bad != "" || i >= len(c.lines) {
			return
		}
		line = c.lines[i]
	}
}

// badEscape returns the first bad escape of a line inside double quotes, ""
// for none, and whether the quotes end on it.
func badEscape(line string) (bad string, closed bool) {
	for i := 0; i < len(line); i++ {
		if line[i] == '"' {
			return "", true
		}
		if line[i] != '\\' || i+1 == len(line) {
			continue
		}
		i++
		digits := 0
		switch line[i] {
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		}
		if i+digits >= len(line) || strings.Trim(line[i+1:i+1+digits], "0123456789abcdefABCDEF") != "" {
			return line[i-1 : i+1], false
		}
	}
	return "", false
}

// placeText returns where a text is. The lexer counts columns wrongly behind a
// tag, one too few, and where spaces end the line, too many.
func (c *composer) placeText(t *token.Token, text string) rules.Position {
	out := placeOf(c.file, t)
	line, at, ok := c.from(t)
	text, _, _ = strings.Cut(text, "\n")
	switch {
	case !ok || strings.HasPrefix(line[at:], text):
	case at < len(line) && strings.HasPrefix(line[at+1:], text):
		out.Column++
	default:
		if i := strings.LastIndex(line[:min(at+len(text), len(line))], text); i >= 0 {
			out.Column = utf8.RuneCountInString(line[:i]) + 1
		}
	}
	return out
}

// endLine returns the line on which a token ends.
func endLine(t *token.Token) int {
	return t.Position.Line + strings.Count(strings.TrimSpace(t.Origin), "\n")
}

// placeOf returns where a token is.
func placeOf(file string, t *token.Token) rules.Position {
	if t == nil || t.Position == nil {
		return rules.Position{File: file, Line: 1, Column: 1}
	}
	return rules.Position{File: file, Line: t.Position.Line, Column: t.Position.Column}
}

// placeLast corrects the position of a text of several lines at the end of the
// file, which the lexer puts where it ends.
func placeLast(file, source string, tokens token.Tokens) {
	if len(tokens) == 0 {
		return
	}
	t := tokens[len(tokens)-1]
	text := strings.TrimSpace(t.Origin)
	if t.Type != token.StringType || !strings.Contains(text, "\n") {
		return
	}
	if len(tokens) > 1 && isBlockMark(tokens[len(tokens)-2]) {
		return
	}
	if at := strings.LastIndex(source, text); at >= 0 {
		p := positionAt(file, source, at)
		t.Position.Line, t.Position.Column = p.Line, p.Column
	}
}

// isBlockMark reports whether the token behind t is the text of a block.
func isBlockMark(t *token.Token) bool {
	return t.Type == token.LiteralType || t.Type == token.FoldedType
}
