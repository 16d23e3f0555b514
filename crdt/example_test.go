package crdt_test

import (
	"fmt"

	"github.com/georld/rld/crdt"
)

// Two values of one writer join to the later one, in any order.
func ExamplePN_Join() {
	before := crdt.PN{P: 5, N: 1}
	after := crdt.PN{P: 8, N: 1}
	fmt.Println(before.Join(after), after.Join(before), before.Join(after).Net())
	// Output: 8-1 8-1 7
}

// Replicas find out with one number whether they hold the same cells.
func ExampleDigest() {
	a := crdt.CellID{Key: 1, Window: 60_000, Incarnation: 1}
	b := crdt.CellID{Key: 1, Window: 60_000, Incarnation: 2}
	var one, other crdt.Digest
	one = one.Replace(a, crdt.PN{}, crdt.PN{P: 3}).Replace(b, crdt.PN{}, crdt.PN{P: 4})
	other = other.Replace(b, crdt.PN{}, crdt.PN{P: 4})
	fmt.Println(one == other)
	other = other.Replace(a, crdt.PN{}, crdt.PN{P: 3})
	fmt.Println(one == other)
	// Output:
	// false
	// true
}
