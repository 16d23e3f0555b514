package sim

import (
	"testing"
	"time"
)

func TestWallClock(t *testing.T) {
	var c wallClock
	c.right(0, epoch)
	steps := []struct {
		at   time.Duration
		do   func(now time.Duration)
		want time.Duration // ahead of the truth at the end of the step
	}{
		{time.Second, func(time.Duration) {}, 0},
		{2 * time.Second, func(now time.Duration) { c.step(now, time.Hour) }, time.Hour},
		{3 * time.Second, func(now time.Duration) { c.step(now, -2*time.Hour) }, -time.Hour},
		{4 * time.Second, func(now time.Duration) { c.drift(now, 200) }, -time.Hour},
		// 200 parts in a million of 1000 s are 200 ms.
		{1004 * time.Second, func(time.Duration) {}, -time.Hour + 200*time.Millisecond},
		{1005 * time.Second, func(now time.Duration) { c.drift(now, -1000) }, -time.Hour + 200200*time.Microsecond},
		{1006 * time.Second, func(time.Duration) {}, -time.Hour + 199200*time.Microsecond},
		{1007 * time.Second, func(now time.Duration) { c.right(now, epoch) }, 0},
		{2000 * time.Second, func(time.Duration) {}, 0},
	}
	for i, s := range steps {
		s.do(s.at)
		if got := time.Duration(c.read(s.at) - epoch - int64(s.at)); got != s.want {
			t.Errorf("step %d at %v: ahead by %v, want %v", i, s.at, got, s.want)
		}
	}
}

// TestDriftOfDays: a great drift over a long time does not overflow.
func TestDriftOfDays(t *testing.T) {
	var c wallClock
	c.right(0, epoch)
	c.drift(0, 100_000)
	const days = 30 * 24 * time.Hour
	if got := time.Duration(c.read(days) - epoch - int64(days)); got != days/10 {
		t.Errorf("ahead by %v, want %v", got, days/10)
	}
}
