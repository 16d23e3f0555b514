package docs

import (
	"regexp"
	"strings"
	"testing"
)

// formerWords are words that others have replaced, in every meaning that a page
// could use them in, and words that are not used of data and messages.
var formerWords = regexp.MustCompile(`(?i)\b(abroad|siblings?|bureau|notary|parley|giveback|hunger|hungry|gifts?|` +
	`donat(?:e|es|ed|ion|ions)|rubbish|retell|spill|parked|unparked|turned away|whoever|whom|somebody|` +
	`tells?|told|says?|said|hears?|heard)\b`)

// TestWords holds the pages to the words that the program uses. Package
// comments and help texts are checked where they are written.
func TestWords(t *testing.T) {
	for _, p := range pages(t) {
		text := codeBlock.ReplaceAllStringFunc(generatedPart.ReplaceAllStringFunc(p.text, keepLines), keepLines)
		for i, line := range strings.Split(text, "\n") {
			if found := formerWords.FindString(line); found != "" {
				t.Errorf("%s:%d: %q: use the word of the glossary in docs/concepts.md: %s", p.name, i+1, found, line)
			}
		}
	}
}

// keepLines returns as many empty lines as a text has.
func keepLines(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }
