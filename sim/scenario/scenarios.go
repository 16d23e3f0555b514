package scenario

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/georld/rld/sim"
)

//go:embed scenarios/*.yaml
var scenarioFiles embed.FS

// Names lists the scenarios that come with the program.
func Names() []string {
	files, _ := fs.Glob(scenarioFiles, "scenarios/*.yaml") // the pattern is a good one
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "scenarios/"), ".yaml"))
	}
	return names
}

// Builtin returns the scenario of a name, false when there is none.
func Builtin(name string) (*sim.Config, bool) {
	data, ok := Source(name)
	if !ok {
		return nil, false
	}
	cfg, err := Parse("scenarios/"+name+".yaml", data)
	return cfg, err == nil // a test holds that all of them load
}

// Source returns the YAML of the scenario of a name, false when there
// is none: something to start one's own from.
func Source(name string) ([]byte, bool) {
	if strings.ContainsAny(name, "/\\") {
		return nil, false
	}
	data, err := scenarioFiles.ReadFile("scenarios/" + name + ".yaml")
	return data, err == nil
}
