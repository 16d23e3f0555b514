package limits

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// valueKind is what a scalar stands for.
type valueKind uint8

const (
	nullValue valueKind = iota
	boolValue
	intValue
	bigValue // a whole number above an int64
	floatValue
	textValue
)

// value is a scalar as YAML 1.1 reads it, in the reading of the reference:
// yes, on and y are booleans, a leading 0 is octal, digits may be parted by
// underscores, and dates and base 60 numbers are text.
type value struct {
	kind valueKind
	b    bool
	i    int64
	u    uint64 // bigValue
	f    float64
	s    string
}

// resolve returns what a scalar stands for; false when its tag says one thing
// and its text another.
func (n *node) resolve() (value, bool) {
	if n.tag == "" && n.quoted {
		return value{kind: textValue, s: n.text}, true
	}
	switch n.tag {
	case "":
		return untagged(n.text), true
	case "!!binary":
		raw, err := base64.StdEncoding.DecodeString(n.text)
		return value{kind: textValue, s: string(raw)}, err == nil && utf8.Valid(raw)
	case "!!null", "!!bool", "!!int", "!!float":
		v := untagged(n.text)
		if n.tag == "!!float" && v.kind == intValue {
			v = value{kind: floatValue, f: float64(v.i)}
		}
		return v, n.tag == tags[v.kind]
	}
	// !!str, and tags that mean something to somebody else.
	return value{kind: textValue, s: n.text}, true
}

// tags are the YAML names of the kinds.
var tags = [...]string{
	nullValue: "!!null", boolValue: "!!bool", intValue: "!!int", bigValue: "!!int",
	floatValue: "!!float", textValue: "!!str",
}

// untagged returns what an unquoted text stands for.
func untagged(s string) value {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return value{kind: nullValue}
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return value{kind: boolValue, b: true}
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return value{kind: boolValue}
	case ".nan", ".NaN", ".NAN":
		return value{kind: floatValue, f: math.NaN()}
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return value{kind: floatValue, f: math.Inf(1)}
	case "-.inf", "-.Inf", "-.INF":
		return value{kind: floatValue, f: math.Inf(-1)}
	}
	if c := s[0]; c == '+' || c == '-' || c == '.' || '0' <= c && c <= '9' {
		if v, ok := number(s); ok {
			return v
		}
	}
	return value{kind: textValue, s: s}
}

// number reads a text as a number; false when it is none.
func number(s string) (value, bool) {
	if s[0] == '.' {
		// Here the reference lets Go decide, and no underscores.
		f, err := strconv.ParseFloat(s, 64)
		return value{kind: floatValue, f: f}, err == nil
	}
	s = strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return value{kind: intValue, i: i}, true
	}
	if u, err := strconv.ParseUint(s, 0, 64); err == nil {
		return value{kind: bigValue, u: u}, true
	}
	if !decimal(s) {
		return value{}, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return value{kind: floatValue, f: f}, err == nil
}

// decimal reports whether s is a number in the decimal notation of YAML:
// a sign, digits with a point before, among or after them, an exponent.
func decimal(s string) bool {
	s = unsigned(s)
	whole := digits(s)
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		fraction := digits(s[1:])
		if whole+fraction == 0 {
			return false
		}
		s = s[1+fraction:]
	} else if whole == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = unsigned(s[1:])
	return s != "" && digits(s) == len(s)
}

// unsigned returns s without its sign.
func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

// digits returns how many decimal digits s begins with.
func digits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}
