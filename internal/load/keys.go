package load

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Keys chooses keys, 0 to n-1. It is immutable.
type Keys struct {
	n   int
	cdf []float64 // nil: all are as frequent
}

// MaxKeys bounds the keys: those of Zipf's law need 8 bytes each.
const MaxKeys = 10_000_000

// NewKeys returns the choice of n keys, each as often, or by Zipf's law: key i
// in proportion to (i+1)^-zipf.
func NewKeys(n int, zipf float64) *Keys {
	k := &Keys{n: n}
	if zipf > 0 && n > 1 {
		k.cdf = make([]float64, n)
		sum := 0.0
		for i := range k.cdf {
			sum += math.Pow(float64(i+1), -zipf)
			k.cdf[i] = sum
		}
	}
	return k
}

// Chooser returns a function that draws keys, for one goroutine.
func (k *Keys) Chooser(seed uint64) func() int {
	rng := rand.New(rand.NewPCG(seed, 1))
	if k.cdf == nil {
		return func() int { return rng.IntN(k.n) }
	}
	return func() int {
		at := rng.Float64() * k.cdf[k.n-1]
		return min(sort.SearchFloat64s(k.cdf, at), k.n-1)
	}
}
