// Package suggest finds the word that a mistyped one was likely meant to be,
// for the hints of error messages, and writes the lists and the numbers in
// them. Its functions are pure and safe for concurrent use.
package suggest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// longest is the number of characters of the longest text that Closest
// compares.
const longest = 40

// Closest returns the word that text was likely meant to be: the same but for
// letter case and separators, at most two slips away (fewer in a short word),
// or the only one that begins with text. It returns "" when there is no such
// word or when two words are equally close. Words may occur several times.
func Closest(text string, words []string) string {
	if text == "" || utf8.RuneCountInString(text) > longest {
		return ""
	}
	fold := strings.NewReplacer("_", "", "-", "", " ", "", ".", "")
	folded := fold.Replace(strings.ToLower(text))
	best, prefixed := "", ""
	least, ties, prefixes := 3, 0, 0
	for _, w := range words {
		if strings.HasPrefix(w, text) && w != prefixed {
			prefixed = w
			prefixes++
		}
		switch d := distance(folded, fold.Replace(strings.ToLower(w))); {
		case d > len(folded)/3:
		case d < least:
			best, least, ties = w, d, 1
		case d == least && w != best:
			ties++
		}
	}
	switch {
	case ties == 1:
		return best
	case ties == 0 && prefixes == 1:
		return prefixed
	}
	return ""
}

// Hint returns "did you mean WORD?" where Closest finds a word, and otherwise
// the given hint.
func Hint(text string, words []string, otherwise string) string {
	if best := Closest(text, words); best != "" {
		return "did you mean " + best + "?"
	}
	return otherwise
}

// List joins words to "a, b and c".
func List(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// distance returns how many bytes must be changed, dropped, added or swapped
// with their neighbor to turn a into b.
func distance(a, b string) int {
	prev2, prev := []int{}, make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(prev[j+1]+1, row[j]+1, prev[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], prev2[j-1]+1)
			}
		}
		prev2, prev = prev, row
	}
	return prev[len(b)]
}

// Plural returns a number with its noun: "1 rule", "2 rules".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
