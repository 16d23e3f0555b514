package replica

import (
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
)

// maxTurns bounds how often the parts of one process answer each other over one
// message: an accept is answered by an accepted, and that by a grant.
const maxTurns = 4

// Route sends messages about strict keys on their way. post gets those to other
// daemons. take gets those to the process itself, self, and returns what its
// parts answer. No shard may be locked.
func Route(self crdt.Incarnation, out []sticky.Message, take func(*sticky.Message) []sticky.Message, post func(sticky.Message)) {
	for range maxTurns {
		var answers []sticky.Message
		for i := range out {
			if m := &out[i]; m.To != self {
				post(*m)
			} else {
				answers = append(answers, take(m)...)
			}
		}
		if out = answers; len(out) == 0 {
			return
		}
	}
}

// Recipients returns the parts of a process that a message about strict keys is
// for: the shards of its keys, as a bit set, and the acceptor. Each part
// ignores the items that are not for it.
func Recipients(m *sticky.Message, shards int) (set uint64, acceptor bool) {
	shard := func(k crdt.Key) uint64 { return 1 << node.ShardOf(k, shards) }
	for i := range m.Requests {
		set |= shard(m.Requests[i].Key)
	}
	for i := range m.Grants {
		set |= shard(m.Grants[i].Key)
	}
	for i := range m.Accepted {
		set |= shard(m.Accepted[i].Key)
	}
	return set, len(m.Accepts)+len(m.SnapshotRequests)+len(m.SnapshotChunks)+len(m.Layouts) > 0
}
