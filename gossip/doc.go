// Package gossip replicates counts between daemons as a pure state machine.
//
// # What travels
//
// A cell is a count of one slot under one key and label. Inside a region each
// daemon tells every other the cells of its own slot that changed. Across
// regions the daemon that a key falls to in its region, its aggregator, tells
// the key's aggregator in each other region the sum of its region; that one
// passes it on inside its own region under the slot of the region. Cells are
// joined by the maximum, sums lexicographically (crdt.Sum), so messages may be
// lost, repeated and reordered.
//
// # How it is known that nothing was lost
//
// Each change of a cell gets the next version, and a list keeps the cells in
// the order of their versions. A message covers the versions (Lo, Hi]; the
// receiver acknowledges Hi when it has all up to Lo. What is not acknowledged
// in time is sent again, from the state as it is then: there is no buffer of
// deltas. A cell that was refused is listed back and gets a new version later.
// A peer that is new, or forgot us, is told everything.
//
// # How old a view is
//
// Each message carries the sender's monotonic clock and the latest one it had
// from the receiver. That bounds the age of a view without comparing clocks. A
// message without news is news: it says that nothing changed.
package gossip
