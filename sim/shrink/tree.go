package shrink

import (
	"slices"

	"github.com/georld/rld/internal/yamlpos"
)

// path leads from the root of a tree to a node: the number of a pair or an item
// at each level.
type path []int

func (p path) to(i int) path { return append(slices.Clone(p), i) }

// nodeAt returns the node at a path.
func nodeAt(n *yamlpos.Node, at path) *yamlpos.Node {
	for _, i := range at {
		n = child(n, i)
	}
	return n
}

func child(n *yamlpos.Node, i int) *yamlpos.Node {
	if n.Kind == yamlpos.Map {
		return n.Pairs[i].Value
	}
	return n.Items[i]
}

// replace returns a tree with another node at a path.
func replace(n *yamlpos.Node, at path, by *yamlpos.Node) *yamlpos.Node {
	if len(at) == 0 {
		return by
	}
	i, out := at[0], *n
	v := replace(child(n, i), at[1:], by)
	if n.Kind == yamlpos.Map {
		out.Pairs = slices.Clone(n.Pairs)
		out.Pairs[i].Value = v
	} else {
		out.Items = slices.Clone(n.Items)
		out.Items[i] = v
	}
	return &out
}

// get returns a field of a map, nil for none.
func get(n *yamlpos.Node, name string) *yamlpos.Node {
	for _, p := range n.Pairs {
		if p.Key.Text == name {
			return p.Value
		}
	}
	return nil
}

// with returns a map with another value of a field.
func with(n *yamlpos.Node, name string, value *yamlpos.Node) *yamlpos.Node {
	for i, p := range n.Pairs {
		if p.Key.Text == name {
			return replace(n, path{i}, value)
		}
	}
	out := *n
	out.Pairs = append(slices.Clone(n.Pairs), yamlpos.Pair{Key: yamlpos.TextNode(name), Value: value})
	return &out
}

// textOf returns the text of a field of a map, "" for none.
func textOf(n *yamlpos.Node, name string) string {
	if v := get(n, name); v != nil {
		return v.Text
	}
	return ""
}
