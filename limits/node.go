package limits

import "github.com/georld/rld/rules"

// kind is the shape of a node.
type kind uint8

const (
	scalar kind = iota
	mapping
	sequence
)

// node is one value of a YAML document. Nodes form a graph without cycles: an
// alias is the node of its anchor. They are read only once built.
type node struct {
	kind kind
	pos  rules.Position

	text   string // scalars: the text, escapes and folding done
	quoted bool   // scalars: it was quoted or a block, and so is text
	tag    string // scalars: "!!int" and the like, "" when there was none

	fields []field // mappings, in file order, repeated keys included
	items  []*node // sequences

	weight int // the values it expands to, its own included
}

// field is one key of a mapping and its value.
type field struct{ key, value *node }

func (k kind) String() string {
	switch k {
	case mapping:
		return "a map"
	case sequence:
		return "a list"
	}
	return "a single value"
}

// isNull reports whether the node is an absent value: nothing, ~ or null.
func (n *node) isNull() bool {
	if n == nil {
		return true
	}
	if n.kind != scalar {
		return false
	}
	v, ok := n.resolve()
	return ok && v.kind == nullValue
}

// isMerge reports whether the node is the key "<<" that takes in other maps.
func (n *node) isMerge() bool {
	return n.kind == scalar && n.text == "<<" && !n.quoted && (n.tag == "" || n.tag == "!!merge")
}
