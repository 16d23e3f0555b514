package daemon

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/gossip"
	"github.com/georld/rld/internal/loglimit"
	"github.com/georld/rld/node"
	"github.com/georld/rld/replica"
	"github.com/georld/rld/wire"
)

// replicator runs the timers of the shards of an engine and sends their counts.
// Messages of several shards to one peer share frames. Decisions never wait for
// it: it locks one shard at a time, and its queues never block. The one of a
// daemon alone has only timers to run.
type replicator struct {
	engine *Engine
	// send hands a frame to a peer's queue. A daemon alone has nothing to send.
	send func(to crdt.Incarnation, frame []byte) bool
	// happened gets the events of a shard. A daemon alone has none.
	happened func(shard int, events []gossip.Event)
	log      *slog.Logger // for counts that cannot be encoded
	logged   loglimit.Limiter

	wakes   []time.Duration // of the shards
	outbox  []gossip.Message
	encoder wire.Encoder
}

// leastSleep is the shortest sleep of a loop that nothing expedites.
const leastSleep = time.Millisecond

// run serves the shards until ctx ends.
func (r *replicator) run(ctx context.Context) {
	r.wakes = make([]time.Duration, r.engine.Shards())
	takeTurns(ctx, r.engine, r.engine.news, func() time.Duration {
		r.turn(r.engine.Now(), r.engine.expedited.Swap(0))
		return slices.Min(r.wakes)
	})
}

// takeTurns calls turn at once, after each token in news, and at the monotonic
// instant that the turn before returned, until ctx ends.
func takeTurns(ctx context.Context, e *Engine, news <-chan struct{}, turn func() time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-timer.C:
		}
		wake := turn()
		timer.Reset(max(leastSleep, wake-e.Now().Mono))
	}
}

// notify puts a token into a channel that holds one, unless it is there.
func notify(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
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
		if r.wakes[s] = ready.Wake; r.engine.interval > 0 {
			r.wakes[s] = min(ready.Wake, (at.Mono/r.engine.interval+1)*r.engine.interval)
		}
		out = append(out, ready.Messages...)
		if len(ready.Events) > 0 {
			r.happened(s, ready.Events)
		}
	})
	replica.CountFrames(&r.encoder, out, noBuffer, func(msgs []gossip.Message, frame []byte, err error) {
		switch {
		case err == nil:
			r.send(msgs[0].To, frame)
		case r.logged.Due("", time.Now(), time.Minute):
			r.log.Error("counts cannot be encoded and are not sent: this is a defect of rld", "incarnation", msgs[0].To, "error", err)
		}
	})
	clear(out)
	r.outbox = out[:0]
}
