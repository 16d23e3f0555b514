package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Node is one descriptor of the limits language, the input of NewSet. An empty
// Value is key-only. A Value with '*' is a wildcard.
type Node struct {
	Key, Value     string
	Limit          *Limit
	ShareThreshold bool
	Metadata       map[string]any
	Children       []Node
	Pos            Position
}

// DomainNode is the root of a domain's descriptors.
type DomainNode struct {
	Name     string
	Children []Node
}

// Set holds all rules of all domains, compiled for matching. It is immutable
// and safe for concurrent use.
type Set struct {
	domains table[*Domain]
	rules   []*Rule
	byID    map[ID]*Rule
	shared  map[uint64]*Rule // that count, by shared name
	nodes   []DomainNode     // that it was compiled from
	hash    uint64
}

// Domain is the descriptor tree of one domain.
type Domain struct {
	Name string
	root level
}

// level is one level of the tree, by key: an entry of another key never
// matches.
type level struct{ keys table[*keyLevel] }

type keyLevel struct {
	exact     table[*branch]
	wildcards []wildcard // in file order
	any       *branch    // key-only; nil when there is none
}

type wildcard struct {
	pattern string
	branch  *branch
}

// branch is a compiled Node. Every branch has a rule: a node without a limit
// whitelists a request that ends there.
type branch struct {
	rule *Rule
	next level
}

// NewSet compiles domains, which must not be modified afterwards. It returns an
// error for an empty or repeated domain, an empty key, or two equal entries on
// one level. Package limits finds these faults first, with their positions.
func NewSet(domains []DomainNode) (*Set, error) {
	s := &Set{byID: make(map[ID]*Rule), shared: make(map[uint64]*Rule), nodes: domains}
	for _, d := range domains {
		if d.Name == "" {
			return nil, fmt.Errorf("a domain without a name")
		}
		if s.Domain(d.Name) != nil {
			return nil, fmt.Errorf("domain %q twice", d.Name)
		}
		c := compiler{set: s, domain: d.Name}
		root, err := c.level(d.Children)
		if err != nil {
			return nil, fmt.Errorf("domain %q: %w", d.Name, err)
		}
		s.domains.put(d.Name, &Domain{Name: d.Name, root: root})
	}
	s.hash = hashOf(s.rules)
	return s, nil
}

// Domain returns the tree of a domain, nil if no rule has it.
func (s *Set) Domain(name string) *Domain {
	d, _ := s.domains.get(name)
	return d
}

// Find returns the rule with an ID, or nil.
func (s *Set) Find(id ID) *Rule { return s.byID[id] }

// FindShared returns the rule with a name that Rule.Shared returns, nil for
// none. Rules without a limit and unlimited ones have no such name: they count
// nothing.
func (s *Set) FindShared(name uint64) *Rule { return s.shared[name] }

// Rules returns every rule in file order, parents before children. Read only.
func (s *Set) Rules() []*Rule { return s.rules }

// Domains returns the names of the domains, sorted.
func (s *Set) Domains() []string {
	names := slices.Clone(s.domains.names)
	slices.Sort(names)
	return names
}

// Match returns the rule that entries end at, or nil. At each level it tries
// the exact value first, then the wildcards in file order, then the key-only
// entry. A match is final; there is no backtracking. The rule must be as deep
// as the request is long. It does not allocate, and costs the depth of the tree
// plus the wildcards of its levels.
func (d *Domain) Match(entries []Entry) *Rule {
	at := &d.root
	var b *branch
	for i := range entries {
		b = at.find(&entries[i])
		if b == nil {
			return nil
		}
		at = &b.next
	}
	if b == nil {
		return nil
	}
	return b.rule
}

// Arrange orders entries whose order has no meaning such that Match finds a
// rule. If several orders do, it is the one whose entries come first
// in the order given, level by level. It returns false, and leaves the order,
// if none does. It looks at each branch of the tree once at most if the keys of
// the entries differ.
func (d *Domain) Arrange(entries []Entry) bool {
	return len(entries) > 0 && d.root.arrange(entries)
}

func (l *level) arrange(entries []Entry) bool {
	for i := range entries {
		b := l.find(&entries[i])
		if b == nil {
			continue
		}
		first := entries[i]
		copy(entries[1:i+1], entries[:i])
		entries[0] = first
		if len(entries) == 1 || b.next.arrange(entries[1:]) {
			return true
		}
		copy(entries[:i], entries[1:i+1])
		entries[i] = first
	}
	return false
}

