package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/georld/rld/cmd/rld/limitstest"
	"github.com/georld/rld/config"
	"github.com/georld/rld/daemon"
	"github.com/georld/rld/limits"
	"github.com/georld/rld/limits/xds"
	"github.com/georld/rld/server/auth"
	"github.com/georld/rld/sim/scenario"
)

// TestYAMLBlocks reads every YAML block of the pages by its kind: a scenario of
// the simulator, limits, an overlay of limits, tokens, or settings.
func TestYAMLBlocks(t *testing.T) {
	for _, p := range pages(t) {
		for _, block := range yamlBlock.FindAllStringSubmatch(p.text, -1) {
			text := block[1]
			switch {
			case checkForeignYAML(t, p, text):
			case strings.HasPrefix(text, "tokens:"):
				if _, err := auth.Parse(p.name, []byte(text)); err != nil {
					t.Errorf("%s: %v\n%s", p.name, err, text)
				}
			case strings.Contains(text, "workloads:"):
				if _, err := scenario.Parse(p.name, []byte(text)); err != nil {
					t.Errorf("%s: %v\n%s", p.name, err, text)
				}
			case strings.HasPrefix(text, "tests:"):
				playTests(t, p.name, text)
			case strings.HasPrefix(text, "# overlay.yaml"):
				if _, err := xds.ParseOverlay(p.name, []byte(text)); err != nil {
					t.Errorf("%s: %v\n%s", p.name, err, text)
				}
			case strings.Contains(text, "\ndescriptors:"):
				if _, faults := (example{}).parse(text); faults != "" {
					t.Errorf("%s: %s\n%s", p.name, faults, text)
				}
			default:
				path := filepath.Join(t.TempDir(), "rld.yaml")
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := config.Load(settingsOf(text, path)); err != nil {
					t.Errorf("%s: %v\n%s", p.name, err, text)
				}
			}
		}
	}
}

// settingsOf adds the settings that a block may leave out: the region, the
// secret and weights need each other.
func settingsOf(text, path string) config.Sources {
	s := config.Sources{File: path, Flags: map[string]string{}}
	if strings.Contains(text, "regions:") {
		if !strings.Contains(text, "region:") {
			s.Flags["region"] = "us-east-1"
		}
		for _, listener := range []string{"grpc", "http", "admin", "peer"} {
			s.Flags[listener+"-insecure"] = "true"
		}
		s.Flags["cluster-secret-file"] = "secret"
	}
	return s
}

// playTests plays a block of tests against the example limits.
func playTests(t *testing.T, page, text string) {
	path := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, found := limits.Parse(daemon.ReadLimits(&config.Limits{Path: "../../examples/limits"}).Files, limits.Options{})
	if set == nil {
		t.Fatal(found)
	}
	if r, err := limitstest.Run(set, []string{path}); err != nil || !r.OK {
		t.Errorf("%s: %v %+v\n%s", page, err, r, text)
	}
}
