package limits

import (
	"math"
	"testing"
)

// TestUntagged is what an unquoted text stands for in the YAML 1.1 of the
// reference.
func TestUntagged(t *testing.T) {
	text := func(s string) value { return value{kind: textValue, s: s} }
	whole := func(i int64) value { return value{kind: intValue, i: i} }
	float := func(f float64) value { return value{kind: floatValue, f: f} }
	yes, no := value{kind: boolValue, b: true}, value{kind: boolValue}
	for s, want := range map[string]value{
		"": {}, "~": {}, "null": {}, "Null": {}, "NULL": {}, "nULL": text("nULL"),
		"y": yes, "Y": yes, "yes": yes, "Yes": yes, "YES": yes, "on": yes, "On": yes, "ON": yes,
		"true": yes, "True": yes, "TRUE": yes, "yEs": text("yEs"), "t": text("t"),
		"n": no, "N": no, "no": no, "No": no, "NO": no, "off": no, "Off": no, "OFF": no,
		"false": no, "False": no, "FALSE": no, "none": text("none"),
		"0": whole(0), "-0": whole(0), "+1": whole(1), "-1": whole(-1), "1_000": whole(1000), "1__": whole(1),
		"010": whole(8), "0o10": whole(8), "0x1F": whole(31), "0X1f": whole(31), "-0x10": whole(-16),
		"0b101": whole(5), "-0b11": whole(-3), "9223372036854775807": whole(math.MaxInt64),
		"9223372036854775808":  {kind: bigValue, u: 1 << 63},
		"18446744073709551615": {kind: bigValue, u: math.MaxUint64},
		"18446744073709551616": float(18446744073709551616), "08": float(8), "1.5": float(1.5), "1.": float(1),
		".5": float(0.5), "1e3": float(1000), "1E+3": float(1000), "-1.5e-1": float(-0.15), "1_0.5": float(10.5),
		".inf": float(math.Inf(1)), "+.Inf": float(math.Inf(1)), "-.INF": float(math.Inf(-1)),
		"_1": text("_1"), "1a": text("1a"), "1.2.3": text("1.2.3"), "10.0.0.1": text("10.0.0.1"),
		"12:30": text("12:30"), "2001-12-14": text("2001-12-14"), "0x": text("0x"), "0b2": text("0b2"),
		"1e": text("1e"), "e1": text("e1"), "+": text("+"), "-": text("-"), ".": text("."), "..": text(".."),
		"-.5": float(-0.5), "1e999": text("1e999"), "._5": text("._5"), "<<": text("<<"), "=": text("="),
	} {
		if got := untagged(s); got != want {
			t.Errorf("%q is %+v, want %+v", s, got, want)
		}
	}
	if got := untagged(".nan"); got.kind != floatValue || !math.IsNaN(got.f) {
		t.Errorf(".nan is %+v", got)
	}
}

// TestTagged is what a tag makes of a text, or that it cannot.
func TestTagged(t *testing.T) {
	for _, tc := range []struct {
		tag, text string
		want      value
		ok        bool
	}{
		{"!!str", "1.5", value{kind: textValue, s: "1.5"}, true},
		{"!!str", "", value{kind: textValue}, true},
		{"!", "5", value{kind: textValue, s: "5"}, true},
		{"!mine", "yes", value{kind: textValue, s: "yes"}, true},
		{"!!int", "5", value{kind: intValue, i: 5}, true},
		{"!!int", "five", value{}, false},
		{"!!float", "5", value{kind: floatValue, f: 5}, true},
		{"!!bool", "yes", value{kind: boolValue, b: true}, true},
		{"!!bool", "1", value{}, false},
		{"!!null", "~", value{}, true},
		{"!!null", "x", value{}, false},
		{"!!binary", "aGk=", value{kind: textValue, s: "hi"}, true},
		{"!!binary", "?", value{}, false},
	} {
		for _, quoted := range []bool{false, true} {
			n := &node{tag: tc.tag, text: tc.text, quoted: quoted}
			got, ok := n.resolve()
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("%s %q (quoted: %v) is %+v, %v; want %+v, %v", tc.tag, tc.text, quoted, got, ok, tc.want, tc.ok)
			}
		}
	}
}
