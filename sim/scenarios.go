package sim

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed scenarios/*.yaml
var scenarioFiles embed.FS

// ScenarioInfo describes a scenario that comes with the program.
type ScenarioInfo struct {
	Name, Title string
}

// Scenarios lists the scenarios that come with the program, by name.
func Scenarios() []ScenarioInfo {
	var all []ScenarioInfo
	for _, name := range scenarioNames() {
		if cfg, ok := Builtin(name); ok {
			all = append(all, ScenarioInfo{name, cfg.Title})
		}
	}
	return all
}

func scenarioNames() []string {
	files, _ := fs.Glob(scenarioFiles, "scenarios/*.yaml") // the pattern is a good one
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "scenarios/"), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// Builtin returns the scenario of a name, false when there is none.
func Builtin(name string) (*Config, bool) {
	data, ok := BuiltinSource(name)
	if !ok {
		return nil, false
	}
	cfg, err := ParseScenario("scenarios/"+name+".yaml", data)
	return cfg, err == nil // a test holds that all of them load
}

// BuiltinSource returns the YAML of the scenario of a name, false when there
// is none: something to start one's own from.
func BuiltinSource(name string) ([]byte, bool) {
	if strings.ContainsAny(name, "/\\") {
		return nil, false
	}
	data, err := scenarioFiles.ReadFile("scenarios/" + name + ".yaml")
	return data, err == nil
}
