package web

import "strconv"

// This file alone knows draft-ietf-httpapi-ratelimit-headers-11 and the part
// of Structured Fields (RFC 9651) it needs.

const (
	// maxSFInteger is the largest Integer of Structured Fields.
	maxSFInteger = 999_999_999_999_999
	// maxNameBytes bounds the name of an item as it is written, and
	// maxItems the items of a list: proxies commonly refuse answers with
	// more than 4 to 8 KiB of headers.
	maxNameBytes = 128
	maxItems     = 24
)

// policyItem is one item of RateLimit-Policy: at most Quota hits in Window.
type policyItem struct {
	Name   string
	Quota  uint64
	Window uint64 // seconds; 0 is written as 1, the shortest the draft has
}

// appendPolicyItem appends an item to a RateLimit-Policy list that starts at
// start in b: "name";q=100;w=60.
func appendPolicyItem(b []byte, start int, p policyItem) []byte {
	b = appendSFString(appendSFComma(b, start), p.Name)
	b = appendSFInteger(append(b, ";q="...), p.Quota)
	return appendSFInteger(append(b, ";w="...), max(p.Window, 1))
}

// limitItem is one item of RateLimit: Remaining hits for the next Effective
// seconds.
type limitItem struct {
	Name      string
	Remaining uint64
	Effective uint64 // seconds
}

// appendLimitItem appends an item to a RateLimit list that starts at start in
// b: "name";r=42;t=17.
func appendLimitItem(b []byte, start int, l limitItem) []byte {
	b = appendSFString(appendSFComma(b, start), l.Name)
	b = appendSFInteger(append(b, ";r="...), l.Remaining)
	return appendSFInteger(append(b, ";t="...), l.Effective)
}

func appendSFComma(b []byte, start int) []byte {
	if len(b) > start {
		return append(b, ", "...)
	}
	return b
}

func appendSFInteger(b []byte, n uint64) []byte {
	return strconv.AppendUint(b, min(n, maxSFInteger), 10)
}

// appendSFString appends s as a String, which can hold printable ASCII alone.
// Quotes and backslashes are escaped. All other bytes, and '%' so that the name
// stays unambiguous, are percent-encoded: no name can end a field or start
// another one. Text beyond maxNameBytes is cut off.
func appendSFString(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	room := maxNameBytes
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			if room -= 2; room < 0 {
				return append(b, '"')
			}
			b = append(b, '\\', c)
		case c < ' ' || c > '~' || c == '%':
			if room -= 3; room < 0 {
				return append(b, '"')
			}
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			if room--; room < 0 {
				return append(b, '"')
			}
			b = append(b, c)
		}
	}
	return append(b, '"')
}
