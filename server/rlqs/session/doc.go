// Package session is the state of one RLQS stream (rate limit quota service of
// Envoy): its buckets, their assignments, and the reported usage. It has no I/O
// and no lock: a driver hands in a clock, the reports, and a Limiter that
// charges and refunds hits.
//
// Hits are charged before they are assigned, so the client is a caller like any
// other, and its assignments count as admitted. An assignment is a token bucket
// that does not refill. It ends after its time to live, or when another one
// replaces it. Unused hits are refunded once the assignment has certainly
// ended, and all of its usage is reported.
//
// The limiter may wait for owners of strict keys. So times to live are settled
// when an action is sent, from the end of the window that was charged.
package session
