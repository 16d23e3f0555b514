package limits

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/georld/rld/rules"
)

// fault is what keeps a file from being read as YAML at all. It is the only
// one of its file, since nothing behind it can be trusted.
type fault struct {
	pos           rules.Position
	message, hint string
}

// Error implements error.
func (f *fault) Error() string { return f.message }

// read turns a file into the tree of its one document, and notes why when it
// cannot. An empty document is a null.
func (l *loader) read(f File) (root *node, ok bool) {
	text, err := plainText(f)
	l.source = text
	if err == nil {
		root, err = parse(f.Name, text)
	}
	if err == nil {
		return root, true
	}
	var why *fault
	if !errors.As(err, &why) {
		why = &fault{pos: rules.Position{File: f.Name, Line: 1, Column: 1}, message: err.Error()}
	}
	l.errorf(why.pos, why.hint, "%s", why.message)
	return nil, false
}

// plainText returns the text of a file with its line ends made one, or the
// *fault that makes it no text.
func plainText(f File) (string, error) {
	at := rules.Position{File: f.Name, Line: 1, Column: 1}
	data := f.Data
	if len(data) > MaxFileBytes {
		return "", &fault{at, fmt.Sprintf("the file is longer than %d MiB", MaxFileBytes>>20),
			"split it; with MERGE_DOMAIN_CONFIG=true a domain may be in several files"}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "", &fault{at, "the file is UTF-16", "save it as UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			at = positionAt(f.Name, text, i)
			return strings.ToValidUTF8(text, "?"), &fault{at, "this is not UTF-8", "save the file as UTF-8"}
		}
		if !printable(r) {
			at = positionAt(f.Name, text, i)
			return text, &fault{at, fmt.Sprintf("a control character, %U, may not stand in YAML", r),
				`in double quotes it can be written as an escape, such as "\x1b"`}
		}
	}
	return text, nil
}

// printable reports whether YAML allows a character in its source.
func printable(r rune) bool {
	switch {
	case r == '\t', r == '\n', 0x20 <= r && r <= 0x7e, r == 0x85:
		return true
	case 0xa0 <= r && r <= 0xd7ff, 0xe000 <= r && r <= 0xfffd && r != 0xfeff, r >= 0x10000:
		return true
	}
	return false
}

// positionAt returns where byte i of a text is.
func positionAt(file, text string, i int) rules.Position {
	before := text[:i]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return rules.Position{File: file, Line: line, Column: column}
}

// parse reads the one document of a text. The lexer is a library that was not
// written for hostile input: should it panic, that is a fault of the file.
func parse(file, text string) (root *node, err error) {
	defer func() {
		if p := recover(); p != nil {
			at := rules.Position{File: file, Line: 1, Column: 1}
			root, err = nil, &fault{at, fmt.Sprintf("the YAML reader gave up on this file: %v", p),
				"write it in a plainer form"}
		}
	}()
	tokens := lexer.Tokenize(text)
	if t := tokens.InvalidToken(); t != nil {
		return nil, lexicalFault(file, t)
	}
	tokens, headerLine, err := onlyDocument(file, tokens)
	if err != nil {
		return nil, err
	}
	placeLast(file, text, tokens)
	c := composer{
		file: file, lines: strings.Split(text, "\n"), tokens: tokens,
		anchors: make(map[string]*node), allowed: expansion + len(text),
	}
	root = c.document(headerLine)
	if c.err != nil {
		return nil, c.err
	}
	return root, nil
}

// onlyDocument returns the tokens of the first document, without comments and
// directives, and the line of the --- before it, 0 for none. It refuses a
// second document, which would be read by nobody.
func onlyDocument(file string, tokens token.Tokens) (out token.Tokens, headerLine int, err error) {
	out = make(token.Tokens, 0, len(tokens))
	begun, ended, directive := false, false, 0
	for _, t := range tokens {
		switch t.Type {
		case token.CommentType:
			continue
		case token.DirectiveType:
			directive = t.Position.Line
		case token.DocumentHeaderType:
			ended = begun
			begun = true
			if !ended {
				headerLine = t.Position.Line
			}
			continue
		case token.DocumentEndType:
			ended = begun
			continue
		}
		if ended {
			return nil, 0, &fault{placeOf(file, t), "a second document; only the first would be read",
				"put it in a file of its own"}
		}
		if t.Position.Line == directive {
			if begun {
				return nil, 0, &fault{placeOf(file, t), "a text may not begin with %", "put it in quotes"}
			}
			continue
		}
		begun = true
		out = append(out, t)
	}
	return out, headerLine, nil
}

// lexicalFault puts the lexer's words into ours.
func lexicalFault(file string, t *token.Token) *fault {
	f := &fault{placeOf(file, t), t.Error, "check the quotes and the brackets here"}
	switch {
	case strings.Contains(t.Error, "'\t'") || strings.Contains(t.Error, "tab character"):
		f.message, f.hint = tabProblem, tabHint
	case strings.Contains(t.Error, "mapping value is not allowed"):
		f.message, f.hint = misplacedField, misplacedHint
	case strings.Contains(t.Error, "reserved character"):
		f.hint = "a text that begins with it needs quotes"
	}
	return f
}
