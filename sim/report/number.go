package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

// numbers returns the functions by which the template shows numbers. Each
// gives a data element: for machines the number exactly as it stands in the
// JSON, for people a short form of it.
func numbers() template.FuncMap {
	return template.FuncMap{
		"plain":  func(n any) (template.HTML, error) { return datum(n, fmt.Sprint(n)) },
		"count":  func(n any) (template.HTML, error) { return datum(n, Count(n)) },
		"ratio":  func(f float64) (template.HTML, error) { return datum(f, ratio(f)) },
		"ms":     func(f float64) (template.HTML, error) { return datum(f, Millis(f)) },
		"amount": func(f float64) (template.HTML, error) { return datum(f, short(f)) },
		"secs":   func(f float64) (template.HTML, error) { return datum(f, short(f)+" s") },
		"bytes":  func(f float64) (template.HTML, error) { return datum(f, short(f)+" B") },
	}
}

// datum is a number for machines and for people.
func datum(n any, shown string) (template.HTML, error) {
	token, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	return template.HTML(fmt.Sprintf(`<data value="%s">%s</data>`,
		template.HTMLEscapeString(string(token)), template.HTMLEscapeString(shown))), nil
}

// Count is a whole number with commas: "12,345".
func Count(n any) string { return commas(fmt.Sprint(n)) }

// commas puts a comma before each group of three digits.
func commas(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	var b strings.Builder
	for i, r := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return sign + b.String()
}

// ratio formats a fraction of 1 in percent: "4.2%". A ratio above 0 is never
// shown as 0.
func ratio(f float64) string {
	percent := f * 100
	if percent > 0 && percent < 0.01 {
		return "<0.01%"
	}
	return short(percent) + "%"
}

// Millis is a number of milliseconds, in seconds from ten of them on: "250 ms".
func Millis(f float64) string {
	if f >= 10_000 {
		return short(f/1000) + " s"
	}
	return short(f) + " ms"
}

// short is a number with as many digits after the point as help: two below 10,
// one below 1,000, none above.
func short(f float64) string {
	digits := 2
	switch size := max(f, -f); {
	case size >= 1000:
		digits = 0
	case size >= 10:
		digits = 1
	}
	s := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		s = "0"
	}
	return commas(s)
}
