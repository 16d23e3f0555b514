package config

import (
	"bytes"
	"strings"
)

// fewBytes is the number of different bytes below which a secret is easy to
// guess. 16 random bytes in hexadecimal digits have 14 on average.
const fewBytes = 9

// commonWords are words of 6 and more letters that people make secrets of.
// Random ones have none of them.
var commonWords = []string{
	"password", "passw0rd", "passwort", "changeme", "change-me", "letmein", "welcome", "qwerty", "123456", "abcdef",
	"secret", "s3cret", "default", "example", "cluster", "dragon", "monkey", "administrator",
}

// guessable returns why a secret is easy to guess, "" for one that does not
// seem to be. It knows the common mistakes, and is no proof of a good secret.
func guessable(secret []byte) string {
	var seen [256]bool
	different, neighbors, plain := 0, 0, true
	for i, b := range secret {
		if !seen[b] {
			seen[b] = true
			different++
		}
		if i > 0 {
			if d := int(b) - int(secret[i-1]); -1 <= d && d <= 1 {
				neighbors++
			}
		}
		plain = plain && ('a' <= b && b <= 'z' || strings.IndexByte(" -_.,", b) >= 0)
	}
	lower := bytes.ToLower(secret)
	for _, w := range commonWords {
		if bytes.Contains(lower, []byte(w)) {
			return "it has a common word in it"
		}
	}
	switch {
	case repeats(secret):
		return "it is a shorter text repeated"
	case different < fewBytes:
		return "it has few different characters"
	case 2*neighbors > len(secret):
		return "its characters follow each other in the alphabet"
	case plain:
		return "it has small letters only, as words do"
	}
	return ""
}

// repeats reports whether a text is a shorter one, again and again.
func repeats(text []byte) bool {
	for n := 1; n <= len(text)/2; n++ {
		if bytes.Equal(text[n:], text[:len(text)-n]) {
			return true
		}
	}
	return false
}
