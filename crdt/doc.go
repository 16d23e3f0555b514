// Package crdt defines the replicated values of rld: counts that every replica
// may add to without coordination and that agree after all replicas have
// exchanged their state.
//
// # The design rule
//
// All replicated state about traffic is a set of cells. A cell is the count of
// one key in one window by one writer, and a writer is an incarnation: one run
// of one daemon. Three rules follow. The rest of rld keeps them, and this
// package has no function that could break them.
//
//   - A new window is a new cell. A count only grows until its window can no
//     longer matter; then the cell is dropped. Nothing is reset in place, since
//     a reset and an old count that arrives late cannot be distinguished.
//   - A restart is a new incarnation. A daemon that lost its counts must not
//     write lower numbers where its peers hold higher ones: those would mask
//     everything it counts until it has passed them.
//   - A cell has a single writer. So two values of a cell are two moments of
//     one history, the greater one is the later, and the maximum loses nothing.
//     With two writers in one cell, the hits of the smaller count would be
//     lost.
//
// # The lattices
//
//	PN   (P, N) of one writer: admitted, refunded   the maximum of P and of N
//	Sum  (P, N) over the cells of one aggregator    the lexicographically greater pair
//
// Both joins are idempotent, commutative and associative, so messages may be
// lost, repeated and reordered. Package crdttest holds these laws as tests that
// can be called; gossip and sticky apply them to their own state too. A Sum is
// not a PN: see there.
//
// A zero count equals an absent cell, so equal states have equal Digests.
//
// All arithmetic is on integers and stops at Max. All types are plain values:
// copy them freely and guard shared ones with a lock.
package crdt
