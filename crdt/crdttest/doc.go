// Package crdttest tests replicated values: Laws checks the join of a lattice,
// its deltas and its digests.
//
// A join may keep every law and the counter still forget. The maximum of one
// scalar that all replicas add to is a correct lattice, and loses every
// concurrent addition. Only a comparison with the ground truth shows that: the
// tests of package gossip compare its engines with it, over a network that
// loses, repeats and reorders messages.
package crdttest
