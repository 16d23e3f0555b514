package docs

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	// The type of the filter on the page.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/georld/rld/cmd/rld/importer"
)

// TestMoveEnvironment: the daemons of the page that moves a deployment have the
// environment of the Compose file of the reference, and no other one but what
// their step adds.
func TestMoveEnvironment(t *testing.T) {
	p := readPage(t, "docs/migrate.md")
	compose, err := os.ReadFile("../../examples/migrate/docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, service, ok := strings.Cut(string(compose), "\n  ratelimit:\n")
	want := assigned(service)
	if !ok || len(want) != 7 {
		t.Fatalf("the reference has the variables %v", want)
	}
	commands, _ := shellCommands(t, p)
	var daemons []string
	for _, c := range commands {
		if strings.HasSuffix(c, " rld serve") {
			daemons = append(daemons, c)
		}
	}
	_, block, _ := strings.Cut(p.text, "# compose-rld.yaml\n")
	block, _, _ = strings.Cut(block, "```")
	if len(daemons) != 2 {
		t.Fatalf("%d daemons", len(daemons))
	}
	for _, tc := range []struct {
		text string
		adds map[string]string
	}{
		{block, map[string]string{"SHADOW_MODE": "true", "USE_PROMETHEUS": "true"}},
		{daemons[0], map[string]string{"SHADOW_MODE": "true", "RUNTIME_ROOT": "examples/migrate"}},
		{daemons[1], map[string]string{"RUNTIME_ROOT": "examples/migrate"}},
	} {
		expected := maps.Clone(want)
		maps.Copy(expected, tc.adds)
		if d := cmp.Diff(expected, assigned(tc.text)); d != "" {
			t.Errorf("%s\n-want +got\n%s", tc.text, d)
		}
	}
}

var assignedVariable = regexp.MustCompile(`(?m)(?:^|\s)([A-Z_]+)=(\S+)`)

// assigned returns the variables that a text assigns.
func assigned(text string) map[string]string {
	out := make(map[string]string)
	for _, found := range assignedVariable.FindAllStringSubmatch(text, -1) {
		out[found[1]] = found[2]
	}
	return out
}

// checkForeignYAML reports whether a block is a file of another program, and
// fails the test for one that it would not read.
func checkForeignYAML(t *testing.T, p page, text string) bool {
	t.Helper()
	switch {
	case strings.Contains(text, "\n    environment:"), strings.Contains(text, "kind: EnvoyGateway\n"):
		// The environment is what matters.
		r, err := importer.Run(importer.Options{Path: "../../examples/migrate/ratelimit", Env: []byte(text), EnvName: p.name, Regions: 1})
		if err != nil || len(r.Environment) == 0 {
			t.Errorf("%s: %v\n%s", p.name, err, text)
		}
	case strings.Contains(text, "type.googleapis.com/envoy."):
		var filters []any
		if err := yaml.Unmarshal([]byte(text), &filters); err != nil || len(filters) == 0 {
			t.Errorf("%s: %v\n%s", p.name, err, text)
		}
		for _, f := range filters {
			data, err := json.Marshal(f)
			if err == nil {
				err = protojson.Unmarshal(data, new(hcm.HttpFilter))
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", p.name, err, text)
			}
		}
	default:
		return false
	}
	return true
}
