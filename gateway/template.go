package gateway

import "strings"

// The segments of a template that are not literal.
const (
	anySegment = "{}" // {name}
	anyRest    = "*"  // the last segment alone
)

// template is a parsed path template.
type template struct {
	text     string
	segments []string
}

// templates are in the order in which they are tried.
type templates []template

func newTemplates(texts []string) templates {
	out := make(templates, len(texts))
	for i, text := range texts {
		out[i].text = text
		for segment, left := nextSegment(text); segment != ""; segment, left = nextSegment(left) {
			if strings.HasPrefix(segment, "{") {
				segment = anySegment
			}
			out[i].segments = append(out[i].segments, segment)
		}
	}
	return out
}

// templateProblem returns the fault of a template, "" for none.
func templateProblem(text string) string {
	if !strings.HasPrefix(text, "/") {
		return "does not begin with /, as in /v1/*"
	}
	rest := 0
	for segment, left := nextSegment(text); segment != ""; segment, left = nextSegment(left) {
		rest++
		inside, opened := strings.CutPrefix(segment, "{")
		inside, closed := strings.CutSuffix(inside, "}")
		switch {
		case segment == anyRest:
			if strings.Contains(strings.TrimPrefix(text[strings.Index(text, anyRest):], anyRest), "/") {
				return "has * before its end; use {name} for one segment"
			}
		case opened && closed && inside != "" && !strings.ContainsAny(inside, "{}*"):
		case strings.ContainsAny(segment, "{}*?#%;\\") || segment == "." || segment == "..":
			return "has a segment that is neither literal nor {name} nor a final *"
		}
	}
	if rest > maxSegments {
		return "has more than 64 segments"
	}
	return ""
}

// maxSegments bounds the segments of a template.
const maxSegments = 64

// nextSegment returns the first part between slashes that is not empty, and
// what follows it; "" at the end.
func nextSegment(path string) (segment, rest string) {
	for path != "" {
		if segment, path, _ = strings.Cut(path, "/"); segment != "" {
			return segment, path
		}
	}
	return "", ""
}

// read returns the first template that matches the path of the request.
func (t templates) read(r *Request) (string, Reason) {
	target, fault := r.target()
	if fault != noFault || target == "" {
		return "", fault
	}
	path, _, _ := strings.Cut(target, "?")
	var room [16]string
	segments, encoded, ok := cleanPath(room[:0], path, false)
	if !ok {
		return "", BadURI
	}
	var again []string // the segments with %2F as a slash
	if encoded {
		again, _, _ = cleanPath(nil, path, true)
	}
	for i := range t {
		if t[i].matches(segments) || encoded && t[i].matches(again) {
			return t[i].text, noFault
		}
	}
	return "", noFault
}

func (t *template) matches(path []string) bool {
	for i, segment := range t.segments {
		switch {
		case segment == anyRest:
			return true
		case i == len(path) || segment != anySegment && segment != path[i]:
			return false
		}
	}
	return len(path) == len(t.segments)
}

// cleanPath returns the segments of a path in the one form that all its
// spellings have: escapes decoded, empty and dot segments resolved, parameters
// (;x) dropped and a backslash taken for a slash. Servers differ in what they
// resolve, and no spelling may avoid a template. encoded reports an escaped
// slash, which divides segments if split is set. ok is false for bad escapes.
// The result uses the capacity of segments.
func cleanPath(segments []string, path string, split bool) (out []string, encoded, ok bool) {
	if strings.IndexByte(path, '\\') >= 0 {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	for raw, left := nextSegment(path); raw != ""; raw, left = nextSegment(left) {
		name, _, _ := strings.Cut(raw, ";")
		segment, ok := unescape(name, false)
		if !ok {
			return nil, false, false
		}
		if len(segment) != len(name) && strings.ContainsAny(segment, `/\`) {
			encoded = true
			if split {
				inner := strings.ReplaceAll(segment, `\`, "/")
				for part, left := nextSegment(inner); part != ""; part, left = nextSegment(left) {
					segments = resolve(segments, part)
				}
				continue
			}
		}
		segments = resolve(segments, segment)
	}
	return segments, encoded, true
}

// resolve appends a segment that may be a dot segment.
func resolve(segments []string, segment string) []string {
	switch segment {
	case "", ".":
		return segments
	case "..":
		return segments[:max(0, len(segments)-1)]
	}
	return append(segments, segment)
}

// unescape decodes %XX, and + where plus is set. ok is false for a % without
// two hex digits.
func unescape(s string, plus bool) (text string, ok bool) {
	if strings.IndexByte(s, '%') < 0 && (!plus || strings.IndexByte(s, '+') < 0) {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+' && plus:
			b = append(b, ' ')
		case c != '%':
			b = append(b, c)
		case i+2 >= len(s):
			return "", false
		default:
			high, low := digit(s[i+1]), digit(s[i+2])
			if high < 0 || low < 0 {
				return "", false
			}
			b = append(b, byte(high<<4|low))
			i += 2
		}
	}
	return string(b), true
}

// digit returns the value of a hex digit, -1 for another byte.
func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
