package report

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// keyNames is a bounded cache of the descriptors of hot keys, with
// second-chance replacement. It is safe for concurrent use. Decisions do not
// wait for it: add drops names while another goroutine holds the lock.
type keyNames struct {
	mu   sync.Mutex
	at   map[crdt.Key]int32 // index in all
	all  []keyName
	hand int // next candidate for replacement
}

// keyName is the descriptor of one key.
type keyName struct {
	key          crdt.Key
	domain, text string
	rule         *rules.Rule // nil for none
	used         bool        // since hand passed
}

const (
	maxNames     = 1_024
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
	if at, known := n.at[hits[i].Key]; known {
		n.all[at].used = true
		return
	}
	at := n.room()
	n.all[at] = keyName{
		key: hits[i].Key, domain: strings.Clone(c.Domain), text: descriptorText(&c.Statuses[i], &c.Descriptors[i]),
		rule: c.Statuses[i].Rule,
	}
	if n.at == nil {
		n.at = make(map[crdt.Key]int32, maxNames)
	}
	n.at[hits[i].Key] = int32(at)
}

// room returns an index in all for a new name.
func (n *keyNames) room() int {
	if len(n.all) < maxNames {
		n.all = append(n.all, keyName{})
		return len(n.all) - 1
	}
	for n.all[n.hand].used { // clears each at most once
		n.all[n.hand].used = false
		n.hand = (n.hand + 1) % maxNames
	}
	at := n.hand
	n.hand = (n.hand + 1) % maxNames
	delete(n.at, n.all[at].key)
	return at
}

// of returns the known names of keys.
func (n *keyNames) of(keys []node.HotKey) map[crdt.Key]keyName {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make(map[crdt.Key]keyName, len(keys))
	for i := range keys {
		if at, known := n.at[keys[i].Key]; known {
			out[keys[i].Key] = n.all[at]
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
