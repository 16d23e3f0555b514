// Package crdttest tests replicated values. Laws checks the join alone.
// Converge checks replicas that exchange deltas over a network that loses,
// repeats and reorders messages.
//
// The two find different faults. A join may keep every law and still forget.
// The maximum of one scalar that all replicas add to is a correct lattice, and
// loses every concurrent addition. Only a comparison with the ground truth
// shows that.
package crdttest
