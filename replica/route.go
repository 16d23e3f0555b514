package replica

import (
	"github.com/georld/rld/control"
	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/quota/agent"
	"github.com/georld/rld/sticky"
)

// maxTurns bounds how often the parts of one process answer each other over one
// message: an accept is answered by an accepted, and that by a grant.
const maxTurns = 4

// Receiver is the parts of a process that receive messages.
type Receiver interface {
	// StepCounts merges the counts of a peer's shard.
	StepCounts(m *gossip.Message) error
	// StepRights hands a message to the rights agent.
	StepRights(m *agent.Message) error
	// StepControl hands a message to the control log.
	StepControl(m *control.Message) error
	// Strict returns the parts that serve strict keys, nil for none.
	Strict() Parts
}

// Parts is the parts of a process that serve strict keys: the nodes of its
// shards, its acceptor and its Process. No shard may be locked when a method is
// called, and neither may the Process.
type Parts interface {
	// Routes returns the present view of the Reach of the Process.
	Routes() *Routes
	// With runs do on the Process, which is locked meanwhile.
	With(do func(*Process))
	// StepStrict hands a message to its Recipients and returns the answers of
	// the shards.
	StepStrict(m *sticky.Message) []sticky.Message
	// Flush sends all messages that Outbox.Next returns for a peer.
	Flush(to crdt.Incarnation)
}

// Deliver hands the messages of a frame to the parts of the process, up to the
// first error, and routes the answers.
func (in *Inbound) Deliver(to Receiver) error {
	switch {
	case in.Rights != nil:
		return to.StepRights(in.Rights)
	case in.Control != nil:
		return to.StepControl(in.Control)
	case in.Strict != nil:
		p := to.Strict()
		if p == nil {
			return nil
		}
		ok, err := p.Routes().Admit(in.Strict)
		if ok {
			Route(p.StepStrict(in.Strict), p)
		}
		return err
	}
	for i := range in.Counts {
		if err := to.StepCounts(&in.Counts[i]); err != nil {
			return err
		}
	}
	return nil
}

// Route sends messages about strict keys on their way: those to other daemons
// through the Outbox, and those to the process itself to its own parts, whose
// answers it routes in turn.
func Route(out []sticky.Message, p Parts) {
	self := p.Routes().self
	for range maxTurns {
		var answers []sticky.Message
		for i := range out {
			m := &out[i]
			if m.To == self {
				answers = append(answers, p.StepStrict(m)...)
				continue
			}
			idle := false
			p.With(func(x *Process) { idle = x.Outbox.Post(*m) })
			if idle {
				p.Flush(m.To)
			}
		}
		out = answers
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
