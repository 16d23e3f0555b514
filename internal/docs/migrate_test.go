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
		{daemons[0], map[string]string{
			"SHADOW_MODE": "true", "USE_PROMETHEUS": "true", "RUNTIME_ROOT": "examples/migrate",
			"PORT": "18080", "GRPC_PORT": "18081", "DEBUG_PORT": "16070", "PROMETHEUS_ADDR": "127.0.0.1:19090",
		}},
		{daemons[1], map[string]string{"RUNTIME_ROOT": "examples/migrate"}},
	} {
		expected := maps.Clone(want)
		maps.Copy(expected, tc.adds)
		if d := cmp.Diff(expected, assigned(tc.text)); d != "" {
			t.Errorf("%s\n-want +got\n%s", tc.text, d)
		}
	}
}

// TestMovePorts: the commands of the page ask the ports that its Compose files
// publish for the daemon of their step: until the switch those of the service
// rld, and then those of the reference.
func TestMovePorts(t *testing.T) {
	p := readPage(t, "docs/migrate.md")
	reference, err := os.ReadFile("../../examples/migrate/docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(p.text, "\n## Docker Compose\n")
	page, _, _ = strings.Cut(page, "\n## ")
	before, after, ok := strings.Cut(page, "\n### 3. Switch\n")
	_, block, _ := strings.Cut(before, "# compose-rld.yaml\n")
	block, _, _ = strings.Cut(block, "```")
	_, service, found := strings.Cut(string(reference), "\n  ratelimit:\n")
	if !ok || !found {
		t.Fatal("the page or the Compose file has another form")
	}
	for text, ports := range map[string]map[string]string{before: publishedPorts(block), after: publishedPorts(service)} {
		asked := regexp.MustCompile(`curl -s http://127\.0\.0\.1:([0-9]+)/(\w+)`).FindAllStringSubmatch(text, -1)
		for _, a := range asked {
			if want := map[string]string{"json": "8080", "metrics": "9090"}[a[2]]; ports[a[1]] != want {
				t.Errorf("%s: the published ports are %v, want %s there", a[0], ports, want)
			}
		}
		if len(asked) == 0 {
			t.Error("no command asks a daemon")
		}
	}
}

// publishedPorts returns the ports of the container by those of the machine.
func publishedPorts(service string) map[string]string {
	out := make(map[string]string)
	for _, found := range regexp.MustCompile(`([0-9]{4,5}):([0-9]{4,5})\b`).FindAllStringSubmatch(service, -1) {
		out[found[1]] = found[2]
	}
	return out
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
