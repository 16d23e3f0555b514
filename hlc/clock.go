package hlc

import (
	"fmt"
	"time"

	"github.com/georld/rld/internal/sat"
)

// Clock makes the timestamps of one daemon and the wall part its labels are
// cut from. It reads no time itself, each call is handed an Instant. It
// allocates nothing after NewClock, except the error of a refused peer.
// A Clock is not safe for concurrent use.
//
// Instants should come in the order they were taken. One that is older by its
// monotonic part than one seen before (two goroutines met out of order) counts
// as no time passed.
type Clock struct {
	maxOffset int64 // milliseconds
	slew      int64 // line loses 1/slew of the monotonic time

	// line runs from here: the last point where reading and wall met.
	anchorMono, anchorWall int64

	// reading is the physical reading, ns. Invariants: it never decreases,
	// and it is at least every wall reading seen.
	reading int64
	// mono and wall are of the latest Instant, ns, never negative.
	mono, wall int64

	hold  bool  // see HoldJumps
	adopt bool  // the next Instant ends what is held
	held  int64 // ns by which wall is behind what was read

	last    Timestamp // greatest stamp made or observed
	started bool
	steps   Steps
}

// NewClock returns a clock that has seen no Instant. The first one it is handed
// sets the physical reading. A field of cfg that Validate refuses takes the
// nearest value in range; call Validate first to hear of it.
func NewClock(cfg Config) *Clock {
	cfg = cfg.clamp()
	return &Clock{maxOffset: cfg.MaxOffset.Milliseconds(), slew: cfg.SlewDivisor}
}

// Now returns a stamp greater than all stamps this clock made or observed
// before. It is for stamps of events; labels come from Millis.
func (c *Clock) Now(at Instant) Timestamp {
	c.advance(at)
	// The counter starts at 0 in a new millisecond; within one, and while an
	// observed stamp is ahead, it counts on, carrying when it is full.
	c.last = max(c.last.Next(), New(c.readingMillis(), 0))
	return c.last
}

// Millis returns the wall part that labels are cut from, in Unix milliseconds:
// the physical reading, or the latest stamp where that is ahead. It never
// decreases and uses up no stamp. It is on the path of every decision: a few
// nanoseconds, no allocation.
func (c *Clock) Millis(at Instant) int64 {
	c.advance(at)
	return max(c.last.Millis(), c.readingMillis())
}

// Observe takes in the stamp of a peer, so that every later stamp of this
// clock is greater. A stamp more than MaxOffset ahead of the physical reading
// is refused with a *DriftError and moves nothing; the counts that came with
// it may still be merged, they do not depend on clocks. A stamp from the past
// is nothing to report.
func (c *Clock) Observe(at Instant, remote Timestamp) error {
	c.advance(at)
	if remote <= c.last {
		return nil
	}
	if local := c.readingMillis(); remote.Millis()-local > c.maxOffset {
		return &DriftError{
			Remote: remote,
			Local:  New(local, 0),
			Max:    time.Duration(c.maxOffset) * time.Millisecond,
		}
	}
	c.last = remote
	return nil
}

// Last returns the greatest stamp made or observed so far, 0 for none.
func (c *Clock) Last() Timestamp { return c.last }

// Offset returns how far the physical reading stands ahead of the wall clock,
// as of the latest Instant; it is never negative. It is what is left of a step
// back, or microseconds of jitter.
func (c *Clock) Offset() time.Duration { return time.Duration(c.reading - c.wall) }

// Steps returns the steps of the wall clock seen so far.
func (c *Clock) Steps() Steps { return c.steps }

// String describes the clock for people.
func (c *Clock) String() string {
	return fmt.Sprintf("last %v, reading %d ms, offset %v, %v", c.last, c.readingMillis(), c.Offset(), c.steps)
}

func (c *Clock) readingMillis() int64 { return c.reading / int64(time.Millisecond) }

// advance moves the physical reading to an Instant. Parts below 0 count as 0.
func (c *Clock) advance(at Instant) {
	mono, wall := max(int64(at.Mono), 0), max(at.Wall, 0)
	if !c.started {
		c.started = true
		c.mono, c.wall = mono, wall
		c.meet()
		return
	}
	if mono < c.mono {
		c.late(wall - min(wall, c.held))
		return
	}
	if c.hold || c.held > 0 {
		wall = c.withhold(mono, wall)
	}
	c.steps.note(wall, sat.AddInt(c.wall, mono-c.mono), mono-c.mono)
	c.mono, c.wall = mono, wall

	ran := mono - c.anchorMono
	if wall >= sat.AddInt(c.anchorWall, ran) {
		c.meet() // nearly always, and no division
		return
	}
	line := sat.AddInt(c.anchorWall, ran-ran/c.slew)
	if wall >= line {
		c.meet()
		return
	}
	c.reading = line
}

// meet sets the reading to the wall and lets line start here.
func (c *Clock) meet() {
	c.reading = c.wall
	c.anchorMono, c.anchorWall = c.mono, c.wall
}

// late takes in an Instant from before the latest one. It is no sign of a step
// back. A wall ahead of the reading still counts: should the monotonic clock
// of a platform ever go back for good, the wall alone keeps labels rolling.
func (c *Clock) late(wall int64) {
	if leaps := wall-c.reading > c.maxOffset*int64(time.Millisecond); wall > c.reading && !(c.hold && leaps) {
		c.wall = wall
		c.meet()
	}
}
