package yamlpos

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the shape of a Node.
type Kind uint8

// The kinds.
const (
	Scalar Kind = iota
	Map
	List
)

// String returns "a single value", "a map" or "a list".
func (k Kind) String() string { return [...]string{"a single value", "a map", "a list"}[k] }

// Node is one value of a document. Nodes form a graph without cycles: an alias
// is the node of its anchor. They are immutable once parsed and safe for
// concurrent use.
type Node struct {
	Kind Kind
	Pos  Position

	// Anchored is true for a node with an anchor, which aliases may name.
	Anchored bool

	// Text is the text of a scalar with escapes and folding resolved. Quoted
	// is true for one in quotes or a block. Tag is "!!int" and the like, ""
	// where none was written.
	Text   string
	Quoted bool
	Tag    string

	Pairs []Pair  // of a map, in file order, repeated keys included
	Items []*Node // of a list

	weight int // the number of values it expands to, itself included
}

// Pair is one key of a map and its value.
type Pair struct{ Key, Value *Node }

// IsNull reports whether the value is absent: a nil node, nothing, ~ or null.
func (n *Node) IsNull() bool {
	if n == nil {
		return true
	}
	v, ok := n.Resolve()
	return n.Kind == Scalar && ok && v == nil
}

// IsMerge reports whether the node is the key "<<", which merges other maps
// into its own.
func (n *Node) IsMerge() bool {
	return n.Kind == Scalar && n.Text == "<<" && !n.Quoted && (n.Tag == "" || n.Tag == "!!merge")
}

// Describe names the value for a message: "a map", `the text "x"`.
func (n *Node) Describe() string {
	if n.Kind != Scalar {
		return n.Kind.String()
	}
	switch v, _ := n.Resolve(); v.(type) {
	case bool:
		return "the boolean " + Quote(n.Text)
	case int64, uint64, float64:
		return "the number " + clip(n.Text)
	case string:
		return "the text " + Quote(n.Text)
	}
	return "nothing"
}

// Quote returns s in double quotes, cut after 60 characters.
func Quote(s string) string {
	if short := clip(s); short != s {
		return strconv.Quote(strings.TrimSuffix(short, "...")) + "..."
	}
	return strconv.Quote(s)
}

// clip returns s, cut after 60 characters.
func clip(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "..."
}
