package crdt

import (
	"math/bits"
	"slices"
)

// searchStep is the distance of the first probes of Search: two cache lines.
const searchStep = 16

// Search returns the place of an incarnation in an ascending list, or where it
// would be. Incarnations are random, so the place is near the one that their
// value indicates: the search reads a few cache lines of a long list, and not
// one for each halving.
func Search(ids []Incarnation, id Incarnation) (at int, found bool) {
	guess, _ := bits.Mul64(uint64(id), uint64(len(ids)))
	low, high := int(guess), int(guess) // those before low are less, those from high on are not
	for step := searchStep; low > 0 && ids[low-1] >= id; step *= 2 {
		low, high = max(0, low-step), low-1
	}
	for step := searchStep; high < len(ids) && ids[high] < id; step *= 2 {
		low, high = high+1, min(len(ids), high+step)
	}
	at, _ = slices.BinarySearch(ids[low:high], id)
	at += low
	return at, at < len(ids) && ids[at] == id
}
