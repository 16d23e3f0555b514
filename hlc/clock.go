package hlc

import (
	"time"

	"github.com/georld/rld/internal/sat"
)

// Clock makes the timestamps of one daemon and the time that its windows are
// cut from. It reads no time; each call gets an Instant. It allocates nothing
// after NewClock, except the error for a rejected peer. A Clock is not safe for
// concurrent use.
//
// Instants should come in the order they were taken. An Instant whose monotonic
// part is older than an earlier one (two goroutines overtook each other) counts
// as no time passed.
type Clock struct {
	maxOffset int64 // milliseconds
	slew      int64 // line loses 1/slew of the monotonic time

	// line starts here: the last point where reading and wall met.
	anchorMono, anchorWall int64

	// reading is the physical reading in ns. Invariants: it never decreases,
	// and it is at least every wall reading seen.
	reading int64
	// mono and wall are those of the latest Instant, in ns, never negative.
	mono, wall int64

	hold  bool  // see HoldJumps
	adopt bool  // the next Instant adopts the held jump
	held  int64 // ns of a jump that wall leaves out

	last    Timestamp // greatest stamp made or observed
	started bool
	steps   Steps
}

// NewClock returns a clock without an Instant. The first one sets the physical
// reading. Fields of cfg that are out of range take the nearest valid value;
// call Validate first to report them.
func NewClock(cfg Config) *Clock {
	cfg = cfg.clamp()
	return &Clock{maxOffset: cfg.MaxOffset.Milliseconds(), slew: cfg.SlewDivisor}
}

// Now returns a stamp greater than all stamps that this clock made or observed.
// Use it for events; windows are cut from Millis.
func (c *Clock) Now(at Instant) Timestamp {
	c.advance(at)
	// The counter starts at 0 in a new millisecond. Within one, and while an
	// observed stamp is ahead, it continues and carries when it is full.
	c.last = max(c.last.Next(), New(c.readingMillis(), 0))
	return c.last
}

// Millis returns the time that windows are cut from, in Unix milliseconds: the
// physical reading, or the latest stamp if that is ahead. It never decreases
// and uses up no stamp. Every decision calls it: it takes a few nanoseconds and
// allocates nothing.
func (c *Clock) Millis(at Instant) int64 {
	c.advance(at)
	return max(c.last.Millis(), c.readingMillis())
}

// Observe notes the stamp of a peer. Every later stamp of this clock is
// greater. If the stamp is more than MaxOffset ahead of the physical reading,
// Observe returns a *DriftError and changes nothing. The counts of that message
// may still be merged, since they do not depend on clocks. A stamp from the
// past changes nothing either.
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

// Offset returns the lead of the physical reading over the wall clock, as of
// the latest Instant. It is never negative. It is the rest of a step back, or
// microseconds of jitter.
func (c *Clock) Offset() time.Duration { return time.Duration(c.reading - c.wall) }

// Steps returns the steps of the wall clock seen so far.
func (c *Clock) Steps() Steps { return c.steps }

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

// meet sets the reading to the wall and starts line here.
func (c *Clock) meet() {
	c.reading = c.wall
	c.anchorMono, c.anchorWall = c.mono, c.wall
}

// late handles an Instant from before the latest one. It is no sign of a step
// back. A wall reading ahead of the present one still counts: if the monotonic
// clock of a platform ever goes back for good, the wall clock alone keeps
// windows advancing.
func (c *Clock) late(wall int64) {
	if leaps := wall-c.reading > c.maxOffset*int64(time.Millisecond); wall > c.reading && !(c.hold && leaps) {
		c.wall = wall
		c.meet()
	}
}
