package limits

import (
	"fmt"
	"strings"
	"testing"

	"github.com/georld/rld/rules"
)

// TestFaultsAreBounded checks that a file full of faults makes a list that can
// be read, and that errors are not lost behind warnings.
func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("domain: d\ndescriptors:\n")
	for i := range 150 {
		fmt.Fprintf(&b, "- {key: 'a*%d'}\n", i)
	}
	for range 120 {
		b.WriteString("- {key: k, rate_limit: {}}\n")
	}
	_, faults := parseOne(b.String())
	if len(faults) != 202 {
		t.Fatalf("%d diagnostics, want 100 of each severity and two counts", len(faults))
	}
	// Of the 120 the first is no duplicate, so there are 239 errors.
	if got := faults[200].String() + faults[201].String(); got != "and 139 more errors\nwarning: and 50 more\n" {
		t.Errorf("the counts are %q", got)
	}
}

func TestDiagnosticString(t *testing.T) {
	at := func(column int) rules.Position { return rules.Position{File: "f", Line: 1, Column: column} }
	long := strings.Repeat("x", 200)
	for _, tc := range []struct {
		name string
		d    Diagnostic
		want string
	}{
		{"no source", Diagnostic{Position: at(2), Message: "m", Hint: "h"}, "f:1:2: m; h\n"},
		{"no position", Diagnostic{Message: "m"}, "m\n"},
		{
			"tab",
			Diagnostic{Position: at(3), Message: "m", Source: "\ta: b"},
			"f:1:3: m\n  |  a: b\n  |   ^\n",
		},
		{
			"characters, not bytes",
			Diagnostic{Position: at(4), Message: "m", Source: "é: ü"},
			"f:1:4: m\n  | é: ü\n  |    ^\n",
		},
		{
			"behind the end",
			Diagnostic{Position: at(9), Message: "m", Source: "a:"},
			"f:1:9: m\n  | a:\n  |   ^\n",
		},
		{
			"long line",
			Diagnostic{Position: at(201), Message: "m", Source: long + "!" + long},
			"f:1:201: m\n  | " + long[:48] + "!" + long[:47] + "\n  | " + strings.Repeat(" ", 48) + "^\n",
		},
		{
			"warning",
			Diagnostic{Severity: Warning, Position: at(1), Message: "m", Source: "a"},
			"f:1:1: warning: m\n  | a\n  | ^\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.d.String(); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

func TestClosest(t *testing.T) {
	units := rules.Units()
	for text, want := range map[string]string{
		"secnod": "second", "Minute": "minute", "hours": "hour", "moth": "month", "yaer": "year",
		"fortnight": "", "mnth": "month", "dya": "day", "": "", "sixty": "", strings.Repeat("minute", 20): "",
	} {
		if got := Closest(text, units); got != want {
			t.Errorf("Closest(%q) = %q, want %q", text, got, want)
		}
	}
	if got := Closest("ab", []string{"abx", "aby"}); got != "" {
		t.Errorf("two words as close: got %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"burst", "burst", 0},
		{"burst", "burts", 1},
		{"burst", "bursts", 1},
		{"burst", "brst", 1},
		{"burst", "bOrst", 1},
		{"unit", "name", 4},
		{"kitten", "sitting", 3},
	} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
		if got := distance(tc.b, tc.a); got != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.b, tc.a, got, tc.want)
		}
	}
}

func TestParsePPM(t *testing.T) {
	for text, want := range map[string]rules.PPM{
		"0": 0, "2": 20_000, "0.5": 5_000, "0.0001": 1, "12.3456": 123_456, "100": 1_000_000,
		"4294.9672": 42_949_672, "429496.7295": 1<<32 - 1,
	} {
		if got, ok := parsePPM(text); !ok || got != want {
			t.Errorf("parsePPM(%q) = %d, %v, want %d", text, got, ok, want)
		}
		if back := percent(want); want > 0 && back != text+"%" {
			t.Errorf("percent(%d) = %q, want %s%%", want, back, text)
		}
	}
	for _, text := range []string{
		"", ".", "1.", ".5", "-1", "+1", "1e2", "0.00001", "429496.7296", "1,5", " 1", "0x1",
	} {
		if got, ok := parsePPM(text); ok {
			t.Errorf("parsePPM(%q) = %d, want none", text, got)
		}
	}
}
