package gateway

import "strings"

// maxForwarded bounds the header Forwarded, in bytes.
const maxForwarded = 8 << 10

// forwardedList returns the parameter for of each element of the header
// Forwarded (RFC 7239), "" for an element without. A line that is malformed
// anywhere is a fault: an open quote of a client would hide what gateways
// append.
func forwardedList(lines []string) (list []string, fault Reason) {
	length := 0
	for _, line := range lines {
		if length += len(line); length > maxForwarded {
			return nil, TooLong
		}
		for line != "" {
			of, rest, ok := forwardedElement(line)
			if !ok {
				return nil, BadAddress
			}
			list, line = append(list, of), rest
		}
	}
	return list, noFault
}

// forwardedElement reads one element and the comma behind it.
func forwardedElement(s string) (of, rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, " \t")
		name, after, has := strings.Cut(s, "=")
		if !has || !token(name) {
			return "", "", false
		}
		value, after, ok := forwardedValue(after)
		if !ok {
			return "", "", false
		}
		if strings.EqualFold(name, "for") {
			if of != "" {
				return "", "", false
			}
			of = value
		}
		s = strings.TrimLeft(after, " \t")
		switch {
		case s == "":
			return of, "", true
		case s[0] == ',':
			return of, s[1:], true
		case s[0] != ';':
			return "", "", false
		}
		s = s[1:]
	}
}

// forwardedValue reads a token or a quoted text. No address has escapes, so
// they are kept as they are.
func forwardedValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		at := strings.IndexAny(s, ";, \t")
		if at < 0 {
			at = len(s)
		}
		return s[:at], s[at:], at > 0 && strings.IndexByte(s[:at], '"') < 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", false
}

// token reports whether s is a token of HTTP, as names of headers and cookies
// are.
func token(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
