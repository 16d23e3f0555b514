package limits

import (
	"strings"

	"github.com/goccy/go-yaml/token"

	"github.com/georld/rld/rules"
)

const (
	// maxNesting bounds how deep maps and lists nest, and with it the stack.
	maxNesting = 128
	// expansion is what aliases may expand to, in values, beside one for
	// each byte of the file: a bomb is refused before it goes off.
	expansion = 100_000
)

// composer makes a tree of the tokens of one document. The library's lexer is
// used but not its parser, which is lenient where a misplaced field must not
// pass, and whose time and stack grow with the square and the length of some
// files.
type composer struct {
	file    string
	lines   []string     // of the source
	tokens  token.Tokens // without comments
	at      int          // the next token
	line    int          // where the last token ended
	depth   int          // of maps and lists around the next token
	anchors map[string]*node
	allowed int    // values that aliases may still expand to
	err     *fault // the first fault; nothing is read behind it
}

// intro is what introduces a value in a block: a colon, a dash, or the
// beginning of the document.
type intro struct {
	line, column int
	least        int  // the column from which on a value on a later line belongs to it
	list         int  // the same for a list
	compact      bool // a map or list may begin on the same line
}

// document composes all tokens into one value; a null for none.
func (c *composer) document(headerLine int) *node {
	c.line = headerLine
	root := c.block(intro{line: headerLine, column: 1, least: 1, list: 1})
	if t := c.peek(); t != nil {
		c.unexpected(t)
	}
	return root
}

// peek returns the next token, nil at the end and after a fault.
func (c *composer) peek() *token.Token {
	if c.err != nil || c.at >= len(c.tokens) {
		return nil
	}
	return c.tokens[c.at]
}

// next takes the token that peek returned.
func (c *composer) next() *token.Token {
	t := c.tokens[c.at]
	c.at++
	c.line = endLine(t)
	return t
}

func (c *composer) fail(t *token.Token, message, hint string) {
	if c.err == nil {
		c.err = &fault{placeOf(c.file, t), message, hint}
	}
}

// unexpected refuses a token that nothing is waiting for.
func (c *composer) unexpected(t *token.Token) {
	switch t.Type {
	case token.MappingValueType:
		c.fail(t, misplacedField, misplacedHint)
	case token.SequenceEndType, token.MappingEndType:
		c.fail(t, "a closing bracket that was never opened", "drop it, or put the text in quotes")
	case token.MappingKeyType:
		c.fail(t, "a field that is written with ?", "write name: value")
	default:
		c.fail(t, "this belongs to nothing before it", "check the indentation and the quotes")
	}
}

const (
	misplacedField = "a field may not begin here"
	misplacedHint  = "put it on a line of its own, as deep as its neighbors; a text that holds ': ' needs quotes"
)

// enter notes that a map or list begins; false when they nest too deep.
func (c *composer) enter(t *token.Token) bool {
	if c.depth++; c.depth > maxNesting {
		c.fail(t, "nested more than "+itoa(maxNesting)+" levels deep", "flatten it")
		return false
	}
	return true
}

// block composes the value that an intro introduces, a null where it has none.
func (c *composer) block(in intro) *node {
	t := c.peek()
	if !belongs(t, in) {
		return c.null(in)
	}
	if t.Position.Line > in.line {
		c.checkTabs(t)
	}
	var p properties
	if !c.isField(c.at) {
		p = c.properties()
		if t = c.peek(); !belongs(t, in) {
			return c.finish(p, c.null(in))
		}
	}
	apart := t.Position.Line > in.line
	switch {
	case c.err != nil:
		return c.null(in)
	case c.isField(c.at):
		if !apart && !in.compact {
			c.fail(t, misplacedField, misplacedHint)
		}
		return c.finish(p, c.blockMap(t.Position.Column))
	case t.Type == token.SequenceEntryType:
		if !apart && !in.compact || p.given && t.Position.Line == c.line {
			c.fail(t, "a list may not begin here", "begin it on the next line")
		}
		return c.finish(p, c.blockList(t.Position.Column))
	}
	return c.finish(p, c.single(t))
}

// belongs reports whether a token is, or begins, the value of an intro.
func belongs(t *token.Token, in intro) bool {
	if t == nil {
		return false
	}
	least := in.least
	if t.Type == token.SequenceEntryType {
		least = in.list
	}
	return t.Position.Line <= in.line || t.Position.Column >= least
}

