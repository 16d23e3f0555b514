package docs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rewrite writes the generated parts into the pages instead of comparing them.
var rewrite = flag.Bool("rewrite", false, "write the generated parts of the documentation")

// root is the folder of the repository, as tests see it.
const root = "../.."

// page is a Markdown file and its text.
type page struct {
	name string // slash-separated, relative to the root
	text string
}

// readPage reads one page. The test fails when there is none.
func readPage(t *testing.T, name string) page {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return page{name, string(data)}
}

// pages returns README.md, CONTRIBUTING.md and all pages in docs, ADRs
// included, by name.
func pages(t *testing.T) []page {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/adr/*.md", "deploy/*/*.md", "examples/*/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			name, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.ToSlash(name))
		}
	}
	slices.Sort(names)
	out := make([]page, 0, len(names))
	for _, name := range names {
		out = append(out, readPage(t, name))
	}
	return out
}

// settle compares a page with the text that is generated for it, or writes the
// text.
func settle(t *testing.T, p page, want string) {
	t.Helper()
	if p.text == want {
		return
	}
	if *rewrite {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(p.name)), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is out of date: run make generate, then read the diff (-page +code):\n%s",
		p.name, cmp.Diff(strings.Split(p.text, "\n"), strings.Split(want, "\n")))
}

var generatedPart = regexp.MustCompile(`(?s)<!-- generated: ([a-z ]+) -->\n.*?<!-- end -->`)

// generate returns the text of a page with every generated part made anew. The
// test fails for a part that nothing generates, and for one that is missing.
func generate(t *testing.T, p page, parts map[string]func() string) string {
	t.Helper()
	seen := make(map[string]bool)
	text := generatedPart.ReplaceAllStringFunc(p.text, func(part string) string {
		name := generatedPart.FindStringSubmatch(part)[1]
		make := parts[name]
		if make == nil {
			t.Errorf("%s: nothing generates the part %q", p.name, name)
			return part
		}
		seen[name] = true
		return "<!-- generated: " + name + " -->\n" + make() + "<!-- end -->"
	})
	for name := range parts {
		if !seen[name] {
			t.Errorf("%s: the part %q is missing", p.name, name)
		}
	}
	return text
}

// section is the part of a page below a heading of the third level whose text
// is one word in backquotes.
type section struct {
	name  string
	facts string // the first paragraph
	body  string // what follows it
}

var sectionHeading = regexp.MustCompile("(?m)^### `([^`]+)`\n\n")

// sections returns the sections of a page in their order.
func (p page) sections() []section {
	var out []section
	heads := sectionHeading.FindAllStringSubmatchIndex(p.text, -1)
	for i, h := range heads {
		end := len(p.text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		text := p.text[h[1]:end]
		if next := regexp.MustCompile(`(?m)^##? `).FindStringIndex(text); next != nil {
			text = text[:next[0]]
		}
		facts, body, _ := strings.Cut(text, "\n\n")
		out = append(out, section{name: p.text[h[2]:h[3]], facts: strings.TrimSuffix(facts, "\n"), body: strings.TrimSpace(body)})
	}
	return out
}

// settleFacts compares the first paragraph of each section with the facts of
// the code. A name without a section and a section without a name fail the
// test, as does a section without a text of its own.
func settleFacts(t *testing.T, p page, names []string, facts func(name string) string) {
	t.Helper()
	want, has := p.text, make(map[string]bool)
	for _, s := range p.sections() {
		switch {
		case has[s.name]:
			t.Errorf("%s: %s has two sections", p.name, s.name)
		case !slices.Contains(names, s.name):
			t.Errorf("%s: %s is in the page and not in the code", p.name, s.name)
		case s.body == "":
			t.Errorf("%s: %s has no text", p.name, s.name)
		default:
			want = strings.Replace(want, "### `"+s.name+"`\n\n"+s.facts+"\n", "### `"+s.name+"`\n\n"+facts(s.name)+"\n", 1)
		}
		has[s.name] = true
	}
	for _, name := range names {
		if !has[name] {
			t.Errorf("%s: %s has no section", p.name, name)
		}
	}
	settle(t, p, want)
}

// listed joins texts in backquotes: "`a`, `b` or `c`".
func listed(texts []string) string {
	quoted := make([]string, len(texts))
	for i, s := range texts {
		quoted[i] = "`" + s + "`"
	}
	last := len(quoted) - 1
	if last < 1 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
