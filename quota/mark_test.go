package quota

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/georld/rld/rules"
)

// homeLimit draws a limit that a home may keep.
func homeLimit(t *rapid.T) *rules.Limit {
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

// Who takes over from the marks of a home never finds more left than that home
// had, whatever it spent within them and when.
func TestMarksHoldWhatWasSpent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := homeLimit(t)
		var home Row
		marks := map[int64]Mark{}
		now := int64(epoch)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, max(1, l.Window()/8)).Draw(t, "pass")
			at := now
			if l.Algorithm == rules.SlidingLog && rapid.Bool().Draw(t, "far") {
				step := MarkStep(l)
				at = now - now%step + step - 1
			}
			n := min(uint64(rapid.IntRange(0, 50).Draw(t, "hits")), home.Left(l, Full(l), now))
			ahead := min(uint64(rapid.IntRange(0, 20).Draw(t, "ahead")), home.Left(l, Full(l), now)-n)
			m := home.Mark(l, now, at, n+ahead)
			if m.Amount > marks[m.Label].Amount {
				marks[m.Label] = m
			}
			if room := home.Room(l, now, at, marks[m.Label].Amount); room < n {
				t.Fatalf("%d hits are marked and there is room for %d", n+ahead, room)
			}
			home.SpendAt(l, now, at, n)
			if rapid.IntRange(0, 5).Draw(t, "unspend") == 0 {
				home.Unspend(l, m.Label, n)
			}
			var next Row
			for _, m := range marks {
				if now < m.End {
					next.Adopt(l, now, m)
				}
			}
			if has, had := next.Left(l, Full(l), now), home.Left(l, Full(l), now); has > had {
				t.Fatalf("%+v at %d: %d left after a takeover, %d before", l, now-epoch, has, had)
			}
		}
	})
}

// Within its marks alone a home spends no more of a window than is marked.
func TestRoomEndsAtTheMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := homeLimit(t)
		var home Row
		now := epoch + rapid.Int64Range(0, l.Window()).Draw(t, "start")
		m := home.Mark(l, now, now, uint64(rapid.IntRange(0, 100).Draw(t, "marked")))
		spent := uint64(0)
		for range 20 {
			if l.Algorithm.Bucket() { // what drained may be spent again
				now += rapid.Int64Range(0, 50).Draw(t, "pass")
			}
			n := min(uint64(rapid.IntRange(0, 30).Draw(t, "hits")), home.Room(l, now, now, m.Amount))
			home.SpendAt(l, now, now, n)
			spent += n
			if after := home.Mark(l, now, now, 0); n > 0 && after.Amount > m.Amount {
				t.Fatalf("%d hits spent reach %d, marked are %d", spent, after.Amount, m.Amount)
			}
		}
	})
}
