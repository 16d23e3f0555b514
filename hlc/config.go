package hlc

import (
	"cmp"
	"fmt"
	"time"
)

// The bounds and defaults of Config.
const (
	DefaultMaxOffset = 250 * time.Millisecond
	MinMaxOffset     = time.Millisecond
	MaxMaxOffset     = time.Hour

	DefaultSlewDivisor = 20
	MinSlewDivisor     = 2
	MaxSlewDivisor     = 10_000
)

// Config configures a Clock. A field of 0 takes its default.
type Config struct {
	// MaxOffset is the maximum lead of a peer's stamp over the physical reading
	// with which it is observed. Whole milliseconds, MinMaxOffset to
	// MaxMaxOffset, default DefaultMaxOffset. It must be the same on all
	// daemons. Greater values tolerate worse wall clocks; smaller ones bound
	// more tightly how early a fast clock can end the windows of all daemons.
	MaxOffset time.Duration
	// SlewDivisor sets the speed at which an offset shrinks after the wall
	// clock stepped back. While the reading is ahead of the wall, it loses
	// 1/SlewDivisor of the monotonic time, so an offset is gone after offset *
	// SlewDivisor. MinSlewDivisor to MaxSlewDivisor, default
	// DefaultSlewDivisor.
	//
	// With the default of 1/20, 250 ms take 5 s and an hour takes 20 hours.
	// Until then a window lasts 1/19 longer in real time, and its limit is
	// tighter by that: the safe direction, and less than the margin of any real
	// limit. A faster slew makes the error greater, a slower one makes it last.
	// It must stay well above the drift between a wall clock and the monotonic
	// one (500 parts per million for NTP, 1/2000).
	SlewDivisor int64
}

// Validate returns an error for the first field out of its range. A field of 0
// is in range: it stands for its default.
func (c Config) Validate() error {
	c = c.withDefaults()
	if c.MaxOffset < MinMaxOffset || c.MaxOffset > MaxMaxOffset {
		return fmt.Errorf("hlc: max offset %v: want %v to %v", c.MaxOffset, MinMaxOffset, MaxMaxOffset)
	}
	if c.MaxOffset%time.Millisecond != 0 {
		return fmt.Errorf("hlc: max offset %v: want whole milliseconds", c.MaxOffset)
	}
	if c.SlewDivisor < MinSlewDivisor || c.SlewDivisor > MaxSlewDivisor {
		return fmt.Errorf("hlc: slew divisor %d: want %d to %d", c.SlewDivisor, MinSlewDivisor, MaxSlewDivisor)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.MaxOffset = cmp.Or(c.MaxOffset, DefaultMaxOffset)
	c.SlewDivisor = cmp.Or(c.SlewDivisor, DefaultSlewDivisor)
	return c
}

// clamp moves each field to the nearest value that Validate accepts.
func (c Config) clamp() Config {
	c = c.withDefaults()
	c.MaxOffset = min(max(c.MaxOffset, MinMaxOffset), MaxMaxOffset).Truncate(time.Millisecond)
	c.SlewDivisor = min(max(c.SlewDivisor, MinSlewDivisor), MaxSlewDivisor)
	return c
}
