package yamlpos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const (
	// maxNesting bounds how deep maps and lists nest, and so the stack.
	maxNesting = 128
	// expansion bounds the values that aliases expand to, beside one for each
	// byte of the file.
	expansion = 100_000
)

var tooNested = fmt.Sprintf("nested more than %d levels deep", maxNesting)

// Options bounds the files that Parse accepts.
type Options struct {
	// MaxBytes is the size of the longest file.
	MaxBytes int
	// TooLong is the hint for a longer file; it may be "".
	TooLong string
	// Kind is the kind of the file; the zero value is any YAML.
	Kind FileKind
}

// Parse returns the one document of a file as a tree, and the text that its
// positions refer to. An empty document is a null. The root is nil when the
// file is no YAML; the fault is then the only one, since nothing behind it can
// be trusted.
func Parse(file string, data []byte, o Options) (root *Node, text string, fault *Diagnostic) {
	p := parser{file: file, options: o, done: make(map[*yaml.Node]*Node)}
	defer func() { // for hostile input that the library is not ready for
		if r := recover(); r != nil {
			root, fault = nil, p.fault(Position{}, "write it in a plainer form", "the YAML reader gave up on this file: %v", r)
		}
	}()
	if text, fault = p.plainText(data); fault != nil {
		return nil, text, fault
	}
	p.allowed = expansion + len(text)
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return nil, text, p.fault(Position{}, "", "%v", err)
	}
	var doc, next yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return &Node{Pos: Position{File: file, Line: 1, Column: 1}, weight: 1}, text, nil
	case err != nil:
		return nil, text, p.syntax(text, err)
	}
	if root, fault = p.node(&doc, 0); fault != nil {
		return nil, text, fault
	}
	switch err := loader.Load(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, text, p.syntax(text, err)
	case len(next.Content) != 1 || next.Content[0].Kind != yaml.ScalarNode || next.Content[0].Value != "":
		return nil, text, p.fault(p.position(&next), "put it in a file of its own",
			"a second document; only the first would be read")
	}
	return root, text, nil
}

// plainText returns the text of a file with uniform line ends, and the fault
// that makes it no text.
func (p *parser) plainText(data []byte) (text string, fault *Diagnostic) {
	switch {
	case len(data) > p.options.MaxBytes:
		return "", p.fault(Position{}, p.options.TooLong, "the file is longer than %s", size(p.options.MaxBytes))
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return "", p.fault(Position{}, "save it as UTF-8", "the file is UTF-16")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return strings.ToValidUTF8(text, "?"), p.fault(positionAt(text, i), "save the file as UTF-8", "this is not UTF-8")
		}
		if !printable(r) {
			return text, p.fault(positionAt(text, i), `in double quotes it can be written as an escape, such as "\x1b"`,
				"a control character, %U, may not stand in YAML", r)
		}
	}
	return text, nil
}

// size returns a number of bytes for a message.
func size(n int) string {
	if n>>20 > 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// printable reports whether YAML allows a character in its source.
func printable(r rune) bool {
	switch {
	case r == '\t', r == '\n', 0x20 <= r && r <= 0x7e, r == 0x85:
		return true
	case 0xa0 <= r && r <= 0xd7ff, 0xe000 <= r && r <= 0xfffd && r != 0xfeff, r >= 0x10000:
		return true
	}
	return false
}

// positionAt returns the line and column of byte i of a text.
func positionAt(text string, i int) Position {
	before := text[:i]
	return Position{
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1,
	}
}

// parser builds the nodes of one file from the library's. Anchors are shared
// and not copied.
type parser struct {
	file    string
	options Options
	done    map[*yaml.Node]*Node // nil while a node is being built
	allowed int                  // the values that the document may expand to
}

func (p *parser) node(n *yaml.Node, depth int) (*Node, *Diagnostic) {
	switch {
	case n.Kind == yaml.DocumentNode && len(n.Content) == 1:
		return p.node(n.Content[0], depth)
	case n.Kind == yaml.AliasNode:
		if target := p.done[n.Alias]; target != nil {
			return target, nil
		}
		return nil, p.fault(p.position(n), "", "alias *%s is inside its own anchor", n.Value)
	case depth >= maxNesting && n.Kind != yaml.ScalarNode:
		return nil, p.fault(p.position(n), "flatten it", "%s", tooNested)
	}
	out := &Node{Pos: p.position(n), Anchored: n.Anchor != "", weight: 1}
	p.done[n] = nil
	switch n.Kind {
	case yaml.MappingNode:
		out.Kind = Map
	case yaml.SequenceNode:
		out.Kind = List
	default:
		const quotes = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		out.Text, out.Quoted = n.Value, n.Style&quotes != 0
		if n.Style&yaml.TaggedStyle != 0 {
			out.Tag = n.ShortTag()
		}
	}
	for i := range n.Content {
		v, fault := p.node(n.Content[i], depth+1)
		if fault != nil {
			return nil, fault
		}
		if out.weight += v.weight; out.weight > p.allowed {
			return nil, p.fault(p.position(n), "write less of it with aliases", "its aliases expand to too much")
		}
		switch {
		case out.Kind == List:
			out.Items = append(out.Items, v)
		case i%2 == 0:
			out.Pairs = append(out.Pairs, Pair{Key: v})
		default:
			out.Pairs[len(out.Pairs)-1].Value = v
		}
	}
	p.done[n] = out
	return out, nil
}

func (p *parser) position(n *yaml.Node) Position { return Position{p.file, n.Line, n.Column} }

// fault returns an error at a position of the file, at its begin for the zero
// position.
func (p *parser) fault(at Position, hint, format string, args ...any) *Diagnostic {
	at.File, at.Line, at.Column = p.file, max(at.Line, 1), max(at.Column, 1)
	return &Diagnostic{Position: at, Hint: hint, Message: fmt.Sprintf(format, args...)}
}
