package web

import (
	"strconv"
	"unicode/utf8"
)

// Media types of the bodies.
const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// document appends JSON to b. Commas are put by looking at the last byte, so
// a member may be left out without a thought for its neighbors.
type document struct{ b []byte }

func (j *document) comma() {
	if n := len(j.b); n > 0 && j.b[n-1] != '{' && j.b[n-1] != '[' {
		j.b = append(j.b, ',')
	}
}

func (j *document) name(name string) {
	j.comma()
	j.b = append(j.b, '"')
	j.b = append(j.b, name...)
	j.b = append(j.b, '"', ':')
}

// open starts an object, at the top or as an item of a list.
func (j *document) open() {
	if len(j.b) > 0 {
		j.comma()
	}
	j.b = append(j.b, '{')
}

func (j *document) openObject(name string) { j.name(name); j.b = append(j.b, '{') }
func (j *document) close()                 { j.b = append(j.b, '}') }
func (j *document) openList(name string)   { j.name(name); j.b = append(j.b, '[') }
func (j *document) closeList()             { j.b = append(j.b, ']') }

func (j *document) item(s string) {
	j.comma()
	j.b = appendString(j.b, s)
}

func (j *document) text(name, s string) {
	j.name(name)
	j.b = appendString(j.b, s)
}

func (j *document) uint(name string, n uint64) {
	j.name(name)
	j.b = strconv.AppendUint(j.b, n, 10)
}

func (j *document) int(name string, n int64) {
	j.name(name)
	j.b = strconv.AppendInt(j.b, n, 10)
}

func (j *document) bool(name string, v bool) {
	j.name(name)
	j.b = strconv.AppendBool(j.b, v)
}

// appendString appends s as JSON. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}
