package importer

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/georld/rld/internal/yamlpos"
)

// Bounds of a file with an environment.
const (
	MaxEnvBytes  = 4 << 20
	maxVariables = 10_000
)

// given is a variable of the environment of a deployment.
type given struct {
	name, value string
	line        int
	// elsewhere names the source of a value that is not in the file, "" for one
	// that is.
	elsewhere string
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	assignment   = regexp.MustCompile(`^(export\s+)?[A-Za-z_][A-Za-z0-9_.-]*\s*=`)
)

// readEnvironment reads the environment in a file: NAME=VALUE in each line, as
// env, Docker and Compose have it, or YAML with the env of a container or the
// environment of a service of Compose. Of a variable that is given twice the
// last value is kept.
func readEnvironment(file string, data []byte) (vars []given, notes []string, err error) {
	switch {
	case len(data) > MaxEnvBytes:
		return nil, nil, fmt.Errorf("%s: more than %d bytes, which no environment has", file, MaxEnvBytes)
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return nil, nil, fmt.Errorf("%s: no text in UTF-8: want NAME=VALUE in each line, or YAML", file)
	case blank(data):
	case assigns(data):
		vars, err = readLines(file, data)
	default:
		r := envReader{file: file}
		vars, err = r.read(data)
		notes = r.notes
	}
	if err != nil {
		return nil, nil, err
	}
	if len(vars) == 0 {
		return nil, nil, fmt.Errorf("%s: no variables: want NAME=VALUE in each line, or YAML with env or environment", file)
	}
	last := make(map[string]int)
	for i, v := range vars {
		last[v.name] = i
	}
	var kept []given
	for i, v := range vars {
		if last[v.name] == i {
			kept = append(kept, v)
		}
	}
	return kept, notes, nil
}

// blank reports whether a text has nothing but comments.
func blank(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false
		}
	}
	return true
}

// assigns reports whether the first line that is not empty and no comment is
// NAME=VALUE.
func assigns(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return assignment.MatchString(line)
		}
	}
	return false
}

// readLines reads NAME=VALUE lines.
func readLines(file string, data []byte) ([]given, error) {
	var out []given
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "export"); ok && strings.TrimLeft(rest, " \t") != rest {
			line = strings.TrimLeft(rest, " \t")
		}
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !ok || !variableName.MatchString(name) {
			return nil, fmt.Errorf("%s:%d: %s: want NAME=VALUE", file, n, yamlpos.Quote(strings.TrimSpace(name)))
		}
		value, err := unquote(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the value of %s %w", file, n, name, err)
		}
		out = append(out, interpolated(name, value, n))
		if len(out) > maxVariables {
			return nil, fmt.Errorf("%s:%d: more than %d variables", file, n, maxVariables)
		}
	}
	return out, nil
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

var reference = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*))?\}$`)

// interpolated returns a variable whose value may be one of Compose: ${NAME},
// or ${NAME:-DEFAULT}, of which the default is used.
func interpolated(name, value string, line int) given {
	v := given{name: name, value: value, line: line}
	if found := reference.FindStringSubmatch(value); found != nil {
		if v.value = found[2]; v.value == "" {
			v.elsewhere = "the variable " + found[1]
		}
	}
	return v
}

// envReader reads the environment in YAML.
type envReader struct {
	yamlpos.Collector
	file  string
	notes []string
}

// environment is a place of variables in YAML.
type environment struct {
	owner string // the name and image of the container or service
	at    yamlpos.Position
	node  *yamlpos.Node
}

func (r *envReader) read(data []byte) ([]given, error) {
	root := r.Parse(r.file, data, yamlpos.Options{MaxBytes: MaxEnvBytes})
	if root == nil {
		return nil, r.List().Err()
	}
	all := []environment{{node: root, at: root.Pos}}
	if !variables(root) {
		all = r.find(root, "", nil)
	}
	ours := slices.DeleteFunc(slices.Clone(all), func(e environment) bool { return !strings.Contains(e.owner, "ratelimit") })
	if len(all) > 1 {
		all = ours
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s: %d environments of a container or service with ratelimit in its name or image: give a file with one", r.file, len(all))
	}
	vars := r.variables(all[0].node)
	return vars, r.List().Err()
}

// variables reports whether a node is a list or a map of variables.
func variables(n *yamlpos.Node) bool {
	if n.Kind == yamlpos.Map {
		return len(n.Pairs) > 0 && !slices.ContainsFunc(n.Pairs, func(p yamlpos.Pair) bool {
			return p.Value.Kind != yamlpos.Scalar || strings.ToUpper(p.Key.Text) != p.Key.Text
		})
	}
	return n.Kind == yamlpos.List && len(n.Items) > 0 && !slices.ContainsFunc(n.Items, func(i *yamlpos.Node) bool {
		return i.Kind == yamlpos.List || i.Kind == yamlpos.Scalar && !assignment.MatchString(i.Text) ||
			i.Kind == yamlpos.Map && (scalar(i, "name") == nil || scalar(i, "value") == nil && len(values(i, "valueFrom")) == 0 && len(i.Pairs) > 1)
	})
}

// find returns the environments in a tree. name is the key of n.
func (r *envReader) find(n *yamlpos.Node, name string, out []environment) []environment {
	for _, item := range n.Items {
		out = r.find(item, "", out)
	}
	owner := strings.Join([]string{name, text(scalar(n, "name")), text(scalar(n, "image"))}, " ")
	for _, p := range n.Pairs {
		switch p.Key.Text {
		case "env", "environment":
			if p.Value.Kind != yamlpos.Scalar {
				out = append(out, environment{owner: owner, at: p.Key.Pos, node: p.Value})
			}
		case "envFrom", "env_file":
			r.notes = append(r.notes, fmt.Sprintf("%v: variables of %s are not checked: give their file, too", p.Key.Pos, p.Key.Text))
		default:
			out = r.find(p.Value, p.Key.Text, out)
		}
	}
	return out
}

// variables returns the variables of a list or a map.
func (r *envReader) variables(n *yamlpos.Node) []given {
	var out []given
	add := func(key *yamlpos.Node, name string, value *yamlpos.Node, elsewhere string) {
		var text string
		switch {
		case !variableName.MatchString(name):
			r.Errorf(key.Pos, "want letters, digits and _", "%s is no name of a variable", yamlpos.Quote(name))
		case len(out) == maxVariables:
			r.Errorf(key.Pos, "", "more than %d variables", maxVariables)
		case value.IsNull():
			out = append(out, given{name: name, line: key.Pos.Line, elsewhere: elsewhere})
		case r.Text(&text)(value, name):
			out = append(out, interpolated(name, text, key.Pos.Line))
		}
	}
	for _, p := range n.Pairs {
		add(p.Key, p.Key.Text, p.Value, "the environment of Compose")
	}
	for _, item := range n.Items {
		switch {
		case item.Kind == yamlpos.Scalar:
			name, value, ok := strings.Cut(item.Text, "=")
			if !ok {
				add(item, name, nil, "the environment of Compose")
				continue
			}
			v := yamlpos.TextNode(value)
			v.Pos = item.Pos
			add(item, strings.TrimSpace(name), v, "")
		case scalar(item, "name") == nil:
			r.Errorf(item.Pos, "write - name: NAME and value: VALUE", "a variable without a name")
		default:
			elsewhere := ""
			if len(values(item, "valueFrom")) > 0 {
				elsewhere = "valueFrom"
			}
			name := scalar(item, "name")
			add(name, name.Text, scalar(item, "value"), elsewhere)
		}
	}
	return out
}
