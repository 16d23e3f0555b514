package load

import (
	"slices"
	"strconv"
)

// Median returns the middle value, the mean of the two middle ones of an even
// number. It needs one value at least.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// Scaled returns a value for people, with three digits, in the first of the
// units in which it is below a step. Each unit is a step of the one before.
func Scaled(v, step float64, units ...string) string {
	at := 0
	// 999.5 and above would be rounded to four digits.
	for v >= step*0.9995 && at < len(units)-1 {
		v, at = v/step, at+1
	}
	digits := 2
	for _, limit := range []float64{9.995, 99.95} {
		if v >= limit {
			digits--
		}
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + units[at]
}

// Grouped returns a number that is not negative with a comma each three digits.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
