// Package quota counts usage against limits. It reads counts by the five
// algorithms of rld, and accounts for admitted and denied hits. It is pure:
// time comes in as milliseconds of the hybrid logical clock, and all amounts
// are integers.
//
// # One state, five folds
//
// A replica keeps one Cell per key: the hits charged in the current window, or
// in the current step of a bucket's grid. A new window is a new count; nothing
// is reset in place. The algorithms only differ in how they read the cell:
//
//	fixed_window    used = count(n)
//	sliding_window  used = count(n-1) x overlap + count(n), rounded up
//	sliding_log     used = sum of the stamps in (now-W, now]
//	token_bucket    used = max(0, opening + count(g) - rate x (now-g))
//	leaky_bucket    the same meter; the usage is the queue in front
//
// n hits fit if used + n does not exceed the capacity: the limit, or the burst
// of a bucket. docs/adr/0002 explains why a bucket counts its usage instead of
// its remaining tokens.
//
// Fold, made by Of from a limit, answers every question that depends on the
// algorithm. No other package compares algorithms, so a sixth one is a change
// of this package and of the limits language.
//
// # Rights and watermarks
//
// An Account is one daemon's usage of its rights to a key. The owner of a
// strict key keeps one for the whole limit, and reports its consumption to
// others as a Watermark.
package quota