func (c *composer) null(in intro) *node {
	return &node{pos: rules.Position{File: c.file, Line: max(in.line, 1), Column: in.column}, weight: 1}
}

// isField reports whether a field's name and colon begin at the i-th token,
// all on one line.
func (c *composer) isField(i int) bool {
	if i >= len(c.tokens) {
		return false
	}
	line := c.tokens[i].Position.Line
	for i < len(c.tokens) && (c.tokens[i].Type == token.AnchorType || c.tokens[i].Type == token.TagType) {
		i++
		if c.tokens[i-1].Type == token.AnchorType {
			i++
		}
	}
	if i < len(c.tokens) && c.tokens[i].Type == token.AliasType {
		i++
	}
	return i+1 < len(c.tokens) && isScalar(c.tokens[i]) && c.tokens[i+1].Type == token.MappingValueType &&
		c.tokens[i].Position.Line == line && c.tokens[i+1].Position.Line == line
}

// blockMap composes the fields that begin at a column, the next one first.
func (c *composer) blockMap(column int) *node {
	out := &node{kind: mapping, weight: 1}
	if t := c.peek(); t != nil && c.enter(t) {
		out.pos = placeOf(c.file, t)
	}
	for c.err == nil && c.isField(c.at) {
		p := c.properties()
		key := c.finish(p, c.single(c.peek()))
		if c.err != nil {
			break
		}
		colon := c.next()
		in := intro{line: c.line, column: colon.Position.Column + 1, least: column + 1, list: column}
		out.add(key, c.block(in))
		if !c.goesOn(column) {
			break
		}
		if t := c.peek(); !c.isField(c.at) {
			c.unexpected(t)
		}
	}
	c.depth--
	return out
}

// blockList composes the items whose dashes are at a column, the next one
// first.
func (c *composer) blockList(column int) *node {
	out := &node{kind: sequence, weight: 1}
	if t := c.peek(); t != nil && c.enter(t) {
		out.pos = placeOf(c.file, t)
	}
	for t := c.peek(); t != nil && t.Type == token.SequenceEntryType; t = c.peek() {
		c.next()
		in := intro{line: c.line, column: column + 1, least: column + 1, list: column + 1, compact: true}
		item := c.block(in)
		out.items = append(out.items, item)
		out.weight += item.weight
		if !c.goesOn(column) {
			break
		}
	}
	c.depth--
	return out
}

// goesOn reports whether the next token is at the column of the block, on a
// line of its own. It refuses one that is deeper or on the same line.
func (c *composer) goesOn(column int) bool {
	t := c.peek()
	if t == nil {
		return false
	}
	if t.Position.Line <= c.line || t.Position.Column > column {
		c.unexpected(t)
		return false
	}
	return t.Position.Column == column
}

// checkTabs refuses a value that is indented with a tab. The lexer does so too,
// but not where the line before ends in a blank.
func (c *composer) checkTabs(t *token.Token) {
	if t.Position.Line > len(c.lines) {
		return
	}
	line := c.lines[t.Position.Line-1]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	tab := strings.IndexByte(indent, '\t')
	if tab < 0 || len(indent) < t.Position.Column-1 {
		return
	}
	at := *t
	at.Position = &token.Position{Line: t.Position.Line, Column: tab + 1}
	c.fail(&at, tabProblem, tabHint)
}

const (
	tabProblem = "a tab in the indentation"
	tabHint    = "indent with spaces"
)

// single composes a value that is no block map or list: a scalar, an alias or
// something in brackets.
func (c *composer) single(t *token.Token) *node {
	switch {
	case t == nil:
	case t.Type == token.MappingStartType || t.Type == token.SequenceStartType:
		return c.flow(t)
	case t.Type == token.AliasType:
		return c.alias()
	case t.Type == token.LiteralType || t.Type == token.FoldedType:
		c.next()
		out := &node{pos: placeOf(c.file, t), quoted: true, weight: 1}
		if c.peek() != nil {
			out.text = c.next().Value
			c.line = out.pos.Line // whatever follows is on a later line than that
		}
		return out
	case isScalar(t):
		return c.scalar()
	default:
		c.unexpected(t)
	}
	return &node{pos: placeOf(c.file, t), weight: 1}
}

func (n *node) add(key, value *node) {
	n.fields = append(n.fields, field{key, value})
	n.weight += key.weight + value.weight
}
