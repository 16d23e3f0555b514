package daemon

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/rules"
)

// texts keeps what was asked for under the keys that are in the sample of the
// hottest ones, for the operator of this machine. Of more than maxTexts those go
// that were asked for least lately. It is safe for concurrent use, and decisions do
// not wait for it: what comes while somebody else is at it is not kept.
type texts struct {
	mu   sync.Mutex
	at   map[crdt.Key]int32 // in all
	all  []keyName
	hand int // next of all to give up
}

// keyName is one key.
type keyName struct {
	key          crdt.Key
	domain, text string
	rule         *rules.Rule // nil for none
	used         bool        // since hand passed by
}

const (
	maxTexts     = 1_024
	maxTextBytes = 256
)

// note takes note of the descriptors of a decided call that are in the sample. It
// allocates only where one is, and is new.
func (n *texts) note(c *node.Call, hits []node.Hit) {
	for i := range c.Statuses {
		if c.Statuses[i].Sampled {
			n.noteOne(c, hits, i)
		}
	}
}

func (n *texts) noteOne(c *node.Call, hits []node.Hit, i int) {
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
		key: hits[i].Key, domain: strings.Clone(c.Domain), text: textOf(&c.Statuses[i], &c.Descriptors[i]),
		rule: c.Statuses[i].Rule,
	}
	if n.at == nil {
		n.at = make(map[crdt.Key]int32, maxTexts)
	}
	n.at[hits[i].Key] = int32(at)
}

// room returns where in all there is room for another one.
func (n *texts) room() int {
	if len(n.all) < maxTexts {
		n.all = append(n.all, keyName{})
		return len(n.all) - 1
	}
	for n.all[n.hand].used { // each is passed by once at most
		n.all[n.hand].used = false
		n.hand = (n.hand + 1) % maxTexts
	}
	at := n.hand
	n.hand = (n.hand + 1) % maxTexts
	delete(n.at, n.all[at].key)
	return at
}

// of returns what is known of keys.
func (n *texts) of(keys []node.HotKey) map[crdt.Key]keyName {
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

// textOf is key=value,key=value, with patterns in the place of the values that
// they pool, and cut where it is too long.
func textOf(st *node.Status, d *rules.Descriptor) string {
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
		if b.Len() > maxTextBytes {
			text := b.String()[:maxTextBytes]
			for !utf8.ValidString(text) {
				text = text[:len(text)-1]
			}
			return text + "..."
		}
	}
	return b.String()
}
