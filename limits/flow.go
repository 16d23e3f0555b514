package limits

import "github.com/goccy/go-yaml/token"

// flow composes a map in braces or a list in brackets.
func (c *composer) flow(open *token.Token) *node {
	c.next()
	out := &node{kind: sequence, pos: placeOf(c.file, open), weight: 1}
	end, closing := token.SequenceEndType, "]"
	if open.Type == token.MappingStartType {
		out.kind, end, closing = mapping, token.MappingEndType, "}"
	}
	if !c.enter(open) {
		return out
	}
	for t := c.peek(); t != nil && t.Type != end; t = c.peek() {
		c.flowEntry(out)
		t = c.peek()
		if t != nil && t.Type == token.CollectEntryType {
			c.next()
		} else if t != nil && t.Type != end {
			c.fail(t, "this is neither a comma nor "+closing,
				"put commas between the entries, and texts with commas, brackets or ': ' in quotes")
		}
	}
	if c.err == nil && c.peek() == nil {
		c.fail(open, "a bracket that is never closed", "close it with "+closing)
	}
	if c.err == nil {
		c.next()
	}
	c.depth--
	return out
}

// flowEntry composes one entry of a map or list in brackets. In a list, a: b
// is a map of one field.
func (c *composer) flowEntry(out *node) {
	if t := c.peek(); t.Type == token.CollectEntryType {
		c.fail(t, "a comma with nothing before it", "drop it")
		return
	}
	key := c.flowValue()
	var value *node
	if t := c.peek(); t != nil && t.Type == token.MappingValueType {
		c.checkSpace(c.tokens[c.at-1])
		c.next()
		value = c.flowValue()
	}
	switch {
	case c.err != nil:
	case out.kind == mapping && value == nil:
		out.add(key, &node{pos: key.pos, weight: 1})
	case out.kind == mapping:
		out.add(key, value)
	case value != nil:
		pair := &node{kind: mapping, pos: key.pos, weight: 1}
		pair.add(key, value)
		out.items, out.weight = append(out.items, pair), out.weight+pair.weight
	default:
		out.items, out.weight = append(out.items, key), out.weight+key.weight
	}
}

// flowValue composes a value in brackets, a null where there is none.
func (c *composer) flowValue() *node {
	p := c.properties()
	t := c.peek()
	if t == nil {
		return c.null(intro{line: c.line, column: 1})
	}
	switch t.Type {
	case token.CollectEntryType, token.MappingEndType, token.SequenceEndType, token.MappingValueType:
		return c.finish(p, &node{pos: placeOf(c.file, t), weight: 1})
	case token.LiteralType, token.FoldedType, token.SequenceEntryType:
		c.fail(t, "a block may not begin inside brackets", "put the text in quotes")
	}
	return c.finish(p, c.single(t))
}

// checkSpace refuses a colon in braces without a space behind it, where the
// name before it has no quotes: it is part of a text in YAML.
func (c *composer) checkSpace(name *token.Token) {
	colon := c.peek()
	if c.at+1 >= len(c.tokens) || name.Type == token.SingleQuoteType || name.Type == token.DoubleQuoteType {
		return
	}
	next := c.tokens[c.at+1]
	switch next.Type {
	case token.CollectEntryType, token.MappingEndType, token.SequenceEndType:
		return
	}
	if next.Position.Line == colon.Position.Line && next.Position.Column == colon.Position.Column+1 {
		c.fail(colon, "a colon without a space behind it", "write name: value")
	}
}