func (l *level) find(e *Entry) *branch {
	k, ok := l.keys.get(e.Key)
	if !ok {
		return nil
	}
	if b, ok := k.exact.get(e.Value); ok {
		return b
	}
	for i := range k.wildcards {
		if Matches(k.wildcards[i].pattern, e.Value) {
			return k.wildcards[i].branch
		}
	}
	return k.any
}

// Matches reports whether pattern, in which each '*' stands for zero or more
// characters, covers all of s. It matches the parts leftmost first, which is
// enough if '*' is the only wildcard.
func Matches(pattern, s string) bool {
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern == s
	}
	if !strings.HasPrefix(s, pattern[:star]) {
		return false
	}
	s, pattern = s[star:], pattern[star+1:]
	for {
		star = strings.IndexByte(pattern, '*')
		if star < 0 {
			return strings.HasSuffix(s, pattern)
		}
		at := strings.Index(s, pattern[:star])
		if at < 0 {
			return false
		}
		s, pattern = s[at+star:], pattern[star+1:]
	}
}

// compiler holds the path from the root while a tree is compiled.
type compiler struct {
	set    *Set
	domain string
	path   []Entry
	shared []string
}

func (c *compiler) level(nodes []Node) (level, error) {
	var out level
	for i := range nodes {
		n := &nodes[i]
		if n.Key == "" {
			return out, fmt.Errorf("%s: a descriptor without a key", n.Pos)
		}
		if n.Limit != nil && !n.Limit.Unlimited && n.Limit.Window() <= 0 {
			return out, fmt.Errorf("%s: a limit without a window", n.Pos)
		}
		k, ok := out.keys.get(n.Key)
		if !ok {
			k = &keyLevel{}
			out.keys.put(n.Key, k)
		}
		b, err := c.branch(n)
		if err != nil {
			return out, err
		}
		if !k.put(n.Value, b) {
			return out, fmt.Errorf("%s: descriptor %q twice on one level", n.Pos, b.rule.Path)
		}
	}
	return out, nil
}

func (c *compiler) branch(n *Node) (*branch, error) {
	c.path = append(c.path, Entry{n.Key, n.Value})
	pattern := ""
	if n.ShareThreshold {
		pattern = n.Value
	}
	c.shared = append(c.shared, pattern)
	r := c.rule(n)
	r.Index = len(c.set.rules)
	c.set.rules = append(c.set.rules, r)
	c.set.byID[r.ID] = r
	if r.Limit != nil && !r.Limit.Unlimited {
		c.set.shared[r.Shared()] = r
	}
	next, err := c.level(n.Children)
	c.path, c.shared = c.path[:len(c.path)-1], c.shared[:len(c.shared)-1]
	return &branch{rule: r, next: next}, err
}

func (c *compiler) rule(n *Node) *Rule {
	r := &Rule{ID: pathID(c.domain, c.path), Domain: c.domain, Entries: slices.Clone(c.path), Limit: n.Limit, Metadata: n.Metadata, Pos: n.Pos}
	parts := make([]string, len(c.path))
	for i, e := range c.path {
		parts[i] = e.Key
		if e.Value != "" {
			parts[i] += "=" + e.Value
		}
		open := e.Value == "" || strings.Contains(e.Value, "*")
		r.Entity = r.Entity || open && c.shared[i] == ""
	}
	r.Path = strings.Join(parts, " > ")
	if slices.ContainsFunc(c.shared, func(p string) bool { return p != "" }) {
		r.Patterns = slices.Clone(c.shared)
	}
	if n.Limit != nil && !n.Limit.Unlimited {
		r.keyPrefix = appendKeyPrefix(nil, c.domain, c.path, n.Limit.Grid())
	}
	return r
}

// put adds b under a value of its key; false if the value is taken. A wildcard
// is also its own exact value: the text "x*" in a request means the entry x*,
// whatever other wildcard precedes it.
func (k *keyLevel) put(value string, b *branch) bool {
	if value == "" {
		if k.any != nil {
			return false
		}
		k.any = b
		return true
	}
	if _, taken := k.exact.get(value); taken {
		return false
	}
	k.exact.put(value, b)
	if strings.Contains(value, "*") {
		k.wildcards = append(k.wildcards, wildcard{value, b})
	}
	return true
}
