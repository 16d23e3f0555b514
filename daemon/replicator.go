package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
)

// replicator runs the timers of the shards of an engine and sends their counts.
// Messages of several shards to one peer share frames. Decisions never wait for
// it: it locks one shard at a time, and its queues never block.
type replicator struct {
	engine *Engine
	send   func(to crdt.Incarnation, frame []byte) bool
	// happened gets the events of a shard.
	happened func(shard int, events []gossip.Event)

	wakes  []time.Duration // of the shards
	outbox []gossip.Message
}

// leastSleep is the shortest sleep of a loop that nothing expedites.
const leastSleep = time.Millisecond

// run serves the shards until ctx ends.
func (r *replicator) run(ctx context.Context) {
	r.wakes = make([]time.Duration, r.engine.Shards())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		expedited := uint64(0)
		select {
		case <-ctx.Done():
			return
		case <-r.engine.news:
			expedited = r.engine.expedited.Swap(0)
		case <-timer.C:
		}
		at := r.engine.Now()
		r.turn(at, expedited)
		timer.Reset(max(slices.Min(r.wakes)-r.engine.Now().Mono, leastSleep))
	}
}

// noBuffer has frames allocated: queues own them.
func noBuffer() []byte { return nil }

// turn serves the shards that are due or expedited.
func (r *replicator) turn(at node.Instant, expedited uint64) {
	due := expedited
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
	replica.CountFrames(out, noBuffer, func(msgs []gossip.Message, frame []byte) {
		if frame != nil {
			r.send(msgs[0].To, frame)
		}
	})
	clear(out)
	r.outbox = out[:0]
}
