package quota

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// ownerLimit draws a limit that an owner may keep.
func ownerLimit(t *rapid.T) *rules.Limit {
	l := &rules.Limit{
		Algorithm:  rules.Algorithm(rapid.IntRange(0, 4).Draw(t, "algorithm")),
		Unit:       rapid.SampledFrom([]rules.Unit{rules.Second, rules.Minute, rules.Hour}).Draw(t, "unit"),
		Multiplier: 1, Requests: uint32(rapid.IntRange(1, 500).Draw(t, "requests")),
	}
	if l.Algorithm.Bucket() {
		l.Burst = uint32(rapid.IntRange(1, 500).Draw(t, "burst"))
	}
	return l
}

// An owner that takes over from the watermarks of another never has more left
// than that one had, whatever it spent below them and when.
func TestWatermarksHoldWhatWasSpent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ownerLimit(t)
		var owner Account
		watermarks := map[int64]Watermark{}
		now := int64(epoch)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, max(1, l.Window()/8)).Draw(t, "pass")
			at := now
			if l.Algorithm == rules.SlidingLog && rapid.Bool().Draw(t, "far") {
				step := Of(l).WatermarkStep()
				at = now - now%step + step - 1
			}
			n := min(uint64(rapid.IntRange(0, 50).Draw(t, "hits")), owner.Left(l, Of(l).Full(), now))
			ahead := min(uint64(rapid.IntRange(0, 20).Draw(t, "ahead")), owner.Left(l, Of(l).Full(), now)-n)
			m := owner.Watermark(l, now, at, n+ahead)
			if m.Amount > watermarks[m.Window].Amount {
				watermarks[m.Window] = m
			}
			if room := owner.Room(l, now, at, watermarks[m.Window].Amount); room < n {
				t.Fatalf("%d hits are marked and there is room for %d", n+ahead, room)
			}
			owner.SpendAt(l, now, at, n)
			if rapid.IntRange(0, 5).Draw(t, "unspend") == 0 {
				owner.Unspend(l, m.Window, n)
			}
			var next Account
			for _, m := range watermarks {
				if now < m.End {
					next.Adopt(l, now, m)
				}
			}
			if has, had := next.Left(l, Of(l).Full(), now), owner.Left(l, Of(l).Full(), now); has > had {
				t.Fatalf("%+v at %d: %d left after a takeover, %d before", l, now-epoch, has, had)
			}
		}
	})
}

// A refund of a log's hit leaves a later one of the same step, which counts
// until a window after it.
func TestRefundLeavesTheLaterHit(t *testing.T) {
	l := &rules.Limit{Requests: 10, Unit: rules.Second, Multiplier: 6, Algorithm: rules.SlidingLog}
	var owner Account
	first := int64(epoch) - int64(epoch)%Of(l).WatermarkStep()
	owner.SpendAt(l, first, first, 1)
	owner.SpendAt(l, first+50, first+50, 1)
	owner.Refund(l, first, 1)
	for _, c := range []struct {
		at   int64
		left uint64
	}{{first + 60, 9}, {first + l.Window() + 40, 9}, {first + l.Window() + 51, 10}} {
		if left := owner.Left(l, Of(l).Full(), c.at); left != c.left {
			t.Errorf("%d left after %d ms, want %d", left, c.at-first, c.left)
		}
	}
}

// Within its marks alone an owner spends no more of a window than is marked.
func TestRoomEndsAtTheWatermark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := ownerLimit(t)
		var owner Account
		now := epoch + rapid.Int64Range(0, l.Window()).Draw(t, "start")
		m := owner.Watermark(l, now, now, uint64(rapid.IntRange(0, 100).Draw(t, "marked")))
		spent := uint64(0)
		for range 20 {
			if l.Algorithm.Bucket() { // what drained may be spent again
				now += rapid.Int64Range(0, 50).Draw(t, "pass")
			}
			n := min(uint64(rapid.IntRange(0, 30).Draw(t, "hits")), owner.Room(l, now, now, m.Amount))
			owner.SpendAt(l, now, now, n)
			spent += n
			if after := owner.Watermark(l, now, now, 0); n > 0 && after.Amount > m.Amount {
				t.Fatalf("%d hits spent reach %d, marked are %d", spent, after.Amount, m.Amount)
			}
		}
	})
}
