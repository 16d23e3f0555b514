package node

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes in which order, no receipt is used twice, and no more are
// remembered than may be.
func TestReceiptsAreUsedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := usedReceipts{max: rapid.IntRange(1, 8).Draw(t, "max")}
		now := int64(0)
		until := map[uint64]int64{} // of a number, as its receipt has it
		did := map[uint64]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += rapid.Int64Range(0, refundGrace).Draw(t, "elapsed")
			n := rapid.Uint64Range(0, 20).Draw(t, "number")
			if _, ok := until[n]; !ok {
				until[n] = rapid.Int64Range(0, 10*refundGrace).Draw(t, "until")
			}
			late := until[n] < now-refundGrace
			alive := 0
			for n := range did {
				if until[n] >= now-refundGrace {
					alive++
				}
			}
			want := Refunded{}
			switch {
			case late:
				want.Expired = true
			case did[n]:
				want.Already = true
			case alive == u.max:
				want.Full = true
			}
			if got := u.enter(&Receipt{Number: n, Until: until[n]}, now); got != want {
				t.Fatalf("%d until %d at %d: %+v, want %+v", n, until[n], now, got, want)
			}
			if want == (Refunded{}) {
				did[n] = true
			}
			if len(u.seen) > u.max || len(u.seen) != len(u.ends) {
				t.Fatalf("remembers %d numbers and %d ends, at most %d", len(u.seen), len(u.ends), u.max)
			}
		}
	})
}
