package docs

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitecture generates the table of layers from the policy of
// internal/lint and the comments of the packages, and holds the page to
// packages and types that exist.
func TestArchitecture(t *testing.T) {
	p := readPage(t, "docs/architecture.md")
	text := generate(t, p, map[string]func() string{"layers": func() string { return layerTable(t) }})
	settle(t, p, text)
	folders := make(map[string]string) // the folder of each package by its name
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if name := d.Name(); strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "bin" {
			return fs.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			folders[d.Name()] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("`([a-z]+)\\.([A-Z][A-Za-z]+)`").FindAllStringSubmatch(text, -1) {
		if !declares(t, folders[found[1]], found[2]) {
			t.Errorf("docs/architecture.md: there is no %s.%s", found[1], found[2])
		}
	}
	for _, found := range regexp.MustCompile("`([a-z]+(?:/[a-z]+)+)`").FindAllStringSubmatch(text, -1) {
		if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(found[1]))); err != nil || !info.IsDir() {
			t.Errorf("docs/architecture.md: there is no folder %s", found[1])
		}
	}
}

// declares reports whether the package in a folder has an exported name at the
// top level.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	if folder == "" {
		return false
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == name {
					return true
				}
			case *ast.GenDecl:
				if slices.ContainsFunc(d.Specs, func(s ast.Spec) bool {
					typ, ok := s.(*ast.TypeSpec)
					return ok && typ.Name.Name == name
				}) {
					return true
				}
			}
		}
	}
	return false
}

// synopsis returns the first sentence of a package's comment without its
// beginning, or a text for a package without one.
func synopsis(t *testing.T, folder, text string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if s := new(doc.Package).Synopsis(file.Doc.Text()); s != "" && !strings.HasSuffix(f, "_test.go") {
			_, s, _ = strings.Cut(s, " ") // Package or Command
			_, s, _ = strings.Cut(s, " ") // its name
			return strings.TrimSuffix(s, ".")
		}
	}
	return text
}

var (
	policyLayer = regexp.MustCompile(`^layer (\d)$`)
	policyRow   = regexp.MustCompile(`^([a-z][a-z0-9/]*)\s+(.*?)-- (.*)$`)
)

// layerTable returns the layers of internal/lint/policy.txt, the highest first.
func layerTable(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "internal", "lint", "policy.txt"))
	if err != nil {
		t.Fatal(err)
	}
	layers := make(map[string][]string)
	layer := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if found := policyLayer.FindStringSubmatch(line); found != nil {
			layer = found[1]
			continue
		}
		if strings.HasPrefix(line, "only ") || strings.HasPrefix(line, "std ") {
			layer = ""
		}
		found := policyRow.FindStringSubmatch(line)
		if layer == "" || found == nil || strings.Contains(found[2], "planned") {
			continue
		}
		pure := ""
		if slices.Contains(strings.Fields(found[2]), "pure") {
			pure = "pure"
		}
		layers[layer] = append(layers[layer], fmt.Sprintf("| %s | `%s` | %s | %s |\n",
			layer, found[1], pure, synopsis(t, found[1], found[3])))
	}
	if len(layers) < 8 {
		t.Fatalf("policy.txt has %d layers that this test can read", len(layers))
	}
	var b strings.Builder
	b.WriteString("| layer | package | | it |\n|---|---|---|---|\n")
	for n := 9; n >= 0; n-- {
		for _, row := range layers[fmt.Sprint(n)] {
			b.WriteString(row)
		}
	}
	return b.String()
}
