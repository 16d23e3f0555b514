package report

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// keyNames is a bounded cache of the descriptors of hot keys, in two
// generations: when recent is full, it becomes former, and the names that are
// not used again are dropped with the next one. It is safe for concurrent use.
// Decisions do not wait for it: add drops names while another goroutine holds
// the lock.
type keyNames struct {
	mu             sync.Mutex
	recent, former map[crdt.Key]keyName
}

// keyName is the descriptor of one key.
type keyName struct {
	domain, text string
	rule         *rules.Rule // nil for none
}

const (
	maxNames     = 1_024 // of a generation
	maxNameBytes = 256
)

// add keeps the descriptors of a decided call whose keys are in the sample of
// hot keys. It allocates only for a new one.
func (n *keyNames) add(c *node.Call, hits []node.Hit) {
	for i := range c.Statuses {
		if c.Statuses[i].Sampled {
			n.addOne(c, hits, i)
		}
	}
}

func (n *keyNames) addOne(c *node.Call, hits []node.Hit, i int) {
	if !n.mu.TryLock() {
		return
	}
	defer n.mu.Unlock()
	key := hits[i].Key
	if _, known := n.recent[key]; known {
		return
	}
	name, known := n.former[key]
	if !known {
		name = keyName{
			domain: strings.Clone(c.Domain), text: descriptorText(&c.Statuses[i], c.Origin(i)), rule: c.Statuses[i].Rule,
		}
	}
	if len(n.recent) == maxNames {
		n.recent, n.former = n.former, n.recent
		clear(n.recent)
	}
	if n.recent == nil {
		n.recent = make(map[crdt.Key]keyName, maxNames)
	}
	n.recent[key] = name
}

// of returns the known names of keys.
func (n *keyNames) of(keys []node.HotKey) map[crdt.Key]keyName {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make(map[crdt.Key]keyName, len(keys))
	for i := range keys {
		name, known := n.recent[keys[i].Key]
		if !known {
			name, known = n.former[keys[i].Key]
		}
		if known {
			out[keys[i].Key] = name
		}
	}
	return out
}

// descriptorText returns key=value,key=value, shortened to maxNameBytes, with
// the pattern instead of a value that shares its counter.
func descriptorText(st *node.Status, d *rules.Descriptor) string {
	var b strings.Builder
	for i, e := range d.Entries {
		if i > 0 {
			b.WriteByte(',')
		}
		value := e.Value
		if r := st.Rule; r != nil && st.Limit == r.Limit && i < len(r.Patterns) && r.Patterns[i] != "" {
			value = r.Patterns[i]
		}
		b.WriteString(e.Key)
		b.WriteByte('=')
		b.WriteString(value)
		if b.Len() > maxNameBytes {
			text := b.String()[:maxNameBytes]
			for !utf8.ValidString(text) {
				text = text[:len(text)-1]
			}
			return text + "..."
		}
	}
	return b.String()
}
