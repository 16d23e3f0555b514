package lint

import (
	_ "embed" // For the list of words.
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// ruleWord holds names and texts to one word for one thing.
const ruleWord = "word"

// wordsFile is the name that findings about the list itself carry.
const wordsFile = "internal/lint/words.txt"

//go:embed words.txt
var wordsText string

// word is a word that is not used, with the one that is used instead.
type word struct {
	name, text bool     // where it is banned: identifiers and file names, texts
	in, out    []string // folders, patterns as in the policy; "..." is all
	use        string
	except     []string // identifiers and phrases in which it is right
}

// parseWords reads the list, by lower-case word. Errors name the line.
func parseWords(text string) (map[string][]word, error) {
	all := make(map[string][]word)
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "|")
		if len(columns) != 5 || strings.TrimSpace(columns[3]) == "" {
			return nil, fmt.Errorf("%s:%d: want WORDS | WHERE | IN | USE | EXCEPT", wordsFile, i+1)
		}
		w := word{use: strings.TrimSpace(columns[3])}
		for _, where := range strings.Fields(columns[1]) {
			switch where {
			case "name":
				w.name = true
			case "text":
				w.text = true
			default:
				return nil, fmt.Errorf("%s:%d: want name or text, not %q", wordsFile, i+1, where)
			}
		}
		for _, folder := range strings.Fields(columns[2]) {
			if left, out := strings.CutPrefix(folder, "-"); out {
				w.out = append(w.out, left)
			} else {
				w.in = append(w.in, folder)
			}
		}
		for _, phrase := range strings.Split(columns[4], ";") {
			if phrase = strings.TrimSpace(phrase); phrase != "" {
				w.except = append(w.except, phrase)
			}
		}
		for _, name := range strings.Fields(columns[0]) {
			all[name] = append(all[name], w)
		}
	}
	return all, nil
}

// covers reports whether w is banned in the folder pkg.
func (w word) covers(pkg string) bool {
	match := func(pattern string) bool {
		folder, below := strings.CutSuffix(pattern, "...")
		folder = strings.TrimSuffix(folder, "/")
		return folder == "" || pkg == folder || below && within(pkg, folder)
	}
	return slices.ContainsFunc(w.in, match) && !slices.ContainsFunc(w.out, match)
}

// allows reports whether one of the exceptions covers name, an identifier or a
// text, or appears as a phrase in its lower-case words.
func (w word) allows(name, words string) bool {
	return slices.ContainsFunc(w.except, func(e string) bool {
		identifier, exact := strings.CutPrefix(e, "=")
		return exact && name == identifier || !exact && strings.Contains(words, e)
	})
}

// camelWords splits an identifier or the name of a file into lower-case words.
func camelWords(identifier string) []string {
	var out []string
	runes := []rune(identifier)
	for start, i := 0, 1; i <= len(runes); i++ {
		if i < len(runes) && !wordStarts(runes, i) {
			continue
		}
		out = append(out, strings.ToLower(strings.Trim(string(runes[start:i]), "_-.")))
		start = i
	}
	return out
}

// wordStarts reports whether a new word of a camel-case name begins at i > 0.
func wordStarts(r []rune, i int) bool {
	upper, before := unicode.IsUpper(r[i]), unicode.IsUpper(r[i-1])
	return !unicode.IsLetter(r[i-1]) || !unicode.IsLetter(r[i]) || upper && !before ||
		upper && before && i+1 < len(r) && unicode.IsLower(r[i+1])
}

// checkWords holds the names and the texts of a file to the list.
func (c *checker) checkWords(f *file) {
	if f.generated {
		return
	}
	base := strings.TrimSuffix(path.Base(f.name), ".go")
	c.checkName(f, f.syntax.Package, strings.TrimSuffix(base, "_test"))
	for _, group := range f.syntax.Comments {
		c.checkText(f, group.Pos(), group.Text())
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr: // Its name is checked where it is declared.
			ast.Inspect(n.X, visit)
			return false
		case *ast.Ident:
			c.checkName(f, n.Pos(), n.Name)
		case *ast.BasicLit:
			if n.Kind == token.STRING && !f.test {
				if text, err := strconv.Unquote(n.Value); err == nil {
					c.checkText(f, n.Pos(), text)
				}
			}
		}
		return true
	}
	ast.Inspect(f.syntax, visit)
}

// checkName reports banned words of an identifier.
func (c *checker) checkName(f *file, pos token.Pos, name string) {
	parts := camelWords(name)
	for _, part := range parts {
		for _, w := range c.words[part] {
			if w.name && w.covers(f.pkg) && !w.allows(name, strings.Join(parts, " ")) {
				c.report(f, pos, ruleWord, "%s: not %q but %s", name, part, w.use)
			}
		}
	}
}

// checkText reports banned words of a text.
func (c *checker) checkText(f *file, pos token.Pos, text string) {
	lower := strings.ToLower(text)
	for part := range strings.FieldsFuncSeq(lower, func(r rune) bool { return !unicode.IsLetter(r) }) {
		for _, w := range c.words[part] {
			if w.text && w.covers(f.pkg) && !w.allows(text, strings.Join(strings.Fields(lower), " ")) {
				c.report(f, pos, ruleWord, "text %.60q: not %q but %s", strings.TrimSpace(text), part, w.use)
			}
		}
	}
}
