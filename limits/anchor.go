package limits

import (
	"strings"

	"github.com/goccy/go-yaml/token"
)

// properties is what may stand before a value: an anchor and a tag.
type properties struct {
	given       bool
	anchor, tag string
}

// properties takes the anchor and the tag before the next value.
func (c *composer) properties() properties {
	var p properties
	for t := c.peek(); t != nil; t = c.peek() {
		switch {
		case t.Type == token.AnchorType && p.anchor == "":
			if p.anchor = c.name("anchor"); p.anchor != "" {
				c.anchors[p.anchor] = nil // until its value is complete
			}
		case t.Type == token.TagType && p.tag == "":
			p.tag = c.next().Value
			if long, ok := strings.CutPrefix(p.tag, "!<tag:yaml.org,2002:"); ok {
				p.tag = "!!" + strings.TrimSuffix(long, ">")
			}
		case t.Type == token.AnchorType || t.Type == token.TagType:
			c.fail(t, "two anchors or two tags before one value", "keep one")
		default:
			return p
		}
		p.given = true
	}
	return p
}

// name takes the & or * before a name, and the name.
func (c *composer) name(what string) string {
	mark := c.next()
	t := c.peek()
	if t == nil || !isScalar(t) || t.Position.Line != mark.Position.Line || t.Value == "" {
		c.fail(mark, "an unquoted "+mark.Value+" begins an "+what+", which has no name here",
			`a text that begins with `+mark.Value+` needs quotes, such as "`+mark.Value+`"`)
		return ""
	}
	return c.next().Value
}

// finish gives a value its properties.
func (c *composer) finish(p properties, n *node) *node {
	if !p.given || c.err != nil {
		return n
	}
	if n.kind == scalar && p.tag != "" {
		n.tag = p.tag
	}
	if p.anchor != "" {
		c.anchors[p.anchor] = n
	}
	return n
}

// alias takes an alias and returns the node of the anchor that stands before
// it. What it expands to is taken from what is allowed, so weights cannot
// overflow.
func (c *composer) alias() *node {
	mark := c.peek()
	if c.at > 0 && c.tokens[c.at-1].Type == token.TagType {
		c.fail(mark, "a tag before an alias", "drop the tag")
	}
	name := c.name("alias")
	n, known := c.anchors[name]
	switch {
	case c.err != nil:
	case !known:
		c.fail(mark, "unknown anchor "+quote(name),
			"an alias comes after its anchor; a text that begins with * needs quotes")
	case n == nil:
		c.fail(mark, "the anchor "+quote(name)+" holds itself", "write out one of the two")
	case n.weight > c.allowed:
		c.fail(mark, "the aliases up to here expand to too many values", "write less with aliases")
	default:
		c.allowed -= n.weight
		return n
	}
	return &node{pos: placeOf(c.file, mark), weight: 1}
}
