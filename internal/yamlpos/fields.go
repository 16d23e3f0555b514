package yamlpos

import (
	"fmt"

	"github.com/georld/rld/internal/suggest"
)

// Field is a field that a map may have, and the Reader of its value.
type Field struct {
	Name string
	Read Reader
}

// Fields reads a map whose fields are known, in the order of the file. The
// name of the map, such as "a workload", is for messages. It adds faults for a
// node that is no map, for unknown fields and for repeated ones, and reports
// whether there were none.
func (c *Collector) Fields(n *Node, name string, known ...Field) bool {
	names := make([]string, len(known))
	for i := range known {
		names[i] = known[i].Name
	}
	return c.Each(n, name, func(key string, p Pair) bool {
		for _, f := range known {
			if f.Name == key {
				return f.Read(p.Value, key)
			}
		}
		return c.Errorf(p.Key.Pos, suggest.Hint(key, names, "the fields of "+name+" are "+suggest.List(names)),
			"unknown field %s", Quote(key))
	})
}

// Each calls read for every entry of a map with free keys, in the order of the
// file. It adds faults for a node that is no map and for repeated keys, and
// reports whether there were none and every read succeeded.
func (c *Collector) Each(n *Node, name string, read func(key string, p Pair) bool) bool {
	if n.Kind != Map {
		return c.Errorf(n.Pos, "write fields as name: value", "%s is %s, not a map", name, n.Describe())
	}
	good := true
	lines := make(map[string]int)
	for _, p := range n.Pairs {
		key := p.Key.Text
		if line, twice := lines[key]; twice {
			c.Errorf(p.Key.Pos, "keep one", "%s is given twice, first in line %d", key, line)
			good = false
			continue
		}
		lines[key] = p.Key.Pos.Line
		good = read(key, p) && good
	}
	return good
}

// ListOf returns a Reader that calls read for every item of a list of at most
// most items. The example of an item, such as "- name: value", is part of the
// hint.
func (c *Collector) ListOf(most int, example string, read func(item *Node) bool) Reader {
	return func(n *Node, name string) bool {
		switch {
		case n.Kind != List:
			return c.Errorf(n.Pos, "write a list, such as "+example, "%s is %s, not a list", name, n.Describe())
		case len(n.Items) > most:
			return c.Errorf(n.Pos, fmt.Sprintf("at most %d", most), "%s has %d entries", name, len(n.Items))
		}
		good := true
		for _, item := range n.Items {
			good = read(item) && good
		}
		return good
	}
}
