package limits

import "unicode/utf8"

// metadata reads a descriptor's metadata: a map of anything. Nil when there is
// none.
func (l *loader) metadata(s setting) map[string]any {
	if !s.given() {
		return nil
	}
	if s.value.kind != mapping {
		l.errorf(s.value.pos, "write fields as name: value", "metadata is %s", describe(s.value))
		return nil
	}
	out := make(map[string]any, len(s.value.fields))
	l.plainMap(s.value, out)
	return out
}

// plainMap puts the fields of a map into out, merges included, in the order of
// the file. Keys that are not text become text as they are spelled.
func (l *loader) plainMap(n *node, out map[string]any) {
	for _, f := range n.fields {
		switch {
		case f.key.isMerge() && f.value.kind == sequence:
			for i := len(f.value.items) - 1; i >= 0; i-- {
				l.plainMerge(f.value.items[i], out)
			}
		case f.key.isMerge():
			l.plainMerge(f.value, out)
		case f.key.kind != scalar:
			l.errorf(f.key.pos, "a key is a single value", "a key that is %s", f.key.kind)
		default:
			out[l.valid(f.key, f.key.text)] = l.plain(f.value)
		}
	}
}

func (l *loader) plainMerge(n *node, out map[string]any) {
	if n.kind != mapping {
		l.errorf(n.pos, "name maps, such as <<: [*a, *b]", "<< with %s", describe(n))
		return
	}
	l.plainMap(n, out)
}

// plain returns a value as plain Go.
func (l *loader) plain(n *node) any {
	switch n.kind {
	case mapping:
		out := make(map[string]any, len(n.fields))
		l.plainMap(n, out)
		return out
	case sequence:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = l.plain(item)
		}
		return out
	}
	v, ok := n.resolve()
	if !ok {
		l.errorf(n.pos, "drop the tag", "%s is not %s", quote(n.text), n.tag)
		return nil
	}
	switch v.kind {
	case boolValue:
		return v.b
	case intValue:
		return v.i
	case bigValue:
		return v.u
	case floatValue:
		return v.f
	case textValue:
		return l.valid(n, v.s)
	}
	return nil
}

// valid returns a text of metadata, which goes into answers and so must be
// UTF-8.
func (l *loader) valid(n *node, text string) string {
	if !utf8.ValidString(text) {
		l.errorf(n.pos, "", "metadata that is not UTF-8")
	}
	return text
}
