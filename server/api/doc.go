// Package api answers rld.v1.RateLimiter, the native gRPC API: one call at a
// time (Check), or pipelined on a stream (CheckStream), where questions and
// answers share frames and a check costs a fraction of a call.
//
// Hits that were admitted and not used are given back by Refund. A question
// that says refundable is answered with a token a descriptor: what was charged
// and where, sealed with a key that this process alone has. It is good once, at
// the daemon that charged, for as long as the hits weigh anything; a restart
// forgets key and charges alike, and the hits stay counted. What was refunded is
// remembered until then, for a bounded number of tokens; beyond that Refund
// refuses, and nothing is lost.
package api
