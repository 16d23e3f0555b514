package gateway

import "strings"

// query returns a parameter of the request's query. One that comes twice is a
// fault even where one of both is empty: servers differ in which they take.
func (r *Request) query(name string) (string, Reason) {
	target, fault := r.target()
	if fault != noFault {
		return "", fault
	}
	_, query, _ := strings.Cut(target, "?")
	value, found := "", false
	for pair := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		if n, ok := unescape(rawName, true); !ok || n != name {
			continue
		}
		text, ok := unescape(rawValue, true)
		switch {
		case !ok:
			return "", BadURI
		case found:
			return "", Repeated
		}
		value, found = text, true
	}
	return value, noFault
}

// cookie returns a cookie. Several headers Cookie are one list, as HTTP/2
// defines; a name that comes twice is a fault.
func (r *Request) cookie(name string) (string, Reason) {
	value, found, length := "", false, 0
	for _, line := range r.Header["Cookie"] {
		if length += len(line); length > maxCookie {
			return "", TooLong
		}
		for pair := range strings.SplitSeq(line, ";") {
			n, text, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
			if !ok || strings.TrimRight(n, " \t") != name {
				continue
			}
			if found {
				return "", Repeated
			}
			value, found = unquote(strings.TrimLeft(text, " \t")), true
		}
	}
	return value, noFault
}

// unquote drops the quotes of a cookie: servers take both forms for one value.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}
