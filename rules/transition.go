package rules

import "slices"

// Transition is a change from one set of rules to another while it comes into
// force. Times are Unix milliseconds.
//
// Before the change is in force, a rule has its former limit with the smaller
// amounts of both (see Lower), at its former place: only amounts may change at
// a time of which daemons do not agree. From is the time that they agreed on. A
// rule of both sets takes its new limit at the first start of a window of that
// limit at or after From, new rules are there at From, and removed ones until
// the longest window among them ends. So a request meets a rule that one of the
// two sets has for it.
type Transition struct {
	Before, After *Set
	// From is when the change comes into force, 0 while that is not agreed.
	From int64
	// Now is the present time.
	Now int64
	// Unaware is true for a daemon that may have missed the agreement. Others
	// may use the new set already. So limits of another shape admit nothing
	// here until the daemon is up to date, and new rules are there.
	Unaware bool
}

// Nodes returns the descriptors that are in force, and the next time at which
// they change, 0 for none.
func (t Transition) Nodes() (nodes []DomainNode, next int64) {
	m := merge{Transition: t}
	first, second := t.Before.nodes, t.After.nodes
	if m.agreed() {
		first, second = second, first
	}
	for _, d := range first {
		out := DomainNode{Name: d.Name}
		if m.agreed() {
			out.Children = m.level(children(second, d.Name), d.Children)
		} else {
			out.Children = m.level(d.Children, children(second, d.Name))
		}
		nodes = append(nodes, out)
	}
	for _, d := range second {
		if slices.ContainsFunc(first, func(o DomainNode) bool { return o.Name == d.Name }) {
			continue
		}
		out := DomainNode{Name: d.Name}
		if m.agreed() {
			out.Children = m.level(d.Children, nil)
		} else {
			out.Children = m.level(nil, d.Children)
		}
		if len(out.Children) > 0 {
			nodes = append(nodes, out)
		}
	}
	return nodes, m.next
}

// Over returns the time at which the set before has no effect any more, 0 while
// From is not agreed.
func (t Transition) Over() int64 {
	if t.From == 0 {
		return 0
	}
	for t.Now = t.From; ; {
		_, next := t.Nodes()
		if next == 0 {
			return t.Now
		}
		t.Now = next
	}
}

// children returns the descriptors of a domain.
func children(domains []DomainNode, name string) []Node {
	i := slices.IndexFunc(domains, func(d DomainNode) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return domains[i].Children
}

// merge makes one tree of two.
type merge struct {
	Transition
	next int64
}

// agreed reports whether From is agreed and has come.
func (m *merge) agreed() bool { return m.From > 0 && m.Now >= m.From }

// due reports whether a time has come, once From is agreed.
func (m *merge) due(at int64) bool {
	switch {
	case m.From == 0:
		return false
	case m.Now >= at:
		return true
	case m.next == 0 || at < m.next:
		m.next = at
	}
	return false
}

// level merges the descriptors of one level. The first wildcard that matches
// wins, so their order is that of the set in force. Removed ones are behind
// those that were before them.
func (m *merge) level(before, after []Node) []Node {
	was, is := byEntry(before), byEntry(after)
	stay := m.remaining(before, is)
	if !m.agreed() {
		return m.former(before, after, was, is)
	}
	var out []Node
	left := make(map[*Node][]Node) // removed ones by the one before them
	var last *Node
	place := m.places(after, was)
	for i := range before {
		o := &before[i]
		if n := is[o.entry()]; n == nil {
			if stay[o.Key] {
				left[last] = append(left[last], *o)
			}
		} else if last == nil || place[n] > place[last] {
			last = n
		}
	}
	out = append(out, left[nil]...)
	for i := range after {
		n := &after[i]
		if o := was[n.entry()]; o == nil {
			out = append(out, *n)
		} else {
			out = append(out, m.both(o, n))
		}
		out = append(out, left[n]...)
	}
	return out
}

// former returns a level before the change is in force.
func (m *merge) former(before, after []Node, was, is map[Entry]*Node) []Node {
	var out []Node
	for i := range before {
		o := &before[i]
		if n := is[o.entry()]; n == nil {
			out = append(out, *o)
		} else {
			out = append(out, m.both(o, n))
		}
	}
	for i := range after {
		if n := &after[i]; was[n.entry()] == nil && !m.due(m.From) && m.Unaware {
			out = append(out, *n)
		}
	}
	return out
}

// remaining returns the keys whose removed descriptors are still there: all of
// one key leave together, or else a request would meet another removed one.
func (m *merge) remaining(before []Node, is map[Entry]*Node) map[string]bool {
	until := make(map[string]int64)
	for i := range before {
		if o := &before[i]; is[o.entry()] == nil {
			until[o.Key] = max(until[o.Key], lastTakeover(m.From, o))
		}
	}
	stay := make(map[string]bool, len(until))
	for key, at := range until {
		stay[key] = !m.due(at)
	}
	return stay
}

// places returns the places of the descriptors that both sets have.
func (m *merge) places(after []Node, was map[Entry]*Node) map[*Node]int {
	all := make(map[*Node]int, len(after))
	for i := range after {
		if n := &after[i]; was[n.entry()] != nil {
			all[n] = i
		}
	}
	return all
}

func (n *Node) entry() Entry { return Entry{n.Key, n.Value} }

func byEntry(nodes []Node) map[Entry]*Node {
	all := make(map[Entry]*Node, len(nodes))
	for i := range nodes {
		all[nodes[i].entry()] = &nodes[i]
	}
	return all
}

// lastTakeover returns the latest takeover of the limits of a tree.
func lastTakeover(from int64, n *Node) int64 {
	last := n.Limit.Takeover(from)
	for i := range n.Children {
		last = max(last, lastTakeover(from, &n.Children[i]))
	}
	return last
}

// both returns a descriptor of both sets.
func (m *merge) both(o, n *Node) Node {
	out := *o
	switch {
	case m.takes(o, n):
		out = *n
	case m.Unaware && !SameShape(o.Limit, n.Limit):
		switch {
		case !n.Limit.counts():
		case o.Limit.counts():
			out.Limit = o.Limit.Denied()
		default:
			out.Limit = n.Limit
		}
	default:
		out.Limit = Lower(o.Limit, n.Limit)
	}
	out.Children = m.level(o.Children, n.Children)
	return out
}

// takes reports whether a descriptor has its new limit.
func (m *merge) takes(o, n *Node) bool {
	l := n.Limit
	if !l.counts() {
		l = o.Limit
	}
	if SameShape(o.Limit, n.Limit) && (o.Limit == nil || !EffectOf(o.Limit, n.Limit).Raises) && o.ShareThreshold == n.ShareThreshold {
		return m.due(m.From) // the smaller amounts are in force already
	}
	return m.due(l.Takeover(m.From))
}
