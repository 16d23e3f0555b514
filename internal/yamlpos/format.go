package yamlpos

import (
	"regexp"
	"strconv"
	"strings"
)

// flowWidth is the width up to which a map or a list is one line.
const flowWidth = 100

// Format returns a tree as a file that Parse reads: the same nodes, at other
// positions.
func Format(n *Node) []byte {
	var b strings.Builder
	n.block(&b, 0)
	return []byte(b.String())
}

// block writes a node as lines with an indent.
func (n *Node) block(b *strings.Builder, indent int) {
	margin := strings.Repeat("  ", indent)
	switch {
	case n.Kind == Map && len(n.Pairs) > 0:
		for _, p := range n.Pairs {
			b.WriteString(margin + p.Key.scalarText() + ":")
			if flow := p.Value.flow(); len(flow)+len(margin) <= flowWidth {
				b.WriteString(" " + flow + "\n")
				continue
			}
			b.WriteByte('\n')
			p.Value.block(b, indent+1)
		}
	case n.Kind == List && len(n.Items) > 0:
		for _, item := range n.Items {
			if flow := item.flow(); len(flow)+len(margin) <= flowWidth {
				b.WriteString(margin + "- " + flow + "\n")
				continue
			}
			var lines strings.Builder
			item.block(&lines, indent+1)
			b.WriteString(margin + "- " + lines.String()[len(margin)+2:])
		}
	default:
		b.WriteString(margin + n.flow() + "\n")
	}
}

// flow returns a node in one line.
func (n *Node) flow() string {
	var parts []string
	switch n.Kind {
	case Map:
		for _, p := range n.Pairs {
			parts = append(parts, p.Key.scalarText()+": "+p.Value.flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case List:
		for _, item := range n.Items {
			parts = append(parts, item.flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return n.scalarText()
}

// plain is text that needs no quotes, whatever stands beside it.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./+-][A-Za-z0-9_./%+-]*( [A-Za-z0-9_./%+-]+)*$`)

func (n *Node) scalarText() string {
	text, tag := n.Text, n.Tag
	if tag != "" {
		tag += " "
	}
	switch {
	case n.IsMerge():
	case (text == "" || text == "~") && !n.Quoted:
		text = "~"
	case n.Quoted || !plain.MatchString(text) || text == "-":
		text = strconv.Quote(text)
	}
	return tag + text
}

// TextNode returns a scalar. NewMap and NewList return a map and a list with
// these entries.
func TextNode(text string) *Node { return &Node{Kind: Scalar, Text: text} }

// NewMap returns a map.
func NewMap(pairs ...Pair) *Node { return &Node{Kind: Map, Pairs: pairs} }

// NewList returns a list.
func NewList(items ...*Node) *Node { return &Node{Kind: List, Items: items} }
