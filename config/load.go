package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Sources is where settings are looked for. What comes first here wins:
// Flags, the RLD_* variables of Environ, upstream's variables there (HOST,
// RUNTIME_ROOT, ...), the file, the defaults.
type Sources struct {
	// Flags holds the flags that were given, by name without the dashes.
	Flags map[string]string
	// Environ is the environment as os.Environ returns it. Variables that
	// are set to nothing are not set.
	Environ []string
	// File is the path of a settings file; "" takes that of RLD_CONFIG, and
	// without it there is none.
	File string
}

// Loaded is a valid Config and where it came from.
type Loaded struct {
	Config Config
	// Warnings are for the log: what was set and has no effect.
	Warnings []string
	// File is the path of the settings file that was read, "" for none.
	File string

	origins map[string]Origin
}

// Setting is one value with its origin.
type Setting struct {
	Name, Value string
	Origin      Origin
}

// Settings lists every setting in the order of Fields.
func (l *Loaded) Settings() []Setting {
	c := l.Config
	table := fields(&c)
	out := make([]Setting, len(table))
	for i := range table {
		f := &table[i]
		out[i] = Setting{Name: f.name, Value: f.get(), Origin: l.Origin(f.name)}
	}
	return out
}

// Origin returns where a setting came from, by its name in the file.
func (l *Loaded) Origin(name string) Origin {
	if o, ok := l.origins[name]; ok {
		return o
	}
	return OriginDefault
}

// Load gathers the settings. The error holds everything that is wrong: it is
// a Faults, or says why the file cannot be read.
func Load(s Sources) (*Loaded, error) {
	l, path, err := gather(s)
	if err != nil {
		return nil, err
	}
	if len(l.faults) > 0 {
		l.faults.sort()
		return nil, l.faults
	}
	loaded := l.loaded(path)
	return &loaded, nil
}

// gather takes all sources over and validates the outcome. path is that of the
// settings file, "" for none; the error says why that cannot be read.
func gather(s Sources) (l *loader, path string, err error) {
	l = newLoader()
	env := parseEnviron(s.Environ)
	path = s.File
	if path == "" {
		path = env[configVariable]
	}
	if path != "" {
		if err := l.file(path); err != nil {
			return nil, "", err
		}
	}
	_, ownPath := s.Flags["limits"]
	l.upstream(env, ownPath || env["RLD_LIMITS"] != "")
	l.environ(env)
	l.upstreamLast(env)
	l.flags(s.Flags)
	l.validate()
	return l, path, nil
}

func (l *loader) loaded(path string) Loaded {
	return Loaded{Config: l.cfg, Warnings: l.warnings, File: path, origins: l.origins}
}

// loader fills in one Config, source by source from the weakest up.
type loader struct {
	cfg      Config
	table    []field
	origins  map[string]Origin
	places   map[string]place      // of the values that the file gave
	nodes    map[string]*yaml.Node // those values
	doc      document
	faults   Faults
	warnings []string
}

func newLoader() *loader {
	l := &loader{cfg: Default(), origins: make(map[string]Origin), places: make(map[string]place),
		nodes: make(map[string]*yaml.Node)}
	l.table = fields(&l.cfg)
	return l
}

// field returns the setting of a name, nil when there is none.
func (l *loader) field(name string) *field {
	i := slices.IndexFunc(l.table, func(f field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &l.table[i]
}

// set takes a value over from a source other than the file. A bad one is a
// fault, and the setting keeps what weaker sources gave.
func (l *loader) set(name, text string, from Origin) {
	f := l.field(name)
	if err := f.set(text); err != nil {
		l.faults = append(l.faults, &Fault{Field: name, Problem: err.Error(), Origin: from})
		return
	}
	l.origins[name] = from
	delete(l.places, name)
	delete(l.nodes, name)
}

func (l *loader) flags(given map[string]string) {
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(l.table, func(f field) bool { return f.flag == flag && flag != "" })
		if i < 0 {
			l.faults = append(l.faults, &Fault{Problem: "is no flag of the settings", Origin: fromFlag(flag)})
			continue
		}
		l.set(l.table[i].name, given[flag], fromFlag(flag))
	}
}

// validate adds what Validate finds, each fault with the place its value came
// from. A setting that has a fault already is not reported again.
func (l *loader) validate() {
	known := make(map[string]bool)
	for _, f := range l.faults {
		known[l.owner(f.Field)] = true
	}
	var found Faults
	if !errors.As(l.cfg.Validate(), &found) {
		return
	}
	for _, f := range found {
		name := l.owner(f.Field)
		if known[name] {
			continue
		}
		f.Origin = l.origins[name]
		if !l.locate(f, f.Field) && f.Origin == "" {
			l.locate(f, f.asks)
		}
		l.faults = append(l.faults, f)
	}
}

// locate puts a fault where a setting, or a part of one, stands in the file and
// reports whether it does.
func (l *loader) locate(f *Fault, field string) bool {
	name := l.owner(field)
	p, ok := l.places[name]
	if !ok {
		return false
	}
	if n := inside(l.nodes[name], field[len(name):]); n != nil && n != l.nodes[name] {
		p = placeOf(n)
	}
	l.doc.locate(f, p)
	return true
}

// owner returns the name of the setting that a fault's field is or is part of.
func (l *loader) owner(field string) string {
	for i := range l.table {
		rest, ok := strings.CutPrefix(field, l.table[i].name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return l.table[i].name
		}
	}
	return field
}

// inside returns the part of a value that a path such as ".eu-west-1.peers[1]"
// leads to, or its key where it is a list or a map; nil when there is none.
// Names may hold dots.
func inside(n *yaml.Node, path string) *yaml.Node {
	if n == nil || path == "" {
		return n
	}
	if n.Kind == yaml.SequenceNode {
		for i, item := range n.Content {
			if rest, ok := strings.CutPrefix(path, fmt.Sprintf("[%d]", i)); ok {
				return inside(item, rest)
			}
		}
		return nil
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		rest, ok := strings.CutPrefix(path, "."+key.Value)
		if ok && rest == "" && value.Kind != yaml.ScalarNode {
			return key
		}
		if found := inside(value, rest); ok && found != nil {
			return found
		}
	}
	return nil
}
