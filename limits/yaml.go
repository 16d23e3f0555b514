package limits

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/georld/rld/rules"
)

const (
	// maxNesting bounds how deep maps and lists nest, and with it the stack.
	maxNesting = 128
	// expansion is what aliases may expand to, in values, beside one for
	// each byte of the file: a bomb is refused before it goes off.
	expansion = 100_000
)

var tooNested = fmt.Sprintf("nested more than %d levels deep", maxNesting)

// parse reads the one document of a text; an empty one is a null. The library
// descends from the reference's, so that both read a file as the same YAML.
func parse(file, text string) (root *node, err error) {
	at := rules.Position{File: file, Line: 1, Column: 1}
	defer func() { // for hostile input that the library is not ready for
		if p := recover(); p != nil {
			root, err = nil, &fault{at, fmt.Sprintf("the YAML reader gave up on this file: %v", p),
				"write it in a plainer form"}
		}
	}()
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return nil, &fault{at, err.Error(), ""}
	}
	c := composer{file: file, done: make(map[*yaml.Node]*node), allowed: expansion + len(text)}
	var doc yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return &node{kind: scalar, pos: at, weight: 1}, nil
	case err != nil:
		return nil, syntaxFault(file, text, err)
	}
	if root, err = c.node(&doc, 0); err != nil {
		return nil, err
	}
	return root, onlyDocument(file, text, loader)
}

// onlyDocument refuses a second document, which nobody would read.
func onlyDocument(file, text string, loader *yaml.Loader) error {
	var next yaml.Node
	switch err := loader.Load(&next); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return syntaxFault(file, text, err)
	}
	if c := next.Content; len(c) == 1 && c[0].Kind == yaml.ScalarNode && c[0].Value == "" {
		return nil
	}
	return &fault{rules.Position{File: file, Line: next.Line, Column: next.Column},
		"a second document; only the first would be read", "put it in a file of its own"}
}

// composer makes our tree of the library's. Anchors are shared and not copied.
type composer struct {
	file    string
	done    map[*yaml.Node]*node // nil while a node is being made
	allowed int                  // values that the whole document may expand to
}

func (c *composer) node(n *yaml.Node, depth int) (*node, error) {
	switch {
	case n.Kind == yaml.DocumentNode && len(n.Content) == 1:
		return c.node(n.Content[0], depth)
	case n.Kind == yaml.AliasNode:
		return c.alias(n)
	case depth >= maxNesting && n.Kind != yaml.ScalarNode:
		return nil, c.fault(n, tooNested, "flatten it")
	}
	out := &node{pos: c.position(n), weight: 1}
	c.done[n] = nil
	switch n.Kind {
	case yaml.MappingNode:
		out.kind = mapping
	case yaml.SequenceNode:
		out.kind = sequence
	default:
		c.scalar(out, n)
	}
	for i := 0; i < len(n.Content); i++ {
		v, err := c.node(n.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		if out.weight += v.weight; out.weight > c.allowed {
			return nil, c.fault(n, "its aliases expand to too much", "write less of it with aliases")
		}
		switch {
		case out.kind == sequence:
			out.items = append(out.items, v)
		case i%2 == 0:
			out.fields = append(out.fields, field{key: v})
		default:
			out.fields[len(out.fields)-1].value = v
		}
	}
	c.done[n] = out
	return out, nil
}

func (c *composer) scalar(out *node, n *yaml.Node) {
	const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	out.text, out.quoted = n.Value, n.Style&quotes != 0
	if n.Style&yaml.TaggedStyle != 0 {
		out.tag = n.ShortTag()
	}
}

func (c *composer) alias(n *yaml.Node) (*node, error) {
	target, known := c.done[n.Alias]
	if !known || target == nil {
		return nil, c.fault(n, "alias *"+n.Value+" is inside its own anchor", "")
	}
	return target, nil
}

func (c *composer) position(n *yaml.Node) rules.Position {
	return rules.Position{File: c.file, Line: n.Line, Column: n.Column}
}

func (c *composer) fault(n *yaml.Node, message, hint string) error {
	return &fault{c.position(n), message, hint}
}
