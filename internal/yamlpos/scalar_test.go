package yamlpos

import (
	"math"
	"testing"
)

// TestUntagged reads unquoted texts as YAML 1.1.
func TestUntagged(t *testing.T) {
	text := func(s string) any { return s }
	whole := func(i int64) any { return i }
	float := func(f float64) any { return f }
	yes, no := true, false
	for s, want := range map[string]any{
		"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil, "nULL": text("nULL"),
		"y": yes, "Y": yes, "yes": yes, "Yes": yes, "YES": yes, "on": yes, "On": yes, "ON": yes,
		"true": yes, "True": yes, "TRUE": yes, "yEs": text("yEs"), "t": text("t"),
		"n": no, "N": no, "no": no, "No": no, "NO": no, "off": no, "Off": no, "OFF": no,
		"false": no, "False": no, "FALSE": no, "none": text("none"),
		"0": whole(0), "-0": whole(0), "+1": whole(1), "-1": whole(-1), "1_000": whole(1000), "1__": whole(1),
		"010": whole(8), "0o10": whole(8), "0x1F": whole(31), "0X1f": whole(31), "-0x10": whole(-16),
		"0b101": whole(5), "-0b11": whole(-3), "9223372036854775807": whole(math.MaxInt64),
		"9223372036854775808":  uint64(1 << 63),
		"18446744073709551615": uint64(math.MaxUint64),
		"18446744073709551616": float(18446744073709551616), "08": float(8), "1.5": float(1.5), "1.": float(1),
		".5": float(0.5), "1e3": float(1000), "1E+3": float(1000), "-1.5e-1": float(-0.15), "1_0.5": float(10.5),
		".inf": float(math.Inf(1)), "+.Inf": float(math.Inf(1)), "-.INF": float(math.Inf(-1)),
		"_1": text("_1"), "1a": text("1a"), "1.2.3": text("1.2.3"), "10.0.0.1": text("10.0.0.1"),
		"12:30": text("12:30"), "2001-12-14": text("2001-12-14"), "0x": text("0x"), "0b2": text("0b2"),
		"1e": text("1e"), "e1": text("e1"), "+": text("+"), "-": text("-"), ".": text("."), "..": text(".."),
		"-.5": float(-0.5), "1e999": text("1e999"), "._5": text("._5"), "<<": text("<<"), "=": text("="),
	} {
		if got := untagged(s); got != want {
			t.Errorf("%q is %#v, want %#v", s, got, want)
		}
	}
	if got, ok := untagged(".nan").(float64); !ok || !math.IsNaN(got) {
		t.Errorf(".nan is %#v", got)
	}
}

// TestTagged reads tagged texts.
func TestTagged(t *testing.T) {
	for _, tc := range []struct {
		tag, text string
		want      any
		ok        bool
	}{
		{"!!str", "1.5", "1.5", true},
		{"!!str", "", "", true},
		{"!", "5", "5", true},
		{"!mine", "yes", "yes", true},
		{"!!int", "5", int64(5), true},
		{"!!int", "five", nil, false},
		{"!!float", "5", 5.0, true},
		{"!!bool", "yes", true, true},
		{"!!bool", "1", nil, false},
		{"!!null", "~", nil, true},
		{"!!null", "x", nil, false},
		{"!!binary", "aGk=", "hi", true},
		{"!!binary", "?", nil, false},
	} {
		for _, quoted := range []bool{false, true} {
			n := &Node{Tag: tc.tag, Text: tc.text, Quoted: quoted}
			got, ok := n.Resolve()
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("%s %q (quoted: %v) is %#v, %v; want %#v, %v", tc.tag, tc.text, quoted, got, ok, tc.want, tc.ok)
			}
		}
	}
}
