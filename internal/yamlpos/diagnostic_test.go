package yamlpos

import (
	"strings"
	"testing"
)

func TestDiagnosticString(t *testing.T) {
	at := func(column int) Position { return Position{File: "f", Line: 1, Column: column} }
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

func TestParsePPM(t *testing.T) {
	for text, want := range map[string]uint32{
		"0": 0, "2": 20_000, "0.5": 5_000, "0.0001": 1, "12.3456": 123_456, "100": 1_000_000,
		"4294.9672": 42_949_672, "429496.7295": 1<<32 - 1,
	} {
		if got, ok := parsePPM(text); !ok || got != want {
			t.Errorf("parsePPM(%q) = %d, %v, want %d", text, got, ok, want)
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
