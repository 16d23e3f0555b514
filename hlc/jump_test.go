package hlc

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// holding returns a clock that holds leaps back, and its machine, both a second
// old.
func holding() (*Clock, *bent) {
	c, b := NewClock(Config{}), &bent{wall: noon}
	c.HoldJumps(true)
	c.Millis(b.at())
	b.pass(time.Second)
	return c, b
}

// ms is a reading in milliseconds since noon.
func (b *bent) ms(c *Clock) int64 { return c.Millis(b.at()) - noon/int64(time.Millisecond) }

func wantMillis(t *testing.T, c *Clock, b *bent, want int64) {
	t.Helper()
	if got := b.ms(c); got != want {
		t.Errorf("the clock says %d ms, want %d", got, want)
	}
}

func TestHeldJumpGoesOnAtTheMonotonicRate(t *testing.T) {
	c, b := holding()
	b.wall += int64(time.Hour)
	wantMillis(t, c, b, 1_000)
	if c.Held() != time.Hour {
		t.Errorf("%v held, want 1h", c.Held())
	}
	b.pass(5 * time.Second)
	wantMillis(t, c, b, 6_000)
	if c.Offset() != 0 {
		t.Errorf("offset %v of a clock that is where it was", c.Offset())
	}
}

// A second leap adds to the first one, and a little one is followed.
func TestHeldJumpsAddUp(t *testing.T) {
	c, b := holding()
	b.wall += int64(time.Hour)
	wantMillis(t, c, b, 1_000)
	b.pass(time.Second)
	b.wall += int64(time.Minute)
	wantMillis(t, c, b, 2_000)
	if c.Held() != time.Hour+time.Minute {
		t.Errorf("%v held, want 1h1m", c.Held())
	}
	b.wall += int64(100 * time.Millisecond)
	wantMillis(t, c, b, 2_100)
}

func TestAdoptedJumpMovesTheReading(t *testing.T) {
	c, b := holding()
	b.wall += int64(time.Hour)
	wantMillis(t, c, b, 1_000)
	b.pass(time.Second)
	wantMillis(t, c, b, 2_000)
	c.AdoptJump()
	wantMillis(t, c, b, time.Hour.Milliseconds()+2_000)
	b.pass(time.Second)
	wantMillis(t, c, b, time.Hour.Milliseconds()+3_000)
	if c.Held() != 0 {
		t.Errorf("%v held after it was adopted", c.Held())
	}
	b.wall += int64(time.Hour) // the next one is held again
	wantMillis(t, c, b, time.Hour.Milliseconds()+3_000)
}

// A leap that is set back was no time: nothing is held and nothing is to be
// slewed away.
func TestHeldJumpIsSetBack(t *testing.T) {
	c, b := holding()
	b.wall += int64(time.Hour)
	wantMillis(t, c, b, 1_000)
	b.pass(3 * time.Second)
	wantMillis(t, c, b, 4_000)
	b.wall -= int64(time.Hour)
	wantMillis(t, c, b, 4_000)
	if c.Held() != 0 || c.Offset() != 0 {
		t.Errorf("held %v, offset %v after it was set back", c.Held(), c.Offset())
	}
	b.pass(time.Second)
	wantMillis(t, c, b, 5_000)
}

// The rest of a jump that is set back nearly is followed, as any change of that
// size is.
func TestHeldJumpIsSetBackNearly(t *testing.T) {
	c, b := holding()
	b.wall += int64(time.Hour)
	wantMillis(t, c, b, 1_000)
	b.wall -= int64(time.Hour - 60*time.Millisecond)
	wantMillis(t, c, b, 1_060)
	if c.Held() != 0 {
		t.Errorf("%v held, want none", c.Held())
	}
}

// Set back further than it leapt, the rest is a step back: slewed away.
func TestHeldJumpIsSetBackTooFar(t *testing.T) {
	c, b := holding()
	b.wall += int64(time.Hour)
	wantMillis(t, c, b, 1_000)
	b.wall -= int64(time.Hour + 10*time.Second)
	b.pass(20 * time.Second)
	wantMillis(t, c, b, 20_000) // 20 s less a twentieth
	if c.Held() != 0 || c.Offset() != 9*time.Second {
		t.Errorf("held %v, offset %v, want 0 and 9s", c.Held(), c.Offset())
	}
}

// A clock that still slews after a step back detects a leap ahead: it holds the
// leap back and continues to slew.
func TestJumpWhileSlewing(t *testing.T) {
	c, b := holding()
	wantMillis(t, c, b, 1_000)
	b.wall -= int64(10 * time.Second)
	b.pass(20 * time.Second)
	wantMillis(t, c, b, 20_000)
	b.wall += int64(time.Hour)
	b.pass(20 * time.Second)
	wantMillis(t, c, b, 39_000)
	if c.Held() == 0 || c.Offset() != 8*time.Second {
		t.Errorf("held %v, offset %v, want an hour and 8s", c.Held(), c.Offset())
	}
	// What set the clock back is undone: that is no leap ahead of the reading.
	c, b = holding()
	wantMillis(t, c, b, 1_000)
	b.wall -= int64(10 * time.Second)
	wantMillis(t, c, b, 1_000)
	b.wall += int64(10 * time.Second)
	b.pass(time.Second)
	wantMillis(t, c, b, 2_000)
	if c.Held() != 0 {
		t.Errorf("%v held of a step back that was undone", c.Held())
	}
}

// Whatever the wall does, a clock that holds leaps never decreases, and runs
// ahead of the monotonic clock by no more than max_offset at a time.
func TestHoldingClockLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, b := holding()
		was, mono := c.Millis(b.at()), b.mono
		for range rapid.IntRange(1, 40).Draw(t, "inputs") {
			b.pass(time.Duration(rapid.IntRange(0, 5_000).Draw(t, "pass")) * time.Millisecond)
			if rapid.Bool().Draw(t, "step") {
				b.wall += rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "by")
			}
			is := c.Millis(b.at())
			ran := (b.mono - mono).Milliseconds()
			if is < was {
				t.Fatalf("the clock went from %d back to %d", was, is)
			}
			if is-was > ran+DefaultMaxOffset.Milliseconds()+1 {
				t.Fatalf("the clock ran %d ms in %d", is-was, ran)
			}
			if c.Held() < 0 || c.Offset() < 0 {
				t.Fatalf("held %v, offset %v", c.Held(), c.Offset())
			}
			was, mono = is, b.mono
		}
	})
}
