package limits

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/georld/rld/internal/yamlpos"
)

// setting is a field in a file. The zero value is a field that is not set. A
// field whose value is null counts as not set but keeps its position.
type setting yamlpos.Pair

// given reports whether the field has a value.
func (s setting) given() bool { return !s.Value.IsNull() }

// pos returns the position of the value.
func (s setting) pos() yamlpos.Position { return s.posOr(yamlpos.Position{}) }

// posOr returns the position of the value, or at for a field that is not set.
func (s setting) posOr(at yamlpos.Position) yamlpos.Position {
	if s.Value != nil {
		return s.Value.Pos
	}
	return at
}

// decoded is a map of the language as the fields that it sets.
type decoded struct {
	at  *yamlpos.Node
	set [fieldCount]setting
	// meant marks the fields that unknown names were likely meant to be, so
	// that they are not reported as missing too. The last one is for no field.
	meant [fieldCount + 1]bool
	// limit is the rate_limit of a descriptor. Two of them in one map, or one
	// of a merge and one of the map, combine field by field, as in
	// envoyproxy/ratelimit.
	limit *decoded
}

// apply sets the fields of a map in r, in the order of the file. It returns
// false and adds a fault when n is no map. An unknown field is a fault. One of
// envoyproxy/ratelimit at a place where that ignores it is a warning.
func (l *loader) apply(n *yamlpos.Node, at place, r *decoded) bool {
	if n.Kind != yamlpos.Map {
		return l.Errorf(n.Pos, "write fields as name: value", "%s where a map is wanted", n.Describe())
	}
	r.at = n
	var here [fieldCount]bool // set by this map itself
	for _, f := range n.Pairs {
		if f.Key.IsMerge() {
			before := r.set
			for _, n := range l.merged(f.Value) {
				l.apply(n, at, r)
			}
			l.warnOverridden(&before, r, &here)
			r.at = n
			continue
		}
		id, ok := l.fieldName(f.Key, at)
		if !ok {
			r.meant[id] = true
			continue
		}
		if !l.inPlace(id, f, at) {
			continue
		}
		if here[id] {
			l.Warnf(f.Key.Pos, "keep one", "%s is given twice in one map; the last one is in force", id)
		}
		here[id] = true
		r.set[id] = setting(f)
		if id == fRateLimit {
			l.applyLimit(f.Value, r)
		}
	}
	return true
}

// applyLimit sets the rate_limit of a descriptor.
func (l *loader) applyLimit(n *yamlpos.Node, r *decoded) {
	if n.IsNull() {
		r.limit = nil
		return
	}
	limit := r.limit
	if limit == nil {
		limit = &decoded{}
	}
	if l.apply(n, inLimit, limit) {
		r.limit = limit
	}
}

// merged returns the maps that the key "<<" names, the last one first, so that
// the first one wins.
func (l *loader) merged(n *yamlpos.Node) []*yamlpos.Node {
	switch n.Kind {
	case yamlpos.Map:
		return []*yamlpos.Node{n}
	case yamlpos.List:
		var maps []*yamlpos.Node
		for _, item := range slices.Backward(n.Items) {
			if item.Kind == yamlpos.Map {
				maps = append(maps, item)
			} else {
				l.Errorf(item.Pos, "name maps, such as <<: [*a, *b]", "<< with %s in its list", item.Describe())
			}
		}
		return maps
	}
	l.Errorf(n.Pos, "name a map, such as <<: *base", "<< with %s", n.Describe())
	return nil
}

// warnOverridden warns of fields that a later merge replaced.
func (l *loader) warnOverridden(before *[fieldCount]setting, r *decoded, here *[fieldCount]bool) {
	for id := range fieldCount {
		if was := before[id]; here[id] && r.set[id] != was {
			l.Warnf(was.Key.Pos, "put << first", "the << behind it takes the place of this %s", id)
		}
	}
}

// inPlace reports whether a place may have a field. If not, it adds a fault,
// or a warning for a field that envoyproxy/ratelimit ignores there.
func (l *loader) inPlace(id fieldID, f yamlpos.Pair, at place) bool {
	want := vocabulary[id].at
	if want&at != 0 {
		return true
	}
	if id.own() || at == inDefaults {
		return l.Errorf(f.Key.Pos, "it goes "+want.String(), "%s has no place %s", id, at)
	}
	first := want & -want
	l.Warnf(f.Key.Pos, "it goes "+first.String(), "%s has no effect %s", id, at)
	if id != fMetadata {
		l.ignored(f.Value)
	}
	return false
}

// ignored finds the faults of a value without effect for which
// envoyproxy/ratelimit would reject the file nevertheless.
func (l *loader) ignored(n *yamlpos.Node) {
	switch n.Kind {
	case yamlpos.Map:
		for _, f := range n.Pairs {
			if f.Key.IsMerge() {
				l.ignored(f.Value)
			} else if id, ok := l.fieldName(f.Key, inDescriptor); ok && id != fMetadata {
				l.ignored(f.Value)
			}
		}
	case yamlpos.List:
		for _, item := range n.Items {
			if l.isMap(item) {
				l.ignored(item)
			}
		}
	case yamlpos.Scalar:
		var text string
		l.Text(&text)(n, "a value")
	}
}

// isMap reports whether an item of a list is a map, and adds a fault when not.
func (l *loader) isMap(n *yamlpos.Node) bool {
	if n.Kind != yamlpos.Map {
		l.Errorf(n.Pos, "write it as - name: value", "%s in a list of maps", n.Describe())
	}
	return n.Kind == yamlpos.Map
}

// text reads a text of at most MaxTextBytes; "" for a field that is not set.
func (l *loader) text(s setting, name string) (text string, ok bool) {
	if s.Value == nil {
		return "", true
	}
	ok = l.Text(&text)(s.Value, name)
	if at := strings.IndexFunc(text, disguises); ok && at >= 0 {
		r, _ := utf8.DecodeRuneInString(text[at:])
		return "", l.Errorf(s.Value.Pos, "write it with printable characters: metrics, logs and terminals show it",
			"%s has a control character, %U", name, r)
	}
	if ok && len(text) > MaxTextBytes {
		l.Errorf(s.Value.Pos, "at most "+strconv.Itoa(MaxTextBytes), "%s is %d bytes long", name, len(text))
		return "", false
	}
	return text, ok
}

// disguises reports whether a character is a control character, or one that
// makes a text look like another one: those that change its direction, and
// ends of lines.
func disguises(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// boolean reads a field that is true or false; false when it is not set.
func (l *loader) boolean(s setting, f fieldID) (b, ok bool) {
	ok = !s.given() || l.Bool(&b)(s.Value, f.String())
	return b, ok
}
