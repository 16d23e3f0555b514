package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/georld/rld/internal/breaker"
	"github.com/georld/rld/sticky/route"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/sticky"
)

// strict is the daemon's part in strict keys, beside what its shards do: it says
// who is home and how to reach them, has calls wait for what homes grant, carries
// messages, and keeps the replica. It is safe for concurrent use. Shards ask it
// while they are locked, so it never waits for one.
type strict struct {
	engine *Engine
	log    *slog.Logger
	*owners
	lot      *lot
	mail     *mail
	acceptor *acceptorLoop
	// send hands a frame to a peer's queue; nil before there are streams.
	send atomic.Pointer[func(to crdt.Incarnation, frame []byte) bool]
	// took is told how long each call waited; nil: nobody is.
	took func(time.Duration)

	rejected atomic.Uint64 // items that were refused by shards
	met      atomic.Bool   // it was told who lives
}

// strictConfig is how strict keys are served.
type strictConfig struct {
	forwardTimeout, forwardMargin time.Duration
	breaker                       breaker.Config
}

// newStrict returns the part of an engine that is yet to be made.
func newStrict(c strictConfig, region string, n *acceptorLoop, log *slog.Logger) *strict {
	s := &strict{log: log, lot: newLot(), acceptor: n}
	s.owners = newOwners(c, region, log)
	s.mail = newMail(func(to crdt.Incarnation, frame []byte) bool {
		send := s.send.Load()
		return send != nil && (*send)(to, frame)
	})
	return s
}

// serve makes it that of an engine.
func (s *strict) serve(e *Engine) {
	s.engine = e
	s.owners.now = func() time.Duration { return e.Now().Mono }
	s.owners.self = e.Incarnation()
}

// Routing is part of node.Owners.
func (s *strict) Routing() *route.Routing { return s.acceptor.view.Load() }

// waited notes how long a call waited for homes.
func (s *strict) waited(d time.Duration) {
	if s.took != nil {
		s.took(d)
	}
}

// maxTurns bounds how often shards of one daemon answer each other over one
// message: a raise is answered by a vote, and that by a grant.
const maxTurns = 4

// post does with messages what is to be done: those to other daemons are sent.
// No shard may be locked.
func (s *strict) post(out []sticky.Message) {
	self := s.engine.Incarnation()
	for range maxTurns {
		var next []sticky.Message
		for i := range out {
			if m := &out[i]; m.To != self {
				s.mail.post(*m)
			} else {
				next = append(next, s.take(m)...)
			}
		}
		if out = next; len(out) == 0 {
			return
		}
	}
}

// take takes in a message: what is for the shards, and what is for the replica.
// It returns what shards want to be said about it.
func (s *strict) take(m *sticky.Message) []sticky.Message {
	var d duties
	if len(m.Requests)+len(m.Grants)+len(m.Accepted) > 0 {
		s.heed(m, &d)
	}
	if len(m.Accepts)+len(m.SnapshotRequests)+len(m.SnapshotChunks)+len(m.Layouts) > 0 {
		s.acceptor.receive(s.engine, m)
	}
	if d.hurried != 0 {
		s.engine.expedite(d.hurried)
	}
	return d.messages
}

// heed hands items to the shards that own their keys.
func (s *strict) heed(m *sticky.Message, d *duties) {
	set := uint64(0)
	shard := func(k crdt.Key) uint64 { return 1 << node.ShardOf(k, len(s.engine.shards)) }
	for i := range m.Requests {
		set |= shard(m.Requests[i].Key)
	}
	for i := range m.Grants {
		set |= shard(m.Grants[i].Key)
	}
	for i := range m.Accepted {
		set |= shard(m.Accepted[i].Key)
	}
	at := s.engine.Now()
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		if refused := s.heedShard(at, i, m, d); refused > 0 {
			s.rejected.Add(uint64(refused))
		}
	}
}

// heedShard has a shard take its items of a message; it leaves those of others.
func (s *strict) heedShard(at node.Instant, i int, m *sticky.Message, d *duties) (refused int) {
	sh := s.engine.shards[i]
	sh.lock()
	defer sh.mu.Unlock()
	refused = sh.node.StepLease(at, m)
	d.collect(at, s, i, sh.node)
	if sh.node.Expedited() {
		d.hurried |= 1 << i
	}
	return refused
}

// errForeign is why a frame is refused that was meant for another daemon.
var errForeign = errors.New("message for another incarnation")

// frame takes in a message of a peer.
func (s *strict) frame(m *sticky.Message) error {
	switch {
	case m.To != s.engine.Incarnation():
		return errForeign
	case !s.met.Load():
		return nil // everybody is a stranger yet, and says it again
	}
	s.post(s.take(m))
	return nil
}

// told takes over who lives.
func (s *strict) told(at node.Instant, self crdt.Incarnation, peers []gossip.Peer) {
	s.owners.peers(peers)
	s.acceptor.peers(at, self, peers)
	s.met.Store(true)
}

// watchEvery is the time between two looks at distances and breakers.
const watchEvery = 500 * time.Millisecond

// watch follows how far the peers are away, and has breakers change by the time
// alone, until ctx ends.
func (s *strict) watch(ctx context.Context) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	lost := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		at := s.engine.Now()
		s.measure(s.engine.Links(at))
		s.look(at.Mono)
		if n := s.engine.StrictStats().Lost; n != lost {
			s.log.Info("another home had marked more of some keys: what it marked counts as used",
				"event", "takeover", "ledgers", n-lost)
			lost = n
		}
	}
}

var _ node.Owners = (*strict)(nil)
