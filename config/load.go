package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/georld/rld/config/upstream"
	"github.com/georld/rld/internal/yamlpos"
)

// Sources are the sources of settings. The first source that gives a setting
// wins: Flags, the RLD_* variables of Environ, the variables of
// envoyproxy/ratelimit there (HOST, RUNTIME_ROOT, ...), the file, the defaults.
type Sources struct {
	// Flags holds the given flags by name, without the dashes.
	Flags map[string]string
	// Environ is the environment as os.Environ returns it. A variable with an
	// empty value counts as not set.
	Environ []string
	// Upstream is true for a program that is started under the name of
	// envoyproxy/ratelimit: the listeners for callers are then on all addresses
	// by default, and the limits in its folder, as there.
	Upstream bool
	// File is the path of the settings file. With "" it is the value of
	// RLD_CONFIG; without that there is no file.
	File string
}

// Loaded is a valid Config with the sources of its values.
type Loaded struct {
	Config Config
	// Warnings are for the log: settings without effect.
	Warnings []string
	// File is the path of the settings file that was read, "" for none.
	File string
	// XDSHeaders are headers for the xDS server that a variable gives, beside
	// those of Config.Limits.XDS.HeadersFile.
	XDSHeaders map[string]string

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
		out[i] = Setting{Name: f.Name, Value: f.get(), Origin: l.Origin(f.Name)}
	}
	return out
}

// Origin returns the source of a setting, by its name in the file.
func (l *Loaded) Origin(name string) Origin {
	if o, ok := l.origins[name]; ok {
		return o
	}
	return OriginDefault
}

// Load reads all sources and validates the result. The error is a Faults with
// every fault, or that of reading the file.
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

// gather applies all sources and validates the result. path is that of the
// settings file, "" for none. The error is that of reading it.
func gather(s Sources) (l *loader, path string, err error) {
	l = newLoader()
	if s.Upstream {
		l.asUpstream()
	}
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
	theirs := upstream.Only(env)
	l.upstream(theirs, s.namesLimits(env))
	l.upstreamUnused(env)
	l.environ(env)
	l.upstreamLast(theirs)
	l.flags(s.Flags)
	l.diskless()
	l.validate()
	return l, path, nil
}

// namesLimits reports whether a stronger source than RUNTIME_* names the
// limits.
func (s *Sources) namesLimits(env map[string]string) bool {
	_, path := s.Flags["limits"]
	_, server := s.Flags["limits-xds-server"]
	return path || server || env["RLD_LIMITS"] != "" || env["RLD_LIMITS_XDS_SERVER"] != ""
}

func (l *loader) loaded(path string) Loaded {
	return Loaded{Config: l.cfg, Warnings: l.warnings, File: path, XDSHeaders: l.xdsHeaders, origins: l.origins}
}

// loader fills in one Config, source by source, the weakest first.
type loader struct {
	cfg      Config
	table    []field
	origins  map[string]Origin
	nodes    map[string]yamlpos.Pair // of the settings that the file gives
	yaml     yamlpos.Collector       // of the file
	faults   Faults
	warnings []string
	named    bool // as the program of envoyproxy/ratelimit

	xdsHeaders map[string]string // nil for none
}

func newLoader() *loader {
	l := &loader{cfg: Default(), origins: make(map[string]Origin), nodes: make(map[string]yamlpos.Pair)}
	l.table = fields(&l.cfg)
	return l
}

// field returns the setting of a name, nil when there is none.
func (l *loader) field(name string) *field {
	i := slices.IndexFunc(l.table, func(f field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &l.table[i]
}

// set applies a value of a source other than the file. An invalid one is a
// fault, and the setting keeps the value of weaker sources.
func (l *loader) set(name, text string, from Origin) {
	f := l.field(name)
	if err := f.set(text); err != nil {
		l.fault(name, from, err.Error())
		return
	}
	l.origins[name] = from
	delete(l.nodes, name)
}

// fault adds a fault of a setting, "" for none, that another source than the
// file gives.
func (l *loader) fault(name string, from Origin, problem string) {
	l.faults = append(l.faults, &Fault{Field: name, Problem: problem, Origin: from})
}

func (l *loader) flags(given map[string]string) {
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(l.table, func(f field) bool { return f.Flag == flag && flag != "" })
		if i < 0 {
			l.fault("", fromFlag(flag), "is no flag of the settings")
			continue
		}
		l.set(l.table[i].Name, given[flag], fromFlag(flag))
	}
}

// faulty returns the settings with a fault.
func (l *loader) faulty() map[string]bool {
	known := make(map[string]bool)
	for _, f := range l.faults {
		known[l.settingOf(f.Field)] = true
	}
	return known
}

// validate adds the faults that Validate finds, each with its position or
// origin. A setting that has a fault already is not reported again.
func (l *loader) validate() {
	known := l.faulty()
	var found Faults
	if !errors.As(l.cfg.Validate(), &found) {
		return
	}
	for _, f := range found {
		name := l.settingOf(f.Field)
		if known[name] {
			continue
		}
		f.Origin = l.origins[name]
		if !l.locate(f, f.Field) && f.Origin == "" {
			l.locate(f, f.needs)
		}
		l.faults = append(l.faults, f)
	}
}

// locate sets the position of a fault to that of a setting in the file, or of a
// part of it, and reports whether the file gives it.
func (l *loader) locate(f *Fault, field string) bool {
	name := l.settingOf(field)
	p, ok := l.nodes[name]
	if !ok {
		return false
	}
	f.Position = p.Value.Pos
	if p.Value.IsNull() {
		f.Position = p.Key.Pos
	}
	if n := inside(p.Value, field[len(name):]); n != nil && n != p.Value {
		f.Position = n.Pos
	}
	f.Source = l.yaml.Line(f.Line)
	return true
}

// settingOf returns the name of the setting that a fault's field is, or is part
// of.
func (l *loader) settingOf(field string) string {
	for i := range l.table {
		rest, ok := strings.CutPrefix(field, l.table[i].Name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return l.table[i].Name
		}
	}
	return field
}

// inside returns the part of a value at a path such as ".eu-west-1.peers[1]",
// its key where the part is a list or a map, and nil when there is none. Names
// may have dots.
func inside(n *yamlpos.Node, path string) *yamlpos.Node {
	if n == nil || path == "" {
		return n
	}
	for i, item := range n.Items {
		if rest, ok := strings.CutPrefix(path, fmt.Sprintf("[%d]", i)); ok {
			return inside(item, rest)
		}
	}
	for _, p := range n.Pairs {
		rest, ok := strings.CutPrefix(path, "."+p.Key.Text)
		if ok && rest == "" && p.Value.Kind != yamlpos.Scalar {
			return p.Key
		}
		if found := inside(p.Value, rest); ok && found != nil {
			return found
		}
	}
	return nil
}
