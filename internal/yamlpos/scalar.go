package yamlpos

import (
	"encoding/base64"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Resolve returns the value of a scalar as YAML 1.1, in the reading of
// envoyproxy/ratelimit: nil, bool, int64, uint64 above an int64, float64 or
// string. There yes, on and y are booleans, a leading 0 is octal, digits may
// be separated by underscores, and dates and base 60 numbers are text. It
// returns false when the tag contradicts the text.
func (n *Node) Resolve() (v any, ok bool) {
	switch n.Tag {
	case "":
		if n.Quoted {
			return n.Text, true
		}
		return untagged(n.Text), true
	case "!!binary":
		raw, err := base64.StdEncoding.DecodeString(n.Text)
		return string(raw), err == nil && utf8.Valid(raw)
	case "!!null", "!!bool", "!!int", "!!float":
		v = untagged(n.Text)
		if i, whole := v.(int64); whole && n.Tag == "!!float" {
			v = float64(i)
		}
		return v, n.Tag == tagOf(v)
	}
	// !!str, and tags of other applications.
	return n.Text, true
}

// tagOf returns the YAML name of a value's type.
func tagOf(v any) string {
	switch v.(type) {
	case nil:
		return "!!null"
	case bool:
		return "!!bool"
	case int64, uint64:
		return "!!int"
	case float64:
		return "!!float"
	}
	return "!!str"
}

// untagged returns the value of an unquoted text.
func untagged(s string) any {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false
	case ".nan", ".NaN", ".NAN":
		return math.NaN()
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	if c := s[0]; c == '+' || c == '-' || c == '.' || '0' <= c && c <= '9' {
		if v := number(s); v != nil {
			return v
		}
	}
	return s
}

// decimal is the decimal notation of YAML: a sign, digits with a point before,
// among or after them, and an exponent.
var decimal = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// number returns a text as int64, uint64 or float64, or nil when it is no
// number.
func number(s string) any {
	// A text that begins with a point may have no underscores.
	if s[0] != '.' {
		s = strings.ReplaceAll(s, "_", "")
		if i, err := strconv.ParseInt(s, 0, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(s, 0, 64); err == nil {
			return u
		}
	}
	if !decimal.MatchString(s) {
		return nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	return nil
}
