package daemon

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/wire"
)

// replicator does what the shards of an engine want done: it ticks each when
// it is due, and puts the messages of all shards to one peer into one frame.
// Decisions never wait for it: it holds one shard at a time, and hands frames
// to queues that never block.
type replicator struct {
	engine *Engine
	send   func(to crdt.Incarnation, frame []byte) bool
	// happened takes the events of a shard.
	happened func(shard int, events []gossip.Event)

	wakes  []time.Duration // of the shards
	outbox []gossip.Message
}

// leastSleep bounds how often a replicator that is not hurried looks.
const leastSleep = time.Millisecond

// run works until ctx ends.
func (r *replicator) run(ctx context.Context) {
	r.wakes = make([]time.Duration, r.engine.Shards())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		hurried := uint64(0)
		select {
		case <-ctx.Done():
			return
		case <-r.engine.urgent:
			hurried = r.engine.hurried.Swap(0)
		case <-timer.C:
		}
		at := r.engine.Now()
		r.turn(at, hurried)
		timer.Reset(max(slices.Min(r.wakes)-r.engine.Now().Mono, leastSleep))
	}
}

// turn serves the shards that are due or hurried.
func (r *replicator) turn(at node.Instant, hurried uint64) {
	due := hurried
	for s, wake := range r.wakes {
		if wake <= at.Mono {
			due |= 1 << s
		}
	}
	out := r.outbox[:0]
	each(due, func(s int) {
		ready := r.engine.turn(at, s)
		r.wakes[s] = ready.Wake
		out = append(out, ready.Messages...)
		if len(ready.Events) > 0 {
			r.happened(s, ready.Events)
		}
	})
	r.post(out)
	clear(out)
	r.outbox = out[:0]
}

// post sends messages: those to one peer in one frame, if they fit.
func (r *replicator) post(out []gossip.Message) {
	slices.SortFunc(out, func(a, b gossip.Message) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Shard, b.Shard))
	})
	for len(out) > 0 {
		n := 1
		for n < len(out) && out[n].To == out[0].To {
			n++
		}
		gossip.Unite(out[:n])
		for rest := out[:n]; len(rest) > 0; {
			fit := wire.Fit(rest)
			r.postOne(rest[:fit])
			rest = rest[fit:]
		}
		out = out[n:]
	}
}

// postOne sends messages in a frame of their own. What is lost comes again: it
// is not acknowledged.
func (r *replicator) postOne(msgs []gossip.Message) {
	frame, err := wire.Encode(nil, msgs)
	if err != nil {
		if len(msgs) > 1 { // more than expected in one frame
			for i := range msgs {
				r.postOne(msgs[i : i+1])
			}
		}
		return
	}
	r.send(msgs[0].To, frame)
}
