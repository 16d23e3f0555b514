package importer

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// Of bash, env prints functions, too.
	assignment = regexp.MustCompile(`^(export\s+)?(BASH_FUNC_[^\s=]+|[A-Za-z_][A-Za-z0-9_.-]*)\s*=`)
	padded     = regexp.MustCompile(`^[A-Za-z0-9+/]+==?$`)
)

// rawValue is a value as the lines of a file have it.
type rawValue struct {
	name  string
	line  int // of the name
	lines []string
	// until is in the last line of a value in quotes, and of the PEM of a key
	// or certificate. It is "" for others.
	until string
}

const pemBegin, pemEnd = "-----BEGIN ", "-----END "

// add appends a line, and looks for what begins or ends there.
func (v *rawValue) add(line string) {
	switch {
	case v.until != "":
		if strings.Contains(line, v.until) {
			v.until = ""
		}
	case len(v.lines) == 0 && line != "" && (line[0] == '"' || line[0] == '\''):
		if v.until = line[:1]; strings.Contains(line[1:], v.until) {
			v.until = ""
		}
	case strings.Contains(line, pemBegin) && !strings.Contains(line, pemEnd):
		v.until = pemEnd
	}
	v.lines = append(v.lines, line)
}

// goesOn reports whether a line belongs to the value before it: it is no
// assignment, or the end of a text in base64.
func (v *rawValue) goesOn(line string) bool {
	if v.until != "" || !assignment.MatchString(line) {
		return true
	}
	return padded.MatchString(line) && (strings.HasSuffix(line, "==") || len(v.lines) > 1)
}

// given returns the variable.
func (v *rawValue) given(file string) (given, error) {
	text := strings.Join(v.lines, "\n")
	out := given{name: v.name, line: v.line}
	if strings.HasPrefix(text, "'") {
		out.of = literal
	}
	var err error
	if out.value, err = unquote(text); err != nil {
		return out, fmt.Errorf("%s:%d: the value of %s %w", file, v.line, v.name, err)
	}
	out.refer()
	return out, nil
}

// readLines reads NAME=VALUE lines. A line that is no assignment belongs to the
// value before it: env prints values of several lines so. As it may be part of
// a secret, no message has its text.
func readLines(file string, data []byte) (out []given, notes []string, err error) {
	var raw []*rawValue
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		var before *rawValue
		if len(raw) > 0 {
			before = raw[len(raw)-1]
		}
		inside := before != nil && before.until != ""
		if !inside && (line == "" || line[0] == '#') {
			continue
		}
		if before != nil && before.goesOn(line) {
			if before.add(line); len(before.lines) == 2 {
				notes = append(notes, fmt.Sprintf("%s:%d: no NAME=VALUE, and read as part of the value of %s", file, n, before.name))
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "export"); ok && strings.TrimLeft(rest, " \t") != rest {
			line = strings.TrimLeft(rest, " \t")
		}
		name, value, _ := strings.Cut(line, "=")
		v := &rawValue{name: strings.TrimSpace(name), line: n}
		v.add(strings.TrimSpace(value))
		if raw = append(raw, v); len(raw) > maxVariables {
			return nil, nil, fmt.Errorf("%s:%d: more than %d variables", file, n, maxVariables)
		}
	}
	for _, v := range raw {
		g, err := v.given(file)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, g)
	}
	return out, notes, nil
}

// unquote removes the quotes of a value, and a comment behind it.
func unquote(s string) (string, error) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		if at := strings.Index(s, " #"); at >= 0 {
			s = strings.TrimSpace(s[:at])
		}
		return s, nil
	}
	quote := s[:1]
	inner, rest, ok := strings.Cut(s[1:], quote)
	if rest = strings.TrimSpace(rest); !ok || rest != "" && rest[0] != '#' {
		return "", errors.New("has no closing " + quote + " at its end")
	}
	return inner, nil
}
