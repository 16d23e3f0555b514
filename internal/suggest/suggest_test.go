package suggest

import (
	"strings"
	"testing"
)

func TestClosest(t *testing.T) {
	units := []string{"second", "minute", "hour", "day", "week", "month", "year"}
	for text, want := range map[string]string{
		"secnod": "second", "Minute": "minute", "hours": "hour", "moth": "month", "yaer": "year",
		"fortnight": "", "mnth": "month", "dya": "day", "": "", "sixty": "", strings.Repeat("minute", 20): "",
	} {
		if got := Closest(text, units); got != want {
			t.Errorf("Closest(%q) = %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"minute", "minut", "minu"} {
		if got := Closest(text, []string{"minute", "hour", "minute"}); got != "minute" {
			t.Errorf("Closest(%q) = %q among words that occur twice", text, got)
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

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 rules", 1: "1 rule", 2: "2 rules", 1000: "1000 rules"} {
		if got := Plural(n, "rule"); got != want {
			t.Errorf("Plural(%d) = %q, want %q", n, got, want)
		}
	}
}
