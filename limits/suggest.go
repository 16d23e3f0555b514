package limits

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Closest returns the word that text was likely meant to be: the same but for
// letter case and separators, or at most two slips away, fewer in a short
// word. It returns "" when there is none or when two are as close.
func Closest(text string, words []string) string {
	if utf8.RuneCountInString(text) > 40 {
		return ""
	}
	fold := strings.NewReplacer("_", "", "-", "", " ", "", ".", "")
	plain := fold.Replace(strings.ToLower(text))
	best, at, tied := "", 3, false
	for _, w := range words {
		d := distance(plain, fold.Replace(strings.ToLower(w)))
		if d > len(plain)/3 {
			continue
		}
		if d < at {
			best, at, tied = w, d, false
		} else if d == at {
			tied = true
		}
	}
	if tied {
		return ""
	}
	return best
}

// distance returns how many letters must be changed, dropped, added or swapped
// with their neighbor to make b of a.
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

// unique returns the only word that begins with text, "" when there is none
// or more than one.
func unique(text string, words []string) string {
	starts := func(w string) bool { return text != "" && strings.HasPrefix(w, text) }
	i := slices.IndexFunc(words, starts)
	if i < 0 || slices.ContainsFunc(words[i+1:], starts) {
		return ""
	}
	return words[i]
}
