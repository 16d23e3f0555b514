package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/georld/rld/config"
)

var (
	namedVariable = regexp.MustCompile(`\bRLD_[A-Z0-9_]*[A-Z0-9]\b`)
	namedSetting  = regexp.MustCompile("`([a-z_]+(?:\\.[a-z_]+)+)`")
)

// otherVariables are no settings of a daemon: of the commands, of sim and of
// the tests.
var otherVariables = []string{"RLD_CONFIG", "RLD_MUTATION", "RLD_E2E_LONG", "RLD_TOKEN_FILE"}

// notSettings are the last parts of names with dots that are files, or places
// in limits and answers.
var notSettings = []string{"rld", "yaml", "go", "md", "json", "former", "txt"}

// TestNamedSettings: every setting and every variable that a page names exists.
// The decisions in docs/adr may name former ones.
func TestNamedSettings(t *testing.T) {
	groups, names, variables := map[string]bool{}, map[string]bool{}, slices.Clone(otherVariables)
	for _, f := range config.Fields() {
		names[f.Name] = true
		for i, c := range f.Name {
			if c == '.' {
				groups[f.Name[:strings.Index(f.Name, ".")]], names[f.Name[:i]] = true, true
			}
		}
		if f.Env != "" {
			variables = append(variables, f.Env)
		}
	}
	for _, p := range pages(t) {
		if strings.HasPrefix(p.name, "docs/adr/") {
			continue
		}
		for i, line := range strings.Split(p.text, "\n") {
			for _, name := range namedVariable.FindAllString(line, -1) {
				if !slices.Contains(variables, name) {
					t.Errorf("%s:%d: there is no variable %s", p.name, i+1, name)
				}
			}
			if p.name == "docs/simulation.md" { // the settings there are of scenarios
				continue
			}
			for _, found := range namedSetting.FindAllStringSubmatch(line, -1) {
				name := found[1]
				group, last := name[:strings.Index(name, ".")], name[strings.LastIndex(name, ".")+1:]
				if groups[group] && !names[name] && !slices.Contains(notSettings, last) {
					t.Errorf("%s:%d: there is no setting %s", p.name, i+1, name)
				}
			}
		}
	}
}
