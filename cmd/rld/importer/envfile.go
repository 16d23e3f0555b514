package importer

import (
	"bytes"
	"fmt"
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
	of        syntax
}

// readEnvironment reads the environment in a file: NAME=VALUE in each line, as
// env, Docker and Compose have it, or YAML with the env of a container or the
// environment of a service of Compose. Of a variable that is given twice the
// last value is kept.
func readEnvironment(file string, data []byte) (vars []given, notes []string, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // of editors that write one
	switch {
	case len(data) > MaxEnvBytes:
		return nil, nil, fmt.Errorf("%s: more than %d bytes, which no environment has", file, MaxEnvBytes)
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return nil, nil, fmt.Errorf("%s: no text in UTF-8: want NAME=VALUE in each line, or YAML", file)
	case blank(data):
	case assigns(data):
		vars, notes, err = readLines(file, data)
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
		return nil, r.faults()
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
	return vars, r.faults()
}

// faults returns the faults without the lines of the file, which may be
// secrets.
func (r *envReader) faults() error {
	list := r.List()
	for i := range list {
		list[i].Source = ""
	}
	return list.Err()
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
	add := func(key *yamlpos.Node, v given, value *yamlpos.Node) {
		v.line = key.Pos.Line
		switch {
		case v.name == "" || strings.ContainsAny(v.name, "=\x00"):
			r.Errorf(key.Pos, "want letters, digits and _", "%s is no name of a variable", yamlpos.Quote(v.name))
		case len(out) == maxVariables:
			r.Errorf(key.Pos, "", "more than %d variables", maxVariables)
		case value.IsNull():
			out = append(out, v)
		case value.Kind != yamlpos.Scalar:
			r.Errorf(value.Pos, "write "+v.name+": some text", "%s is %s", v.name, value.Kind)
		default:
			// Of a number, too: the program gets its text.
			v.value, v.elsewhere = value.Text, ""
			out = append(out, v)
		}
	}
	for _, p := range n.Pairs {
		add(p.Key, given{name: p.Key.Text, elsewhere: composeEnvironment}, p.Value)
	}
	for _, item := range n.Items {
		name := scalar(item, "name")
		switch {
		case item.Kind == yamlpos.Scalar && assignment.MatchString(item.Text):
			name, value, _ := strings.Cut(item.Text, "=")
			v := yamlpos.TextNode(value)
			v.Pos = item.Pos
			add(item, given{name: strings.TrimSpace(name)}, v)
		case item.Kind == yamlpos.Scalar && variableName.MatchString(item.Text):
			add(item, given{name: item.Text, elsewhere: composeEnvironment}, nil)
		case item.Kind == yamlpos.Scalar:
			r.notes = append(r.notes, fmt.Sprintf("%v: neither NAME=VALUE nor NAME, and not read", item.Pos))
		case name == nil:
			r.Errorf(item.Pos, "write - name: NAME and value: VALUE", "a variable without a name")
		default:
			v := given{name: name.Text, of: kubernetes}
			if len(values(item, "valueFrom")) > 0 {
				v.elsewhere = "valueFrom"
			}
			add(name, v, scalar(item, "value"))
		}
	}
	for i := range out {
		out[i].refer()
	}
	return out
}

// composeEnvironment is the source of a variable without a value.
const composeEnvironment = "the environment of Compose"
