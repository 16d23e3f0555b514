// Package session is the state of one RLQS stream (rate limit quota service of
// Envoy): which buckets its client reports, what it was assigned, and what of
// that it reported as used. It has no I/O and no lock: a driver hands in a
// clock, the reports, and a Limiter that charges and refunds hits.
//
// What a client may admit is charged before it is assigned, so the client is a
// caller like any other, and its assignments count as admitted. An assignment
// is a token bucket of so many tokens that none comes back while it lives. It
// ends after its time to live, or when another one replaces it. Of hits that
// were charged, those come back that the client has reported as unused: once
// the assignment is over for certain, and all of its usage reported.
//
// The limiter may wait for owners of strict keys. So times to live are settled
// when an action is sent, from the end of the window that was charged.
package session
