package rendezvous

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRarity compares the fixed-point logarithm with the floating-point one.
func TestRarity(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, u := range []uint64{0, 1, 2, 1<<63 - 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		check := func(u uint64) {
			want := (64 - math.Log2(float64(u)+1)) * (1 << logBits)
			if got := float64(Rarity(u)); math.Abs(got-want) > 64 {
				t.Fatalf("rarity of %d is %.0f: want %.0f", u, got, want)
			}
		}
		check(u)
		for range 1_000 {
			check(rng.Uint64() >> rng.IntN(64))
		}
	}
}

// TestHash checks that the limits between texts count, and pins values that
// daemons of all versions must agree on.
func TestHash(t *testing.T) {
	if Hash("ab", "c") == Hash("a", "bc") {
		t.Error("hash ignores where one text ends")
	}
	if got := Hash("region", "eu"); got != goldenHash {
		t.Errorf("hash %#x: want %#x", got, uint64(goldenHash))
	}
}

const goldenHash = 0x4763285de15cc4fa
