package link

import (
	"fmt"
	"sync"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// rulesOf remembers of which peers it was said that their rules differ.
type rulesOf struct {
	mu   sync.Mutex
	said map[crdt.Incarnation][2]uint64 // theirs and ours
}

// warn reports whether it is to be said now.
func (r *rulesOf) warn(peer crdt.Incarnation, theirs, ours uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pair := [2]uint64{theirs, ours}
	if r.said[peer] == pair {
		return false
	}
	if r.said == nil || len(r.said) >= gossip.MaxPeers {
		r.said = make(map[crdt.Incarnation][2]uint64)
	}
	r.said[peer] = pair
	return true
}

// hex shows a hash of rules.
func hex(hash uint64) string { return fmt.Sprintf("%016x", hash) }
