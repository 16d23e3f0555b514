package daemon

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// sample is a call to paste that meets a limit.
type sample struct {
	domain  string
	entries []rules.Entry
}

// exampleCall meets a limit of the embedded examples.
var exampleCall = [...]rules.Entry{{Key: "tier", Value: "free"}, {Key: "user_id", Value: "abc"},
	{Key: "endpoint", Value: "/login"}}

// newSample returns a call that meets a limit of the set: the one of the
// examples where it does, else one for the first rule that has a limit. It is
// false when no call that fits on a line meets any.
func newSample(set *rules.Set) (sample, bool) {
	s := sample{"edge", exampleCall[:]}
	if s.meetsLimit(set) {
		return s, true
	}
	for _, r := range set.Rules() {
		if !limited(r) {
			continue
		}
		if s := sampleOf(r); s.pastes() && s.meetsLimit(set) {
			return s, true
		}
	}
	return sample{}, false
}

// sampleOf fills in what a rule leaves open. The path is for people, and a
// value that holds " > " is taken apart in the wrong place, so that the caller
// asks whether the call meets a limit.
func sampleOf(r *rules.Rule) sample {
	s := sample{domain: r.Domain}
	for part := range strings.SplitSeq(r.Path, " > ") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			value = "abc"
		}
		s.entries = append(s.entries, rules.Entry{Key: key, Value: strings.ReplaceAll(value, "*", "x")})
	}
	return s
}

func limited(r *rules.Rule) bool { return r != nil && r.Limit != nil && !r.Limit.Unlimited }

func (s sample) meetsLimit(set *rules.Set) bool {
	d := set.Domain(s.domain)
	return d != nil && limited(d.Match(s.entries))
}

// pastes reports whether the call can be written on a line of a shell. A key
// with a dash in front would be a flag.
func (s sample) pastes() bool {
	plain := func(text string) bool {
		return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	}
	return plain(s.domain) && len(s.entries) <= node.MaxEntries &&
		!slices.ContainsFunc(s.entries, func(e rules.Entry) bool {
			return !plain(e.Key) || !plain(e.Value) || strings.HasPrefix(e.Key, "-")
		})
}

// query is the call as the query of /v1/check.
func (s sample) query() string {
	pairs := make([]string, len(s.entries))
	between, join, prefix := "=", "&", ""
	if slices.ContainsFunc(s.entries, reservedParam) {
		between, join, prefix = ":", ",", "d="
	}
	for i, e := range s.entries {
		pairs[i] = escapeQuery(e.Key) + between + escapeQuery(e.Value)
	}
	return "domain=" + escapeQuery(s.domain) + "&" + prefix + strings.Join(pairs, join)
}

// reservedParam reports whether a key cannot be a parameter of its own.
func reservedParam(e rules.Entry) bool {
	switch e.Key {
	case "domain", "d", "hits", "peek", "deny_status", "headers":
		return true
	}
	return false
}

// escapeQuery escapes what a query or quotes of a shell take for their own.
// Slashes are plain there, and read better so.
func escapeQuery(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }

// arguments is the call as arguments of rld check.
func (s sample) arguments() string {
	words := []string{"--domain", shellQuote(s.domain)}
	for _, e := range s.entries {
		words = append(words, shellQuote(e.Key+"="+e.Value))
	}
	return strings.Join(words, " ")
}

// shellQuote returns a word as a POSIX shell reads it.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("@%_+=:,./-", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
