package sim

import "time"

// epoch is the default wall time of virtual time 0, in Unix nanoseconds:
// 2026-01-01.
const epoch = int64(1_767_225_600) * int64(time.Second)

// wallClock is the wall clock of a machine over virtual time. It runs from a
// point at a rate, and a fault moves either. It outlives the processes of its
// machine.
type wallClock struct {
	from  time.Duration // where it was last bent
	shown int64         // reading there, Unix ns
	ppm   int64         // how much faster than time it runs, parts per million
}

// read returns the reading at a time not before the last bend, in Unix ns.
func (c *wallClock) read(now time.Duration) int64 {
	ran := int64(now - c.from)
	// In two parts: ran * ppm overflows after some hours of great drifts.
	drift := ran/1_000_000*c.ppm + ran%1_000_000*c.ppm/1_000_000
	return c.shown + ran + drift
}

// step moves the clock by an offset.
func (c *wallClock) step(now, by time.Duration) {
	c.shown = c.read(now) + int64(by)
	c.from = now
}

// drift lets the clock run at another rate from now on.
func (c *wallClock) drift(now time.Duration, ppm int64) {
	c.step(now, 0)
	c.ppm = ppm
}

// right sets the clock to the true time and lets it run at the true rate.
func (c *wallClock) right(now time.Duration, base int64) {
	*c = wallClock{from: now, shown: base + int64(now)}
}
