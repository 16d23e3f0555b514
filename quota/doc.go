// Package quota folds labelled counters into decisions: the five algorithms,
// and the accounting of what they passed and refused. It is pure: instants
// come in as milliseconds of the hybrid logical clock, nothing is read or
// written elsewhere, and all amounts are integers.
//
// # One state, five folds
//
// What a replica keeps of a key is a Cell: hits charged under a label, the
// start of a window or of a step of a bucket's grid. A new window is a new
// label; nothing is reset in place. The algorithms only differ in how they
// read it:
//
//	fixed_window    used = count(n)
//	sliding_window  used = count(n-1) x overlap + count(n), rounded up
//	sliding_log     used = sum of the stamps in (now-W, now]
//	token_bucket    used = max(0, opening + count(g) - rate x (now-g))
//	leaky_bucket    the same meter; what is used is the queue in front
//
// A hit of n fits when used + n does not exceed the capacity: the limit, or
// the burst of a bucket. See docs/adr/0002 for why a bucket is kept as what
// is used of it and not as what is left.
package quota
