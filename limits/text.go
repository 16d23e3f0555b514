package limits

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

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
