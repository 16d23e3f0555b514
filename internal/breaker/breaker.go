// Package breaker is a circuit breaker. It opens when too many calls of the
// last seconds failed, lets one probe through after a while, and closes when
// that succeeds:
//
//	closed --too many failures--> open --after Config.Open--> half-open
//	   ^                            ^                             |
//	   |                            +-------- probe fails --------+
//	   +------------------------------------- probe succeeds -----+
package breaker

import (
	"cmp"
	"time"

	"github.com/georld/rld/internal/enum"
)

// Config is when a breaker opens and closes. A field of 0 has its default.
type Config struct {
	// Errors is the share of failed calls at which it opens, in millionths.
	Errors uint32
	// Window is the time over which calls are counted, in tenths of it.
	Window time.Duration
	// Calls is the least number of calls in Window at which it opens.
	Calls uint32
	// Open is how long it stays open before it lets one probe through.
	Open time.Duration
	// Probe is how long the probe may take. After that the next call may pass.
	Probe time.Duration
}

// DefaultOpen is the default of Config.Open.
const DefaultOpen = time.Minute

// defaults returns the defaults.
func defaults() Config {
	return Config{
		Errors: whole / 2, Window: 10 * time.Second, Calls: 10, Open: DefaultOpen, Probe: 10 * time.Second,
	}
}

// whole is all calls, in millionths.
const whole = 1_000_000

// State is the state of a breaker.
type State uint8

// The states.
const (
	Closed   State = iota // all pass
	HalfOpen              // one passes, and its outcome decides
	Open                  // none passes
)

var stateNames = []string{"closed", "half_open", "open"}

// String returns the name in logs and metrics.
func (s State) String() string { return enum.Name(s, stateNames...) }

// Transition is a change of a breaker's state.
type Transition struct {
	At       time.Duration
	From, To State
	// Calls and Failures are those of the window if the breaker opened for
	// them, or of the one probe if it opened or closed for that.
	Calls, Failures uint32
}

const (
	buckets = 10
	// maxTransitions bounds the transitions that were not polled. The oldest
	// ones are dropped.
	maxTransitions = 8
)

// Breaker keeps calls from a daemon that does not answer. Each method gets the
// time since some start; an earlier time than the latest counts as the latest.
// It is not safe for concurrent use, and never allocates.
//
// Each call that Allow admits must be followed by one Done. In the half-open
// state Done is the outcome of the probe. In the open state it belongs to an
// earlier call and does not count.
type Breaker struct {
	cfg   Config
	state State
	now   time.Duration // the latest time
	since time.Duration // of the state

	probing bool
	probed  time.Duration // since when

	calls, failures [buckets]uint32
	bucket          int64 // number of the latest one, from the start of time

	changes [maxTransitions]Transition
	first   int // of changes, the oldest
	pending int
}

// New returns a closed breaker.
func New(c Config) *Breaker {
	d := defaults()
	return &Breaker{cfg: Config{
		Errors: cmp.Or(c.Errors, d.Errors), Window: cmp.Or(c.Window, d.Window), Calls: cmp.Or(c.Calls, d.Calls),
		Open: cmp.Or(c.Open, d.Open), Probe: cmp.Or(c.Probe, d.Probe),
	}}
}

// Allow reports whether a call may pass. The first call that passes a half-open
// breaker is the probe.
func (b *Breaker) Allow(at time.Duration) bool {
	if !b.Passes(at) {
		return false
	}
	if b.state == HalfOpen {
		b.probing, b.probed = true, b.now
	}
	return true
}

// Passes reports the result of Allow without starting a probe.
func (b *Breaker) Passes(at time.Duration) bool {
	switch b.advance(at); b.state {
	case Closed:
		return true
	case HalfOpen:
		return !b.probing
	}
	return false
}

// Done records the outcome of a call that Allow admitted.
func (b *Breaker) Done(at time.Duration, ok bool) {
	b.advance(at)
	switch {
	case b.state == Closed:
		b.count(ok)
	case b.state == HalfOpen && b.probing && ok:
		b.become(Closed, 1, 0)
	case b.state == HalfOpen && b.probing:
		b.become(Open, 1, 1)
	}
}

// Opens returns the instant from which Passes holds if no call is allowed or
// done until then, 0 for a closed breaker.
func (b *Breaker) Opens() time.Duration {
	switch {
	case b.state == Closed:
		return 0
	case b.state == Open:
		return b.since + b.cfg.Open
	case b.probing:
		return b.probed + b.cfg.Probe
	}
	return b.since
}

// State returns the state and when it began.
func (b *Breaker) State(at time.Duration) (State, time.Duration) {
	b.advance(at)
	return b.state, b.since
}

// Counts returns the finished calls of the window, and how many of them failed.
func (b *Breaker) Counts(at time.Duration) (calls, failures uint32) {
	b.advance(at)
	for i := range b.calls {
		calls = addSat32(calls, b.calls[i])
		failures = addSat32(failures, b.failures[i])
	}
	return calls, failures
}

// Poll returns the oldest transition that it has not returned, false if there
// is none.
func (b *Breaker) Poll() (Transition, bool) {
	if b.pending == 0 {
		return Transition{}, false
	}
	t := b.changes[b.first]
	b.first = (b.first + 1) % maxTransitions
	b.pending--
	return t, true
}

// advance advances the clock, the window and the timers.
func (b *Breaker) advance(at time.Duration) {
	b.now = max(b.now, at)
	width := max(b.cfg.Window/buckets, 1)
	bucket := int64(b.now / width)
	for range min(bucket-b.bucket, buckets) {
		b.bucket++
		i := b.bucket % buckets
		b.calls[i], b.failures[i] = 0, 0
	}
	if bucket > b.bucket { // all are empty, so that it does not matter which is which
		b.bucket = bucket
	}
	if b.state == Open && b.now-b.since >= b.cfg.Open {
		b.become(HalfOpen, 0, 0)
	}
	if b.probing && b.now-b.probed >= b.cfg.Probe {
		b.probing = false
	}
}

// count counts the outcome of a call, and opens the breaker for too many
// failures.
func (b *Breaker) count(ok bool) {
	i := b.bucket % buckets
	b.calls[i] = addSat32(b.calls[i], 1)
	if ok {
		return
	}
	b.failures[i] = addSat32(b.failures[i], 1)
	calls, failures := b.Counts(b.now)
	if calls >= b.cfg.Calls && uint64(failures)*whole >= uint64(calls)*uint64(b.cfg.Errors) {
		b.become(Open, calls, failures)
		clear(b.calls[:]) // it begins anew when it closes
		clear(b.failures[:])
	}
}

func (b *Breaker) become(s State, calls, failures uint32) {
	if b.pending == maxTransitions {
		b.first = (b.first + 1) % maxTransitions
		b.pending--
	}
	b.changes[(b.first+b.pending)%maxTransitions] = Transition{
		At: b.now, From: b.state, To: s, Calls: calls, Failures: failures,
	}
	b.pending++
	b.state, b.since, b.probing = s, b.now, false
}

func addSat32(a, b uint32) uint32 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint32(0)
}
