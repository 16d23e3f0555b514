package lint

import (
	"strings"
	"testing"
)

func TestFaultyPolicy(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"hlc pure -- values", ":1: hlc stands before the first layer"},
		{"layer zero", ":1: strconv.Atoi"},
		{"layer 0\nhlc pure", ":2: hlc has no reason"},
		{"layer 0\nhlc -- a\nhlc -- b", ":3: hlc is listed twice"},
		{"layer 0\nhlc shiny -- a", ":2: hlc: unknown mark \"shiny\""},
		{"layer 0\nhlc <=x -- a", ":2: strconv.Atoi"},
		{"only hlc import time", ":1: want: only PACKAGES import MODULE"},
		{"only import time -- a", ":1: want: only PACKAGES import MODULE"},
	} {
		_, err := parsePolicy(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: error %v, want one with %q", test.text, err, test.want)
		}
	}
}

// TestMarks holds what only planned packages use for now.
func TestMarks(t *testing.T) {
	p, err := parsePolicy(`
layer 0
hlc -- a
layer 3
wire -- a
layer 4
server -- a
client =wire -- a
layer 5
daemon -- a
sim <=3 -- a
layer 6
cmd -- a
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		from, to string
		ok       bool
	}{
		{"sim", "hlc", true},
		{"sim", "wire", true},
		{"sim", "server", false},
		{"sim", "daemon", false},
		{"client", "wire", true},
		{"client", "hlc", false},
		{"client", "server", false},
		{"daemon", "server", true},
		{"daemon", "sim", false},
		{"daemon", "cmd", false},
		{"cmd", "sim", true},
	} {
		no := p.packages[test.from].objection(p.packages[test.to], false)
		if (no == "") != test.ok {
			t.Errorf("%s imports %s: %q, want ok %v", test.from, test.to, no, test.ok)
		}
	}
}

func TestBaseName(t *testing.T) {
	for path, want := range map[string]string{
		"time": "time", "math/rand/v2": "rand", "log/slog": "slog",
		"example.org/v": "v", "example.org/vault": "vault",
	} {
		if got := baseName(path); got != want {
			t.Errorf("baseName(%q) = %q, want %q", path, got, want)
		}
	}
}
