package web

import (
	"fmt"
	"strings"
)

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

// policyItem returns an item of RateLimit-Policy, at most quota hits in a
// window of seconds: "name";q=100;w=60. A window of 0 is written as 1, the
// shortest the draft has.
func policyItem(name string, quota, window uint64) string {
	return fmt.Sprintf("%s;q=%d;w=%d", sfString(name), min(quota, maxSFInteger), min(max(window, 1), maxSFInteger))
}

// limitItem returns an item of RateLimit, the remaining hits for the next
// effective seconds: "name";r=42;t=17.
func limitItem(name string, remaining, effective uint64) string {
	return fmt.Sprintf("%s;r=%d;t=%d", sfString(name), min(remaining, maxSFInteger), min(effective, maxSFInteger))
}

// sfString returns s as a String, which can hold printable ASCII alone. Quotes
// and backslashes are escaped. All other bytes, and '%' so that the name stays
// unambiguous, are percent-encoded: no name can end a field or start another
// one. Text beyond maxNameBytes is cut off.
func sfString(s string) string {
	var b strings.Builder
	for i := range len(s) {
		piece := s[i : i+1]
		switch c := s[i]; {
		case c == '"' || c == '\\':
			piece = `\` + piece
		case c < ' ' || c > '~' || c == '%':
			piece = fmt.Sprintf("%%%02X", c)
		}
		if b.Len()+len(piece) > maxNameBytes {
			break
		}
		b.WriteString(piece)
	}
	return `"` + b.String() + `"`
}
