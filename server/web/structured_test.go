package web

import (
	"math"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStructuredFields(t *testing.T) {
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{appendPolicy(nil, "burst", 100, 60), `"burst";q=100;w=60`},
		{appendPolicy(nil, "daily", math.MaxUint64, 0), `"daily";q=999999999999999;w=1`},
		{appendLimit(nil, "burst", 42, 17), `"burst";r=42;t=17`},
		{appendLimit(nil, "daily", math.MaxUint64, math.MaxUint64), `"daily";r=999999999999999;t=999999999999999`},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

func TestStructuredString(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "tier=premium > user_id", `"tier=premium > user_id"`},
		{"empty", "", `""`},
		{"quote", `a";q=0, "b`, `"a\";q=0, \"b"`},
		{"backslash", `a\`, `"a\\"`},
		{"injection", "a\r\nSet-Cookie: b", `"a%0D%0ASet-Cookie: b"`},
		{"nul and delete", "\x00\x7f", `"%00%7F"`},
		{"emoji", "🚀 rate", `"%F0%9F%9A%80 rate"`},
		{"not UTF-8", "\xff", `"%FF"`},
		{"percent", "50%25", `"50%2525"`},
		{"tab", "a\tb", `"a%09b"`},
		{"long", strings.Repeat("x", 500), `"` + strings.Repeat("x", maxNameBytes) + `"`},
		{
			"cut before an escape", strings.Repeat("x", maxNameBytes-1) + `"`,
			`"` + strings.Repeat("x", maxNameBytes-1) + `"`,
		},
		{"cut before a byte", strings.Repeat("é", 100), `"` + strings.Repeat("%C3%A9", 21) + `"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(appendSFString(nil, tt.in)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Any name is written as one String of Structured Fields, and one that is not
// cut can be read back.
func TestStructuredStringLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.StringMatching(`["\\%\r\n a-c]*`)).Draw(t, "name")
		got := string(appendSFString(nil, name))
		text, ok := parseSFString(got)
		if !ok || len(got) > maxNameBytes+2 {
			t.Fatalf("%q is written as %s", name, got)
		}
		back, err := url.PathUnescape(text)
		if err != nil || !strings.HasPrefix(name, back) || len(got) < maxNameBytes-3 && back != name {
			t.Fatalf("%q is written as %s and read as %q, %v", name, got, back, err)
		}
	})
}

// parseSFString reads a String by RFC 9651 §4.2.5, whole or not at all.
func parseSFString(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' {
		return "", false
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			out.WriteByte(s[i])
		case c == '"':
			return out.String(), i == len(s)-1
		case c < 0x20 || c > 0x7e:
			return "", false
		default:
			out.WriteByte(c)
		}
	}
	return "", false
}
