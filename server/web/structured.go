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

// appendPolicy appends an item of RateLimit-Policy, at most quota hits in a
// window of seconds: "name";q=100;w=60. A window of 0 is written as 1, the
// shortest the draft has.
func appendPolicy(b []byte, name string, quota, window uint64) []byte {
	b = appendSFString(b, name)
	b = strconv.AppendUint(append(b, ";q="...), min(quota, maxSFInteger), 10)
	return strconv.AppendUint(append(b, ";w="...), min(max(window, 1), maxSFInteger), 10)
}

// appendLimit appends an item of RateLimit, the remaining hits for the next
// effective seconds: "name";r=42;t=17.
func appendLimit(b []byte, name string, remaining, effective uint64) []byte {
	b = appendSFString(b, name)
	b = strconv.AppendUint(append(b, ";r="...), min(remaining, maxSFInteger), 10)
	return strconv.AppendUint(append(b, ";t="...), min(effective, maxSFInteger), 10)
}

// appendSFString appends s as a String, which can hold printable ASCII alone.
// Quotes and backslashes are escaped. All other bytes, and '%' so that the name
// stays unambiguous, are percent-encoded: no name can end a field or start
// another one. Text beyond maxNameBytes is cut off.
func appendSFString(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	first := len(b)
	for i := range len(s) {
		room := first + maxNameBytes - len(b)
		switch c := s[i]; {
		case c == '"' || c == '\\':
			if room < 2 {
				return append(b, '"')
			}
			b = append(b, '\\', c)
		case c < ' ' || c > '~' || c == '%':
			if room < 3 {
				return append(b, '"')
			}
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			if room < 1 {
				return append(b, '"')
			}
			b = append(b, c)
		}
	}
	return append(b, '"')
}
