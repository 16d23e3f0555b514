package limits

import (
	"math"
	"unicode/utf8"
)

// text reads a field whose value is text; "" when it is absent. Numbers
// without a fraction and booleans are text in the spelling of the file, as the
// reference has it: 8080 is "8080" and yes is "yes".
func (l *loader) text(s setting, name string) (string, bool) {
	if s.value == nil {
		return "", true
	}
	if s.value.kind != scalar {
		l.errorf(s.value.pos, "write "+name+": some text", "%s is %s", name, s.value.kind)
		return "", false
	}
	text, ok := l.scalarText(s.value, name)
	if ok && len(text) > MaxTextBytes {
		l.errorf(s.value.pos, "at most "+itoa(MaxTextBytes), "%s is %d bytes long", name, len(text))
		return "", false
	}
	return text, ok
}

// scalarText reads a scalar as text.
func (l *loader) scalarText(n *node, name string) (string, bool) {
	v, ok := n.resolve()
	switch {
	case !ok:
		l.errorf(n.pos, "drop the tag", "%s is tagged %s, which %s is not", name, n.tag, quote(n.text))
		return "", false
	case v.kind == floatValue:
		l.errorf(n.pos, "put it in quotes: \""+clip(n.text)+"\"",
			"%s is the number %s, and a number with a fraction has more than one spelling", name, clip(n.text))
		return "", false
	case v.kind == bigValue:
		l.errorf(n.pos, "put it in quotes: \""+clip(n.text)+"\"", "%s is a number of more than 63 bits", name)
		return "", false
	case v.kind == nullValue:
		return "", true
	case v.kind != textValue:
		return n.text, true
	case !utf8.ValidString(v.s):
		l.errorf(n.pos, "", "%s is not UTF-8", name)
		return "", false
	}
	return v.s, true
}

// boolean reads a field that is true or false; false when it is absent.
func (l *loader) boolean(s setting, name fieldID) (b, ok bool) {
	if !s.given() {
		return false, true
	}
	v, ok := value{}, s.value.kind == scalar
	if ok {
		v, ok = s.value.resolve()
	}
	if ok && v.kind == boolValue {
		return v.b, true
	}
	hint := "write true or false"
	if s.value.kind == scalar && s.value.quoted && untagged(s.value.text).kind == boolValue {
		hint = "leave out the quotes"
	}
	l.errorf(s.value.pos, hint, "%s is %s", name, describe(s.value))
	return false, false
}

// whole reads a field that is a whole number from least to 2^32-1; 0 when it
// is absent.
func (l *loader) whole(s setting, name fieldID, least int64) (n uint32, ok bool) {
	if !s.given() {
		return 0, true
	}
	v, ok := value{}, s.value.kind == scalar
	if ok {
		v, ok = s.value.resolve()
	}
	if ok && v.kind == intValue && v.i >= least && v.i <= math.MaxUint32 {
		return uint32(v.i), true
	}
	hint := "write a whole number from " + itoa(int(least)) + " to 4294967295"
	if ok && v.kind == textValue && untagged(v.s).kind == intValue {
		hint = "leave out the quotes"
	}
	l.errorf(s.value.pos, hint, "%s is %s", name, describe(s.value))
	return 0, false
}

// word reads a field that is one of a few words and returns its index; false
// when it is absent or a fault.
func (l *loader) word(s setting, name fieldID, words []string) (int, bool) {
	if !s.given() {
		return 0, false
	}
	text, ok := l.text(s, name.String())
	if !ok {
		return 0, false
	}
	for i, w := range words {
		if text == w {
			return i, true
		}
	}
	hint := "it is one of " + join(words)
	if best := Closest(text, words); best != "" {
		hint = "did you mean " + best + "?"
	} else if best := unique(text, words); best != "" {
		hint = "did you mean " + best + "?"
	}
	l.errorf(s.value.pos, hint, "unknown %s %s", name, quote(text))
	return 0, false
}
