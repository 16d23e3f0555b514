// Package crdttest holds what every replicated value must keep to, as tests to
// call: Laws for the join alone, Converge for replicas that exchange deltas
// over a network that loses, repeats and reorders.
//
// The two find different faults. A join may keep every law and still forget:
// the maximum of one scalar that all replicas add to is a flawless lattice, and
// loses every concurrent addition. Only a truth to compare with shows that.
package crdttest
