package load

import (
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
)

// keys draws the keys of a workload.
type keys struct {
	work  *Workload
	names []string
	sums  []float64 // of the weights, for the ones before too
	fresh int
}

func newKeys(l *Workload) keys {
	k := keys{work: l}
	n := max(1, l.Keys)
	k.names = make([]string, n)
	if l.Zipf > 0 && n > 1 && !l.NewKeys {
		sum := 0.0
		k.sums = make([]float64, n)
		for i := range n {
			sum += math.Pow(float64(i+1), -l.Zipf)
			k.sums[i] = sum
		}
	}
	return k
}

// draw returns the number of the key that a call is for.
func (k *keys) draw(rng *rand.Rand) int {
	l := k.work
	switch {
	case l.Hot > 0 && rng.Float64() < l.Hot:
		return 0
	case l.NewKeys:
		k.fresh++
		return max(1, l.Keys) + k.fresh
	case k.sums != nil:
		return sort.SearchFloat64s(k.sums, rng.Float64()*k.sums[len(k.sums)-1])
	case len(k.names) > 1:
		return rng.IntN(len(k.names))
	}
	return 0
}

// name returns the value that stands for a key.
func (k *keys) name(i int) string {
	if i >= len(k.names) {
		return "new-" + strconv.Itoa(i)
	}
	if k.names[i] == "" {
		k.names[i] = "key-" + strconv.Itoa(i)
	}
	return k.names[i]
}
