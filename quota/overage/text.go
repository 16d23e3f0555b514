package overage

import (
	"math"
	"strconv"
	"strings"
)

// pct formats a fraction as a percentage with about three digits: "0.08%".
func pct(f float64) string {
	p := f * 100
	switch {
	case p <= 0:
		return "0%"
	case p < 0.005:
		return "less than 0.01%"
	case p < 9.995:
		return trim(strconv.FormatFloat(p, 'f', 2, 64)) + "%"
	case p < 99.95:
		return trim(strconv.FormatFloat(p, 'f', 1, 64)) + "%"
	default:
		return grouped(p) + "%"
	}
}

// trim removes trailing zeros of a fraction.
func trim(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".") }

// grouped formats a number rounded to an integer, with commas.
func grouped(f float64) string {
	s := strconv.FormatFloat(math.Round(f), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// length formats milliseconds in the largest readable unit.
func length(ms int64) string {
	f := float64(ms)
	switch {
	case ms >= 7_200_000 && ms%3_600_000 == 0:
		return trim(strconv.FormatFloat(f/3_600_000, 'f', 1, 64)) + " h"
	case ms >= 120_000:
		return trim(strconv.FormatFloat(f/60_000, 'f', 1, 64)) + " min"
	case ms >= 1000:
		return trim(strconv.FormatFloat(f/1000, 'f', 2, 64)) + " s"
	default:
		return strconv.FormatInt(ms, 10) + " ms"
	}
}

// plural formats a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(float64(n)) + " " + noun + "s"
}

// lately names the windows behind a figure.
func lately(windows int) string {
	if windows == 1 {
		return "the last window"
	}
	return "the last " + plural(windows, "window")
}
