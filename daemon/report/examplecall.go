package report

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// exampleCall is a call that meets a limit, for the banner.
type exampleCall struct {
	domain  string
	entries []rules.Entry
}

// embeddedCall meets a limit of the embedded examples.
var embeddedCall = [...]rules.Entry{
	{Key: "tier", Value: "free"},
	{Key: "user_id", Value: "abc"},
	{Key: "endpoint", Value: "/login"},
}

// newExampleCall returns a call that meets a limit of the set: the one of the
// examples if it does, else one for the first rule with a limit. It returns
// false if no call that fits on a line meets a limit.
func newExampleCall(set *rules.Set) (exampleCall, bool) {
	s := exampleCall{"edge", embeddedCall[:]}
	if s.meetsLimit(set) {
		return s, true
	}
	for _, r := range set.Rules() {
		if !limited(r) {
			continue
		}
		if s := callFor(r); s.pastes() && s.meetsLimit(set) {
			return s, true
		}
	}
	return exampleCall{}, false
}

// callFor returns a call for a rule, with values where the rule has none. It
// may not match: a value that contains " > " is split in the wrong place.
func callFor(r *rules.Rule) exampleCall {
	s := exampleCall{domain: r.Domain}
	for part := range strings.SplitSeq(r.Path, separator) {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			value = "abc"
		}
		s.entries = append(s.entries, rules.Entry{Key: key, Value: strings.ReplaceAll(value, "*", "x")})
	}
	return s
}

func limited(r *rules.Rule) bool { return r != nil && r.Limit != nil && !r.Limit.Unlimited }

func (s exampleCall) meetsLimit(set *rules.Set) bool {
	d := set.Domain(s.domain)
	return d != nil && limited(d.Match(s.entries))
}

// pastes reports whether the call fits on a line of a shell. A key that starts
// with a dash would be a flag.
func (s exampleCall) pastes() bool {
	plain := func(text string) bool {
		return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	}
	return plain(s.domain) && len(s.entries) <= node.MaxEntries &&
		!slices.ContainsFunc(s.entries, func(e rules.Entry) bool {
			return !plain(e.Key) || !plain(e.Value) || strings.HasPrefix(e.Key, "-")
		})
}

// query returns the call as the query of /v1/check.
func (s exampleCall) query() string {
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

// escapeQuery escapes the special characters of queries and of shell quotes.
// Slashes need no escape.
func escapeQuery(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }

// arguments returns the call as the arguments of rld check.
func (s exampleCall) arguments() string {
	words := []string{"--domain", shellQuote(s.domain)}
	for _, e := range s.entries {
		words = append(words, shellQuote(e.Key+"="+e.Value))
	}
	return strings.Join(words, " ")
}

// shellQuote quotes a word for a POSIX shell.
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
