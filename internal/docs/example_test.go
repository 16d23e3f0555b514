package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutates is the command that makes the mutation of the example.
var mutates = regexp.MustCompile(`sed -i 's/([^/]+)/([^/]+)/' ([a-z/]+\.go)`)

// TestExample makes the mutation of the example of simulation.md. The
// scenario of the page finds it, and finds nothing in the code as it is.
func TestExample(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds rld twice")
	}
	page, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	sed := mutates.FindStringSubmatch(string(page))
	if sed == nil {
		t.Fatal("no command makes a mutation")
	}
	file, err := filepath.Abs("../../" + sed[3])
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil || strings.Count(string(source), sed[1]) != 1 {
		t.Fatalf("%s: want one place of %s, %v", sed[3], sed[1], err)
	}
	folder := t.TempDir()
	scenario := ""
	for _, block := range namedFile.FindAllStringSubmatch(string(page), -1) {
		if block[2] == "small.yaml" {
			scenario = block[1]
		}
	}
	changed, overlay, small := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, "small.yaml")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		changed: strings.Replace(string(source), sed[1], sed[2], 1), overlay: string(replace), small: scenario,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []struct {
		arg, want string
		code      int
	}{{"-overlay=" + overlay, "\nViolated: rights, admitted\n", 5}, {"-trimpath", "\nFine: ", 0}} {
		program := filepath.Join(folder, "rld")
		if out, err := exec.Command("go", "build", run.arg, "-o", program, "../../cmd/rld").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.Command(program, "sim", "run", small)
		out, _ := cmd.CombinedOutput() // the exit code is compared
		if code := cmd.ProcessState.ExitCode(); code != run.code || !strings.Contains(string(out), run.want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", run.arg, code, run.code, run.want, out)
		}
	}
}
