package limits

import (
	"unicode/utf8"

	"github.com/georld/rld/internal/yamlpos"
)

// metadata reads a descriptor's metadata, a map of any values; nil when there
// is none.
func (l *loader) metadata(s setting) map[string]any {
	if !s.given() {
		return nil
	}
	if s.Value.Kind != yamlpos.Map {
		l.Errorf(s.Value.Pos, "write fields as name: value", "metadata is %s", s.Value.Describe())
		return nil
	}
	out := make(map[string]any, len(s.Value.Pairs))
	l.plainMap(s.Value, out)
	return out
}

// plainMap puts the fields of a map into out, merges included, in the order of
// the file. Keys that are not text become text in their spelling.
func (l *loader) plainMap(n *yamlpos.Node, out map[string]any) {
	for _, f := range n.Pairs {
		switch {
		case f.Key.IsMerge():
			for _, n := range l.merged(f.Value) {
				l.plainMap(n, out)
			}
		case f.Key.Kind != yamlpos.Scalar:
			l.Errorf(f.Key.Pos, "a key is a single value", "a key that is %s", f.Key.Kind)
		default:
			out[l.valid(f.Key, f.Key.Text)] = l.plain(f.Value)
		}
	}
}

// plain returns a value as a Go value: nil, bool, int64, uint64, float64,
// string, []any or map[string]any.
func (l *loader) plain(n *yamlpos.Node) any {
	switch n.Kind {
	case yamlpos.Map:
		out := make(map[string]any, len(n.Pairs))
		l.plainMap(n, out)
		return out
	case yamlpos.List:
		out := make([]any, len(n.Items))
		for i, item := range n.Items {
			out[i] = l.plain(item)
		}
		return out
	}
	v, ok := n.Resolve()
	if !ok {
		l.Errorf(n.Pos, "drop the tag", "%s is not %s", yamlpos.Quote(n.Text), n.Tag)
		return nil
	}
	if text, is := v.(string); is {
		return l.valid(n, text)
	}
	return v
}

// valid returns a text of metadata. It adds a fault unless the text is UTF-8,
// since metadata goes into answers.
func (l *loader) valid(n *yamlpos.Node, text string) string {
	if !utf8.ValidString(text) {
		l.Errorf(n.Pos, "", "metadata that is not UTF-8")
	}
	return text
}
