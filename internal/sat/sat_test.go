package sat

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// genWord draws small numbers, and numbers close to the limits of their type.
func genWord() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64Range(math.MaxUint64-9, math.MaxUint64), rapid.Uint64())
}

// TestAgainstBig compares every function with exact arithmetic.
func TestAgainstBig(t *testing.T) {
	most := new(big.Int).SetUint64(math.MaxUint64)
	clamp := func(x *big.Int) uint64 {
		switch {
		case x.Sign() < 0:
			return 0
		case x.Cmp(most) > 0:
			return math.MaxUint64
		}
		return x.Uint64()
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genWord().Draw(t, "a"), genWord().Draw(t, "b"), genWord().Draw(t, "c")
		x, y, z := new(big.Int).SetUint64(a), new(big.Int).SetUint64(b), new(big.Int).SetUint64(c)
		down, up := uint64(math.MaxUint64), uint64(math.MaxUint64)
		if c > 0 {
			q, rest := new(big.Int).QuoRem(new(big.Int).Mul(x, y), z, new(big.Int))
			down = clamp(q)
			if rest.Sign() > 0 {
				q.Add(q, big.NewInt(1))
			}
			up = clamp(q)
		}
		for _, tt := range []struct {
			name      string
			got, want uint64
		}{
			{"Add", Add(a, b), clamp(new(big.Int).Add(x, y))},
			{"Sub", Sub(a, b), clamp(new(big.Int).Sub(x, y))},
			{"MulDiv", MulDiv(a, b, c), down},
			{"MulDivUp", MulDivUp(a, b, c), up},
		} {
			if tt.got != tt.want {
				t.Fatalf("%s of %d, %d, %d is %d, want %d", tt.name, a, b, c, tt.got, tt.want)
			}
		}
	})
}

// TestMulDivUpSaturates rounds the greatest quotient up, which does not fit.
func TestMulDivUpSaturates(t *testing.T) {
	const most = math.MaxUint64
	if got := MulDivUp(most-7, most-1, most-8); got != most {
		t.Errorf("got %d, want %d", got, uint64(most))
	}
}

func TestAddInt(t *testing.T) {
	for _, tt := range []struct{ a, b, want int64 }{
		{1, 2, 3},
		{5, -7, -2},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64 - 1, 1, math.MaxInt64},
		{math.MaxInt64, -1, math.MaxInt64 - 1},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64},
	} {
		if got := AddInt(tt.a, tt.b); got != tt.want {
			t.Errorf("%d + %d = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
