package replica

import (
	"cmp"
	"math"
	"time"

	"github.com/georld/rld/crdt"
	"github.com/georld/rld/internal/breaker"
)

// Config configures a Process.
type Config struct {
	// Self is the incarnation of the process, Region its region, and Shards the
	// number of shards that its keys are split over.
	Self   crdt.Incarnation
	Region string
	Shards int
	// ForwardTimeout is how long a call waits for an owner in the own region.
	// For an owner elsewhere it waits for a round trip and ForwardMargin, at
	// most a second.
	ForwardTimeout, ForwardMargin time.Duration
	// Breaker configures the circuit breakers. Its Probe is replaced.
	Breaker breaker.Config
	// MaxWaiters bounds the calls that wait at one time, default 65,536. A call
	// beyond the bound is decided as if no owner answered. MaxQueued bounds the
	// items that wait for one daemon, default 4,096.
	MaxWaiters, MaxQueued int
}

// never is an instant that does not come.
const never = time.Duration(math.MaxInt64)

// Process is the part of a process that asks the owners of strict keys. All
// instants are monotonic, from the start of the process. A Process is not safe
// for concurrent use.
type Process struct {
	Waiters *Waiters
	Reach   *Reach
	Outbox  *Outbox
}

// New returns a Process that knows no peers.
func New(c Config) *Process {
	reach := newReach(&c)
	return &Process{
		Waiters: newWaiters(c.Shards, cmp.Or(c.MaxWaiters, maxWaiters), reach),
		Reach:   reach,
		Outbox:  newOutbox(cmp.Or(c.MaxQueued, maxQueued)),
	}
}

// Ready is the work of a driver after a Tick.
type Ready struct {
	// Late are calls that waited long enough. Each goes on with Waiters.Next.
	Late []*StrictCall
	// Flush are peers that Outbox.Next has a message for.
	Flush []crdt.Incarnation
	// Measure requires a call of Reach.Measure.
	Measure bool
}

// Tick runs the timers that are due.
func (p *Process) Tick(at time.Duration) Ready {
	r := Ready{Late: p.Waiters.tick(at)}
	if at >= p.Outbox.paused {
		r.Flush = p.Outbox.tick(at)
	}
	r.Measure = p.Reach.tick(at)
	return r
}

// Wake returns when the next Tick is due. An input may bring it forward.
func (p *Process) Wake() time.Duration {
	return min(p.Waiters.wake(), p.Outbox.paused, p.Reach.due)
}
