package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```")
)

// TestLinks: a relative link leads to a file that exists, and to a heading in
// it.
func TestLinks(t *testing.T) {
	for _, p := range pages(t) {
		for _, found := range mdLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(p.text, ""), -1) {
			link := found[1]
			if strings.Contains(link, "://") {
				continue
			}
			name, anchor, _ := strings.Cut(link, "#")
			target := p.name
			if name != "" {
				target = path.Join(path.Dir(p.name), name)
			}
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(target)))
			if info, _ := os.Stat(filepath.Join(root, filepath.FromSlash(target))); info != nil && info.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s: %v", p.name, link, err)
			} else if anchor != "" && !headings(string(data))[anchor] {
				t.Errorf("%s: %s: there is no such heading", p.name, link)
			}
		}
	}
}

// headings returns the anchors of a page as GitHub makes them: in lower case,
// blanks as dashes, other marks left out, repeated ones numbered.
func headings(text string) map[string]bool {
	out := make(map[string]bool)
	for _, found := range mdHeading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		anchor := strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")
		anchor = regexp.MustCompile(`[^\pL\pN_-]`).ReplaceAllString(anchor, "")
		if out[anchor] {
			anchor += "-1"
		}
		out[anchor] = true
	}
	return out
}

// TestWidth: text wraps at 100 columns. Tables, blocks and generated parts are
// as long as they are.
func TestWidth(t *testing.T) {
	for _, p := range pages(t) {
		text := codeBlock.ReplaceAllString(generatedPart.ReplaceAllString(p.text, ""), "")
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 && line[0] != '|' && line[0] != '-' {
				t.Errorf("%s: a line of %d columns: %s", p.name, n, line)
			}
		}
	}
}

// TestDecisions: each ADR begins with its number and has the same headings.
func TestDecisions(t *testing.T) {
	for _, p := range pages(t) {
		if path.Dir(p.name) != "docs/adr" {
			continue
		}
		number := strings.TrimLeft(path.Base(p.name)[:4], "0")
		if !strings.HasPrefix(p.text, "# "+number+". ") {
			t.Errorf("%s: it does not begin with its number", p.name)
		}
		for _, heading := range []string{"## Context\n", "## Decision\n", "## Consequences\n"} {
			if !strings.Contains(p.text, "\n"+heading) {
				t.Errorf("%s: no %s", p.name, strings.TrimSpace(heading))
			}
		}
	}
}
