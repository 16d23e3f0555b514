package link

import (
	"fmt"
	"sync"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
)

// ruleWarnings remembers the warnings about peers with other rules.
type ruleWarnings struct {
	mu       sync.Mutex
	reported map[crdt.Incarnation][2]uint64 // theirs and ours
}

// warn reports whether the warning is due.
func (r *ruleWarnings) warn(peer crdt.Incarnation, theirs, ours uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	pair := [2]uint64{theirs, ours}
	if r.reported[peer] == pair {
		return false
	}
	if r.reported == nil || len(r.reported) >= gossip.MaxPeers {
		r.reported = make(map[crdt.Incarnation][2]uint64)
	}
	r.reported[peer] = pair
	return true
}

// hex returns a hash of rules for messages.
func hex(hash uint64) string { return fmt.Sprintf("%016x", hash) }
