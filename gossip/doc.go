// Package gossip replicates counts between daemons as a pure state machine.
//
// # Cells
//
// A cell is the count of one incarnation for one key and window. Cells are
// merged by maximum, sums lexicographically (crdt.Sum), so messages may be
// lost, duplicated and reordered.
//
// In a region of three or more ready daemons counts take two hops. Each daemon
// sends the changed cells of its own incarnation to the aggregator of their
// key. The successor, which is the aggregator after it, receives the cells that
// the aggregator alone would have: its own, and those without a live writer. It
// also receives cells of keys near their limits. The aggregator informs the
// other daemons, with a cell of kind Others, when that may change their
// decisions: the key gets near its limit, eight times less is left, or it is
// exhausted. Of a key that grows fast it expects the counts of other regions
// before they arrive (docs/adr 0045). Of a key far from its limit, these may
// know their own count alone.
// In a region of one or two daemons each one sends its cells to the other.
//
// Across regions the key's aggregator sends the sum of its region to the key's
// aggregator in each other region. In a region of two, that one forwards the
// sum as a cell of the sending region; in a larger one the sum is a part of
// what it informs the others of.
//
// Changes wait for the next interval. Those of keys that are near their limit,
// or were in the window before, may be expedited, and all else that waits for
// the same peer is sent with them. docs/adr 0039 has the reasons and the price.
//
// # Acknowledgements
//
// Each change of a cell that a peer may need from this daemon gets the next
// version, as does each new cell, and a list holds the cells in the order of
// their versions. A message covers the versions (Lo, Hi]. The receiver
// acknowledges Hi once it has everything up to Lo. Cells without an
// acknowledgement in time are sent again with their current values: there is no
// buffer of deltas. A refused cell is listed in the reply and gets a new
// version later. Those that a full list omits are acknowledged, too. The
// receiver then acknowledges version 0 after Config.DigestEvery: it requests a
// resync. So a key that is full, or a clock far ahead, keeps no view old.
// A peer that is new, or that lost its state, receives a resync, as do all when
// the ready daemons of the region change. Cells of kind Others have no versions
// and are not acknowledged: a peer that lacks one is informed on the next
// occasion.
// docs/adr 0007, 0008 and 0009 describe cells, versions and the counts that a
// region lost.
//
// # Staleness
//
// Each message carries the sender's monotonic clock and the latest one that it
// received from the receiver. This bounds the age of a view without comparing
// clocks. A message without cells shows that nothing changed. Only a complete
// message proves an age: by the latest echo in it, or in a message before it.
//
// # Parts
//
// Engine combines the parts: state holds the cells, their changes, digests and
// slopes; link is the connection to one peer; roles assigns keys to aggregators
// and their successors; scope selects the cells that a peer receives;
// restoration finds the counts that a region lost.
//
// # Invariants
//
// The value of a cell only grows. Versions only grow, for a peer also across
// resyncs and rejoins. For each link, acked <= sent <= the latest version.
package gossip
