package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Finding is one violation of a rule.
type Finding struct {
	File string // slash-separated, relative to the root
	Line int    // from 1
	Rule string
	Text string
}

// String formats the finding as a compiler would, so that editors can jump.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Text)
}

// file is one parsed Go file.
type file struct {
	name      string // slash-separated, relative to the root
	pkg       string // its folder, likewise
	test      bool
	generated bool
	lines     int
	code      int // lines that hold code
	comments  int // lines that hold comments alone
	src       []string
	syntax    *ast.File
}

// tabs returns how many tabs the line, counted from 1, begins with.
func (f *file) tabs(line int) int {
	text := f.src[line-1]
	return len(text) - len(strings.TrimLeft(text, "\t"))
}

// alone reports whether the line, counted from 1, holds a comment alone.
func (f *file) alone(line int) bool {
	return strings.HasPrefix(strings.TrimLeft(f.src[line-1], "\t"), "//")
}

// count counts the lines that hold code and those that hold comments alone.
func (f *file) count() {
	for i, line := range f.src {
		switch {
		case strings.TrimSpace(line) == "":
		case f.alone(i + 1):
			f.comments++
		default:
			f.code++
		}
	}
}

// checker collects findings about one tree.
type checker struct {
	policy   *policy
	words    map[string][]word
	module   string
	fset     *token.FileSet
	files    []*file // by package and name
	findings []Finding
}

// Check holds the Go files below root, the folder of a go.mod, to the policy
// and returns the findings by file and line. Folders called testdata and
// those that the go command ignores are left out; nested modules are not. An
// error means that the tree could not be read or does not parse.
func Check(root string) ([]Finding, error) {
	p, err := parsePolicy(policyText)
	if err != nil {
		return nil, err
	}
	words, err := parseWords(wordsText)
	if err != nil {
		return nil, err
	}
	c := &checker{policy: p, words: words, fset: token.NewFileSet()}
	if c.module, err = moduleOf(root); err != nil {
		return nil, err
	}
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return c.visit(root, path, d)
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(c.files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
	c.checkTable()
	for _, f := range c.files {
		c.checkImports(f)
		c.checkPurity(f)
		c.checkSecrets(f)
		c.checkStyle(f)
		c.checkFold(f)
		c.checkWords(f)
	}
	c.checkPackages()
	c.checkComments()
	c.checkShape()
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return c.findings, nil
}

// moduleOf returns the module path that root's go.mod declares.
func moduleOf(root string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mod)) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "module" {
			return words[1], nil
		}
	}
	return "", fmt.Errorf("%s: no module line", filepath.Join(root, "go.mod"))
}

// visit parses one file of the tree or leaves a folder out.
func (c *checker) visit(root, name string, d fs.DirEntry) error {
	base := d.Name()
	if d.IsDir() {
		if name != root && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
			return filepath.SkipDir
		}
		return nil
	}
	if !strings.HasSuffix(base, ".go") {
		return nil
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	syntax, err := parser.ParseFile(c.fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{
		src:       strings.Split(string(src), "\n"),
		name:      rel,
		pkg:       path.Dir(rel),
		test:      strings.HasSuffix(base, "_test.go"),
		generated: ast.IsGenerated(syntax),
		lines:     bytes.Count(src, []byte{'\n'}),
		syntax:    syntax,
	}
	f.count()
	c.files = append(c.files, f)
	return nil
}

// report adds a finding about the code of f at pos.
func (c *checker) report(f *file, pos token.Pos, rule, format string, args ...any) {
	c.findings = append(c.findings, Finding{
		File: f.name,
		Line: c.fset.Position(pos).Line,
		Rule: rule,
		Text: fmt.Sprintf(format, args...),
	})
}

// importPath returns the path of an import.
func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "\"`") }
