// Package crdt holds the replicated values of rld: counters that every replica
// may add to without asking, and that agree once all have heard of all.
//
// # The design rule
//
// Everything rld replicates about traffic is a counter per (rule, key, label),
// and a label is the number of a window or of a step of a bucket's grid. In
// each counter every daemon writes a slot of its own, and only that one. From
// this follow three rules which the rest of rld keeps and this package is
// shaped by; there is no method to break them:
//
//   - A new window is a new label. A counter is only ever added to and, when
//     its label can no longer matter, dropped whole. Nothing is reset in place:
//     a reset and an old count that arrives late cannot be told apart.
//   - A restart is a new slot. A daemon that forgot what it counted must not
//     write lower numbers where peers hold its higher ones: they would mask
//     all it counts until it has passed them.
//   - A slot has a single writer. So two numbers of one slot are two moments
//     of one history, the greater one is the later, and taking the maximum
//     loses nothing. Two writers in one slot would lose the smaller one's hits.
//
// # The lattices
//
//	GCounter    slot -> count                          maximum per slot
//	PNCounter   slot -> (P, N): admitted, refunded     maximum per slot of P and of N
//	Sum         (P, N) of all slots an aggregator saw  the lexicographically greater pair
//
// The join of each is idempotent, commutative and associative, so messages may
// be lost, repeated and reordered; crdt/crdttest holds these laws as a callable
// test. A Sum is not a PNCounter with one slot: see there.
//
// A zero count and an absent slot are the same value and are stored the same
// way, as nothing, so equal values have equal cells and equal Digests.
//
// Counters are bounded: MaxSlots slots, and numbers that saturate instead of
// starting over. All arithmetic is on integers. No type here is safe for
// concurrent use.
package crdt
